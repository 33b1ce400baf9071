"""Every option works in all interfaces, with the same messages; a new one is one line in one place."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto.backends import get_backend
from cuanto.batch import energies
from cuanto.cli.main import run
from cuanto.errors import InputError
from cuanto.interfaces.keywords import checked_keywords, errors_about
from cuanto.methods import Request
from cuanto.options import OPTIONS, CalculationOptions, ScfOptions, changed_options
from fitting_cases import DATA
from paths import ROOT

H2 = "2\n\nH 0 0 0\nH 0 0 0.74\n"
METHOD = {"hf": "hf", "functional": "pbe", "semiempirical": "pm6"}
WRONG: dict[str, Any] = {
    "choice": "nonsense",
    "text": "nonsense",
    "basis": "nonsense",
    "grid": "nonsense",
    "number": 1e9,
    "integer": -1,
    "switch": "perhaps",
    "size": -1,
    "numbers": [9.0, 9.0, 9.0, 9.0],
    "charges": [1.0, 2.0],
}
"""Invalid values, by kind of option."""
OTHER_MESSAGES = ("size", "charges")
"""Kinds of options whose messages differ between plain data (text such as 4GB, lists) and Python objects."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    Path("h2.xyz").write_text(H2)
    return tmp_path


def error_output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The line on standard error of a command that ends with status 2."""
    with pytest.raises(SystemExit) as leaving:
        run(arguments)
    assert leaving.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_is_checked_wherever_it_comes_from(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Invalid values are refused in Python, for many molecules, on the command line, in jobs and in QCSchema inputs."""
    option = OPTIONS[name]
    value, method = WRONG[option.kind], METHOD[option.scope.kinds[0]]
    with pytest.raises(InputError) as refused:
        cuanto.energy(cuanto.Molecule.from_string(H2), method, **{name: value})
    message = name if option.kind in OTHER_MESSAGES else str(refused.value)
    assert "unknown option" not in str(refused.value)
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    common = ("energy", "h2.xyz", "-m", method)
    assert message in error_output(capsys, *common, "-o", f"{name}={text}")
    if option.flags and option.kind not in OTHER_MESSAGES and not option.choices:
        assert message in error_output(capsys, *common, option.flags[0], text)
    table = "" if option.flags else "[options]\n"
    Path("job.toml").write_text(f'molecule = "h2.xyz"\nmethod = "{method}"\n{table}{name} = {json.dumps(value)}\n')
    line = error_output(capsys, "run", "job.toml")
    assert line.startswith("cuanto: job.toml: ") and name in line and message in line
    model = {"method": method} | ({} if method == "pm6" else {"basis": "sto-3g"})
    hydrogen = {"symbols": ["H", "H"], "geometry": [0, 0, 0, 0, 0, 1.4]}
    inputs = {"molecule": hydrogen, "model": model, "keywords": {name: value}, "driver": "energy"}
    assert message in cuanto.compute(inputs)["error"]["error_message"]
    try:
        (row,) = energies([cuanto.Molecule.from_string(H2)], method, workers=0, **{name: value})
    except InputError as error:
        assert str(refused.value) in str(error)
    else:
        assert str(refused.value) in row.error  # values that can be checked only for a molecule


@pytest.mark.parametrize("group", [CalculationOptions, ScfOptions])
def test_options_have_help_texts(group: type) -> None:
    for field in fields(group):
        option = OPTIONS[field.name]
        assert option.help and option.kind in WRONG and option.default == field.default
        assert field.default is None or not option.choices or field.default in option.choices
    group()  # the defaults are valid


def test_default_options_are_not_listed() -> None:
    assert changed_options(CalculationOptions()) == {} == changed_options(ScfOptions())
    assert changed_options(CalculationOptions(backend="cpu", max_memory=1e9, precision="mixed")) == {
        "precision": "mixed"
    }
    found = changed_options(ScfOptions(damping=0.5, occupations=np.ones((1, 2)), max_iterations=np.int64(100)))
    assert set(found) == {"damping", "occupations"}


def test_words_may_be_in_upper_case(capsys: pytest.CaptureFixture[str]) -> None:
    """The options have them in lower case, as the choices are."""
    assert CalculationOptions(relativity="X2C", fitting="None").relativity == "x2c"
    assert ScfOptions(diagonaliser="Full").diagonaliser == "full"
    assert all(word == word.lower() for option in OPTIONS.values() for word in option.choices)
    helium = cuanto.energy("He 0 0 0", "hf", "sto-3g", relativity="X2C", backend="cpu")
    with pytest.raises(SystemExit) as leaving:
        run(["energy", "He 0 0 0", "-b", "sto-3g", "--relativity", "X2C", "--backend", "cpu", "-q"])
    assert not leaving.value.code
    assert float(capsys.readouterr().out.split()[1]) == pytest.approx(helium.energy, abs=1e-8)
    assert cuanto.energy("H 0 0 0; H 0 0 1", "pm6", diagonaliser="SP2", backend="CPU").converged
    assert get_backend("CPU") is get_backend("cpu")


@pytest.mark.parametrize("given", [[2], (1.0, 1), np.array([2.0]), 2])
def test_occupations_are_lists(given: Any) -> None:
    advice = r"occupations must have a list for each spin, or one for both, such as \[\[2, 2, 2, 2, 2\]\], not "
    with pytest.raises(InputError, match=advice):
        cuanto.energy("He 0 0 0", "hf", "sto-3g", occupations=given)
    assert ScfOptions(occupations=[[2]]).occupations == [[2]]


