"""The walk-through of CONTRIBUTING.md works as written, and touches three files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cuanto
from paths import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
MAX_FILES = 3


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}[^\n]*\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def apply(difference: str, folder: Path) -> str:
    """Change a file under `folder` as a difference says, and return its name."""
    head, *hunks = difference.split("@@\n")
    name = re.findall(r"^\+\+\+ b/(\S+)$", head, re.MULTILINE)[0]
    text = (folder / name).read_text()
    for hunk in hunks:
        lines = hunk.splitlines()
        old, new = ("".join(f"{line[1:]}\n" for line in lines if line[:1] != mark) for mark in "+-")
        assert text.count(old) == 1, f"{name} has {text.count(old)} times:\n{old}"
        text = text.replace(old, new)
    (folder / name).write_text(text)
    return name


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the changes of the walk-through."""
    folder = tmp_path_factory.mktemp("walk")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copy(Path(cuanto.__file__).parent / "data" / "molecules" / "water.xyz", folder)
    names = [apply(difference, folder) for difference in blocks("diff")]
    assert len(set(names)) == len(names) <= MAX_FILES
    return folder


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    paths = {**os.environ, "PYTHONPATH": str(folder / "src")}
    return subprocess.run(command, cwd=folder, env=paths, capture_output=True, text=True)


def test_commands_print_what_the_page_shows(changed: Path) -> None:
    (session,) = blocks("console")
    for command, shown in re.findall(r"^\$ cuanto (.*)\n(.*)\n", session, re.MULTILINE):
        done = run(changed, sys.executable, "-m", "cuanto", *command.split(), "--backend", "cpu")
        assert shown in done.stdout
    refused = run(changed, sys.executable, "-m", "cuanto", "energy", "water.xyz", "-m", "pm6", "-o", "confinement=0.01")
    assert refused.returncode == 2


def test_the_energy_equals_that_of_pyscf(changed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(changed)
    (check,) = blocks("python")
    theirs: dict[str, Any] = {}
    exec(compile(check, "CONTRIBUTING.md", "exec"), theirs)
    (ours,) = re.findall(r"^water (-\d+\.\d+) Hartree$", PAGE, re.MULTILINE)
    assert float(ours) == pytest.approx(theirs["energy"], abs=1e-8)


def test_the_changes_are_in_the_style_of_the_package(changed: Path) -> None:
    for mode in (["check"], ["format", "--check"]):
        done = run(changed, sys.executable, "-m", "ruff", *mode, "--no-cache", "src")
        assert done.returncode == 0, done.stdout + done.stderr
