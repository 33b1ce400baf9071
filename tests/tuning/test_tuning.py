"""Tuning files: every number has its meaning and origin, is read somewhere, and can be measured again."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cuanto import tuning
from cuanto.kernels.build import choose_algorithm, class_name
from cuanto.kernels.spec import Shells

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "cuanto"
CASES = ("integrals", "direct", "dft", "gradient", "semiempirical", "atoms", "first_call")


@pytest.mark.parametrize("language", tuning.LANGUAGES)
def test_numbers_have_meaning_and_origin(language: str) -> None:
    for name, entry in tuning.content(language)["numbers"].items():
        assert set(entry) == {"value", "meaning", "machine", "date", "case"}, name
        assert entry["meaning"] and entry["machine"] and re.fullmatch(r"\d{4}-\d{2}-\d{2}", entry["date"]), name
        assert entry["case"] in CASES, name


@pytest.mark.parametrize("language", tuning.LANGUAGES)
def test_every_number_is_read(language: str) -> None:
    text = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    costs = {f"grid.{name}_seconds" for name in ("product", "value", "element", "piece", "batch")}
    for name in set(tuning.content(language)["numbers"]) - costs:
        assert f'"{name}"' in text, f"{name} of {language}.json is not used"


def test_another_folder_replaces_the_files(tmp_path: Path) -> None:
    for language in tuning.LANGUAGES:
        content = json.loads((SOURCE / "tuning" / f"{language}.json").read_text())
        content["numbers"]["fitting.block_functions"]["value"] = 11
        (tmp_path / f"{language}.json").write_text(json.dumps(content))
    code = "from cuanto import tuning; print(tuning.sizes('fitting.block_functions'))"
    environment = {**os.environ, "CUANTO_TUNING": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "{'cpu': 11, 'cuda': 11}"


def run_with(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CUANTO_TUNING": str(folder)}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)


def test_a_missing_file_is_the_shipped_one(tmp_path: Path) -> None:
    content = json.loads((SOURCE / "tuning" / "cpu.json").read_text())
    content["numbers"]["fitting.block_functions"]["value"] = 11
    (tmp_path / "cpu.json").write_text(json.dumps(content))
    done = run_with(tmp_path, "from cuanto import tuning; print(tuning.sizes('fitting.block_functions'))")
    assert done.stdout.strip() == f"{{'cpu': 11, 'cuda': {tuning.size('cuda', 'fitting.block_functions')}}}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is not a folder"),
        ("{", "cannot read"),
        ("[]", "has no table 'numbers'"),
        ('{"numbers": {}, "md_over_hgp": {}}', "cpu.json has no valid entry"),
    ],
)
def test_invalid_files_are_named_in_one_line(text: str | None, message: str, tmp_path: Path) -> None:
    folder = tmp_path / "tuning"
    if text is not None:
        folder.mkdir()
        (folder / "cpu.json").write_text(text)
    code = "from cuanto.cli.main import run; run(['energy', 'H 0 0 0; H 0 0 1', '-m', 'pm6', '-q'])"
    done = run_with(folder, code)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "CUANTO_TUNING" in done.stderr and message in done.stderr


def test_algorithm_follows_the_measured_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    bra, ket = Shells((2, 1)), Shells((3,))
    ratios = {class_name(bra, ket): [[1.0, 0.5], [9.0, 1.5]]}
    content = {**tuning.content("cpu"), "md_over_hgp": ratios}
    monkeypatch.setattr(tuning, "content", lambda language: content)
    assert choose_algorithm("cpu", "coulomb", bra, ket, 2.0) == "md"
    assert choose_algorithm("cpu", "coulomb", bra, ket, 8.0) == "hgp"
    assert choose_algorithm("cpu", "coulomb", ket, ket, 1.0) == "hgp"
    assert choose_algorithm("cpu", "overlap", ket, ket, 1.0) == "os"