def test_numpy_numbers_are_accepted() -> None:
    assert ScfOptions(damping=np.float32(0.5), profile=np.True_).damping == 0.5
    assert CalculationOptions(max_memory=np.int64(5)).max_memory == 5
    for wrong in (True, None, [1], "1"):
        with pytest.raises(InputError, match="max_iterations must be a number"):
            ScfOptions(max_iterations=wrong)


def test_memory_may_be_text() -> None:
    assert Request.of("He 0 0 0", "hf", max_memory="4GB").options.max_memory == 4 * 2**30
    assert cuanto.energy("H 0 0 0; H 0 0 1", "pm6", max_memory="4GB", backend="cpu").converged
    with pytest.raises(InputError, match="max_memory 'lots': give a size such as 4GB"):
        cuanto.energy("He 0 0 0", "hf", max_memory="lots")


def test_integers_beyond_the_range_of_floats_are_refused() -> None:
    for name in ("seed", "smearing"):
        with pytest.raises(InputError, match=rf"^{name} must be a number, not 7777.*\.\.\.$"):
            ScfOptions(**{name: int("7" * 400)})
    with pytest.raises(InputError, match=r"^max_memory must be a positive number of bytes, not 7777.*\.\.\.$"):
        CalculationOptions(max_memory=int("7" * 400))


def test_errors_name_file_and_option(tmp_path: Path) -> None:
    """The option is named once, whether its message begins with it or not."""
    for given, line in (({"fitting": "k"}, "a: fitting: unknown fitting 'k'"), ({"damping": 2}, "a: damping is 2")):
        with pytest.raises(InputError) as refused:
            checked_keywords(given, "a")
        assert str(refused.value).startswith(line)
        with pytest.raises(InputError) as again, errors_about("a"):
            raise refused.value
        assert str(again.value) == str(refused.value)


NEW_OPTION = '    patience: int = number(3, 1, 9, "Patience of the tests.", BASIS_METHODS, flag=True)\n'
SCRIPT = """
import contextlib, io, json, sys
import cuanto
from cuanto.cli.main import run
from cuanto.errors import InputError

def command(*arguments):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            run(arguments)
        except SystemExit:
            return out.getvalue() + err.getvalue()

def python(method, **keywords):
    try:
        return cuanto.energy(cuanto.Molecule.from_xyz("h2.xyz"), method, **keywords)
    except InputError as error:
        return str(error)

def schema(method, basis, value):
    hydrogen = {"symbols": ["H", "H"], "geometry": [0, 0, 0, 0, 0, 1.4]}
    asked = {"molecule": hydrogen, "model": {"method": method, "basis": basis}, "keywords": {"patience": value}}
    answer = cuanto.compute({**asked, "driver": "energy"})
    return answer["error"]["error_message"] if not answer["success"] else "done"

def job(method, value):
    with open("job.toml", "w") as file:
        file.write(f'molecule = "h2.xyz"\\nmethod = "{method}"\\nbackend = "cpu"\\n[options]\\npatience = {value}')
    return command("run", "job.toml")

def both(method, basis, value):
    at = ("energy", "h2.xyz", "-m", method, "--backend", "cpu")
    shown = [command(*at, "--patience", str(value)), command(*at, "-o", f"patience={value}")]
    result = python(method, backend="cpu", patience=value)
    by_python = result if isinstance(result, str) else str(result.keywords)
    return [by_python, *shown, job(method, value), schema(method, basis, value)]

help = command("energy", "--help")
near = python("hf", patienze=3)
print(json.dumps([help, near, both("hf", "sto-3g", 5), both("hf", "sto-3g", 20), both("pm6", None, 5)]))
"""


def test_a_new_option_is_one_line_in_one_place(tmp_path: Path) -> None:
    """A copy of the package with one more line supports the option everywhere."""
    package = Path(cuanto.__file__).parent
    copy = tmp_path / "copy" / "cuanto"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    text = (copy / "options.py").read_text()
    line = next(line for line in text.splitlines(keepends=True) if line.startswith("    profile: bool"))
    (copy / "options.py").write_text(text.replace(line, line + NEW_OPTION))
    command = [sys.executable, "-c", SCRIPT]
    environment = {"PYTHONPATH": str(copy.parent), "COLUMNS": "200", "CUANTO_BASIS_PATH": str(DATA / "basis")}

    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    shown, near, right, wrong, without = json.loads(done.stdout)
    assert "--patience" in shown and "Patience of the tests." in shown
    assert "unknown option 'patienze'; did you mean 'patience'?" in near
    assert "'patience': 5" in right[0] and all("converged" in text for text in right[1:4]) and right[4] == "done"
    assert all("patience is 20: give a number from 1 to 9" in text for text in wrong)
    assert all("patience does not apply to pm6: leave it out, or use hf or a functional" in text for text in without)


def test_the_page_has_every_option() -> None:
    """After a change: python tools/docs_options.py."""
    page = (ROOT / "docs" / "reference" / "interface.md").read_text()
    assert page == runpy.run_path(str(ROOT / "tools" / "docs_options.py"))["with_table"](page)
    assert all(f"| `{name}` | " in page and option.description in page for name, option in OPTIONS.items())
    assert "| `damping` | `0.0`; 0 to 0.95 |" in page and "| `fitting` | `auto`, `none`, `j`, `jk` |" in page
    assert "| Electric field, Hartree/(e Bohr). |" in page and "[default" not in page
