"""The documentation is correct: its Python runs, its imports exist, its commands parse, its links resolve.

Blocks that begin with ```python are executed, page by page, in the folders of `RUN`; elsewhere, and where a title says
that they need more than this machine has, they are compiled and their imports tried.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

import cuanto
from browser import Browser, browser_paths
from cuanto.cli import main
from paths import ROOT

DOCS = ROOT / "docs"
SITE = sorted(DOCS.rglob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *SITE]
RUN = [page for page in PAGES if page.parent.name in ("tutorials", "howto") or page.name in ("kernels.md", "README.md")]
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$? ?(?:\S.*\| )?(cuanto [^|>\n]*)", re.MULTILINE)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, *kinds: str) -> list[str]:
    """Contents of fenced blocks; a kind with a `*` also means those with a title."""
    return [
        text
        for kind, text in FENCE.findall(page.read_text())
        if kind.strip() in kinds or any(k.endswith("*") and kind.startswith(k[:-1]) for k in kinds)
    ]


@pytest.mark.parametrize("page", [page for page in RUN if blocks(page, "python")], ids=name_of)
def test_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = Path(cuanto.__file__).parent / "data" / "molecules"
    for xyz in shipped.glob("*.xyz"):
        shutil.copy(xyz, tmp_path)
    (tmp_path / "src/cuanto/data").mkdir(parents=True)  # as in a checkout
    (tmp_path / "src/cuanto/data/molecules").symlink_to(shipped)
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {"__name__": "page"}
    for number, code in enumerate(blocks(page, "python"), start=1):
        exec(compile(code, f"{page.name}, block {number}", "exec"), space)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_compiles_and_imports_what_exists(page: Path) -> None:
    for code in blocks(page, "python*"):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("cuanto"):
                module = importlib.import_module(node.module)
                for alias in node.names:
                    assert hasattr(module, alias.name), f"{node.module} has no {alias.name}"
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "cuanto":
                assert hasattr(cuanto, node.attr), f"cuanto has no {node.attr}"


def parse(words: list[str]) -> None:
    """Parse a command line without executing it."""
    group: Any = typer.main.get_command(main.app)
    if words[0].startswith("-"):
        assert words[0] in {name for parameter in group.params for name in parameter.opts}, words[0]
    else:
        assert words[0] in group.commands, f"no command {words[0]!r}"
        group.commands[words[0]].make_context(words[0], words[1:])


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_parse(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text in blocks(page, "", "console", "sh", "bash"):
        for line in COMMAND.findall(text.replace("\\\n", " ")):
            words = shlex.split(line, comments=True)[1:]
            if not words or words[0].isupper():  # `cuanto COMMAND --help`
                continue
            try:
                parse(words)
            except typer.Exit:
                pass  # --help
            except Exception as error:  # typer has no public name for the class of its errors
                pytest.fail(f"{line}: {getattr(error, 'message', error)}")


ERROR = re.compile(r"^\$ (cuanto .*)\n(cuanto: .*)$", re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if ERROR.search(page.read_text())], ids=name_of)
def test_errors_are_quoted_as_they_are_printed(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(Path(cuanto.__file__).parent / "data" / "molecules" / "water.xyz", tmp_path)
    monkeypatch.chdir(tmp_path)
    for command, shown in ERROR.findall(page.read_text()):
        with pytest.raises(SystemExit) as left:
            main.run(shlex.split(command)[1:])
        assert left.value.code == 2 and capsys.readouterr().err.strip() == shown


SHOWN = re.compile(r"^\$ (cuanto energy [^\n]*)$(?:(?!^\$|^```).)*?^ energy +(\S+)  Hartree", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if SHOWN.search(page.read_text())], ids=name_of)
def test_energies_are_those_that_are_printed(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(Path(cuanto.__file__).parent / "data" / "molecules" / "water.xyz", tmp_path)
    monkeypatch.chdir(tmp_path)
    for command, energy in SHOWN.findall(page.read_text()):
        with pytest.raises(SystemExit) as left:
            main.run([*shlex.split(command)[1:], "--backend", "cpu"])
        shown = capsys.readouterr()
        assert not left.value.code, shown.err
        printed = re.findall(r"^ energy +(\S+)  Hartree", shown.out, re.MULTILINE)
        assert float(printed[0]) == pytest.approx(float(energy), abs=1e-8)


def test_messages_of_the_troubleshooting_page_are_in_the_source() -> None:
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    messages = re.findall(r"^\| `([^`]+)`", (DOCS / "howto" / "troubleshooting.md").read_text(), re.MULTILINE)
    fragments = [part.strip() for message in messages for part in re.split(r"\.\.\.|[A-Z_]{4,}", message)]
    assert len(messages) > 5 and [part for part in fragments if part not in source] == []


PATH = re.compile(r"`([\w/]+/[\w.]+\.(?:py|json|sh|toml)|[\w/]+\.(?:h|cuh))`")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_are_named_exist(page: Path) -> None:
    """Files that pages name exist in the checkout, in the package or (templates) in `kernels/templates`."""
    package = ROOT / "src" / "cuanto"
    folders = (ROOT, package, package / "kernels", package / "kernels" / "templates")
    named = set(PATH.findall(page.read_text()))
    assert {path for path in named if not any((folder / path).exists() for folder in folders)} == set()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_and_geometries_exist(page: Path) -> None:
    text = page.read_text()
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", prose):
        assert (page.parent / link).exists(), link
    for path in re.findall(r"\b(?:src|examples|benchmarks|tools)/[\w/.-]+\.(?:xyz|py)\b", text):
        assert (ROOT / path).exists() or (ROOT / "src" / "cuanto" / path).exists(), path


def test_pages_that_the_code_names_exist() -> None:
    folders = ("src", "tests", "tools", "benchmarks", "examples")
    files = (file for folder in folders for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".h", ".md"))
    named = {name for file in files for name in re.findall(r"\bdocs/[\w/]+\.md\b", file.read_text())}
    assert len(named) > 3 and {name for name in named if not (ROOT / name).exists()} == set()


def test_folders_are_the_navigation() -> None:
    """Every page is listed, and the pages of a folder form one section, which is named after it."""
    settings = (ROOT / "mkdocs.yml").read_text()
    sections = re.findall(r"^  - ([\w-]+):\n((?: {6}- .*\n)+)", settings, re.MULTILINE)
    listed = {name: re.findall(r": (\S+\.md)$", pages, re.MULTILINE) for name, pages in sections if ".md" in pages}
    found = sorted(str(page.relative_to(DOCS)) for page in SITE)
    assert sorted(["index.md", *(page for pages in listed.values() for page in pages)]) == found
    for name, pages in listed.items():
        assert {page.split("/")[0] for page in pages} == {name.lower().replace("-", "")}


def test_advice_for_users_is_apart_from_engineering() -> None:
    """Pages for users do not explain how kernels work; those of the section Develop do."""
    words = r"simd|simt|thread block|shared memory|straight-line|general kernel|\bwarps?\b|recurrences?|launch"
    pages = [page for folder in ("tutorials", "howto", "methods") for page in sorted((DOCS / folder).glob("*.md"))]
    found = {page.name: re.findall(words, page.read_text(), re.IGNORECASE) for page in pages}
    assert len(pages) > 20 and {name: hits for name, hits in found.items() if hits} == {}
    assert re.search(words, (DOCS / "develop" / "coulomb_and_exchange.md").read_text())


def test_pages_need_no_network() -> None:
    settings = (ROOT / "mkdocs.yml").read_text()
    assert "http" not in settings and "font: false" in settings
    hook = runpy.run_path(str(ROOT / "tools" / "docs_offline.py"))
    assert (DOCS / hook["OWN"]).exists()
    assert "http" not in hook["on_post_template"](f'<script src="{hook["REMOTE"]}"></script>')


@pytest.mark.skipif(browser_paths() is None, reason="Debian's chromium and chromium-driver are missing")
def test_the_search_works_from_a_disk(tmp_path: Path) -> None:
    """Two pages, built with the settings of the site and opened without a server."""
    pytest.importorskip("material", reason="the extra docs is missing")
    (tmp_path / "docs").mkdir()
    for name in ("index.md", "reference/glossary.md", "style.css", "assets/worker.js"):
        target = tmp_path / "docs" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((DOCS / name).read_bytes())
    hooks = [str(ROOT / "tools" / "docs_offline.py")]
    assert all(f"tools/{Path(hook).name}" in (ROOT / "mkdocs.yml").read_text() for hook in hooks)
    settings = {"INHERIT": str(ROOT / "mkdocs.yml"), "docs_dir": "docs", "site_dir": "site", "hooks": hooks}
    settings |= {"nav": ["index.md", "reference/glossary.md"], "plugins": ["search", "offline"]}
    (tmp_path / "mkdocs.yml").write_text(json.dumps(settings))  # YAML includes JSON
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(tmp_path / "mkdocs.yml")]
    subprocess.run(build, check=True, capture_output=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    with Browser(tmp_path / "profile", 1280, 900) as browser:
        for page in ("index.html", "reference/glossary.html"):
            browser.open(tmp_path / "site" / page)
            browser.wait("document.querySelector('iframe')")
            browser.type("input.md-search__input", "straight-line")
            browser.wait("document.querySelector('.md-search-result__item a')")
            assert browser.run(
                "return document.querySelector('.md-search-result__item a').getAttribute('href')"
            ).startswith(("reference/glossary.html", "glossary.html", "../reference/glossary.html", "file:"))
            assert [address for address in browser.requests() if not address.startswith("data:")] == []


def test_every_public_name_is_in_the_glossary() -> None:
    explained = re.findall(r"^\| `cuanto\.(\w+)` \| \S", (DOCS / "reference" / "glossary.md").read_text(), re.MULTILINE)
    assert sorted(explained) == sorted(cuanto.__all__)


def test_the_readme_is_short_and_repeats_the_figures_of_the_docs() -> None:
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) <= 75
    figures = re.findall(r"(?<=\| )[\d.,]+ s(?= \|)|\b\d(?:\.\d)?e-\d+ (?:Hartree|kcal/mol)", readme)
    documented = "".join((DOCS / "reference" / f"{name}.md").read_text() for name in ("accuracy", "performance"))
    assert len(figures) > 10 and [figure for figure in figures if figure not in documented] == []


def test_every_environment_variable_is_documented() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    documented = re.findall(r"^`(CUANTO_\w+)`$", (DOCS / "reference" / "settings.md").read_text(), re.MULTILINE)
    assert sorted(documented) == sorted(set(re.findall(r"\bCUANTO_[A-Z_]+", sources)))


def test_every_target_that_is_mentioned_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        mentioned = set(re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.MULTILINE))
        assert mentioned <= targets, f"{name_of(page)}: {mentioned - targets}"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
