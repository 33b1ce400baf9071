"""What a person meets first: slips of all kinds are one line in our words, which says what would work."""

from __future__ import annotations

import json
import logging
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import cuanto
from cuanto.batch import energies
from cuanto.cli.main import run
from cuanto.cli.usage import usage_line
from cuanto.errors import InputError
from cuanto.grid.settings import LEVELS
from cuanto.log import Timings
from cuanto.methods import METHODS, SEMIEMPIRICAL
from fitting_cases import DATA

H2 = "2\n\nH 0 0 0\nH 0 0 0.74\n"
FOREIGN = re.compile(r"valid (integer|number)|Input should|Value error|Invalid value|No such|Missing|Got unexpected")
"""How typer, click and pydantic speak."""
COLOUR = re.compile(r"\x1b\[[\d;]*3[0-7]")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    Path("h2.xyz").write_text(H2)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on standard error of a command that ends with status 2."""
    with pytest.raises(SystemExit) as leaving:
        run(arguments)
    out, err = capsys.readouterr()
    assert leaving.value.code == 2 and out == "", out
    assert err.startswith("cuanto: ") and err.count("\n") == 1 and not FOREIGN.search(err), err
    return err.removeprefix("cuanto: ").strip()


# ------------------------------------------------------------------------------------------- options and arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("energy h2.xyz --charge x", "--charge 'x': give a whole number; see `cuanto energy --help`"),
        ("energy h2.xyz --fitting foo", "--fitting 'foo': choose auto, none, j, jk;"),
        ("energy h2.xyz --out a.csv --workers -1", "--workers '-1': give a whole number of at least 0;"),
        ("energy h2.xyz --basis", "--basis needs a value after it"),
        ("energy h2.xyz --quiet=3", "--quiet takes no value"),
        ("energy h2.xyz --foo", "there is no option --foo; did you mean"),
        ("energy", "MOLECULE is missing: XYZ, QCSchema (JSON) or Molden file"),
        ("energ h2.xyz", "there is no command 'energ'; did you mean energy? See `cuanto --help`"),
        ("atom --c x", "--c 'x': give a number;"),
        ("basis-search", "--elements is missing: Such as Ne,Ar,Kr or He-Ne;"),
        ("basis-search -e He --diffuse 1.5", "--diffuse '1.5': give a whole number of at least 0;"),
        ("selftest now", "now is too much: the command takes no such argument;"),
        ("energy h2.xyz -o h2.json", "files are written with --json, --molden, --report"),
        ("energy h2.xyz -m b3lip", "unknown method 'b3lip'; did you mean b3lyp"),
        ("atom ne", "ne is no input file: for the element write --element Ne"),
        ("run h2.xyz", "a molecule is computed with `cuanto energy h2.xyz`"),
        ("energy h2.xyz -o damping=2", "--option: damping is 2: give a number from 0 to 0.95"),
    ],
)
def test_slips_in_options(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in said(capsys, *arguments.split())


def test_other_releases_of_typer() -> None:
    """Theirs are click's errors, with other texts and limits in another place; what nobody foresaw passes through."""

    class BadParameter(Exception):  # click's name
        def __init__(self, message: str, **about: Any) -> None:
            kind = type("Type", (), about)()
            self.message, self.ctx, self.param = message, None, type("Option", (), {"opts": ["--n"], "type": kind})()

        def format_message(self) -> str:
            return f"Invalid value for '--n': {self.message}"

    assert usage_line(BadParameter("'x' is not a valid integer.")) == "--n 'x': give a whole number"
    assert usage_line(BadParameter("'x' is not a valid float.")) == "--n 'x': give a number"
    assert usage_line(BadParameter("7 is not in the range 1<=x<=5.", min=1, max=5)) == (
        "--n '7': give a whole number from 1 to 5"
    )
    assert usage_line(BadParameter("'x' is not one of 'a', 'b'.")) == "--n 'x': choose a, b"
    assert usage_line(BadParameter("something else.")) == "--n: something else"
    assert usage_line(InputError("no usage error")) is None


def test_help_names_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["energy", "--help"])
    words = capsys.readouterr().out
    for name in (*LEVELS, *METHODS, *(name for name in SEMIEMPIRICAL if name[0] != "u"), "upm6", "ub3lyp"):
        assert name in words, name
    for ending in (".csv", ".jsonl", ".parquet", "HTML", "QCSchema", "Molden", "HDF5"):
        assert ending in words, ending


@pytest.mark.parametrize("arguments", [["--help"], ["--loud"]])
def test_no_colour_where_none_is_wanted(arguments: list[str]) -> None:
    """https://no-color.org; the same on a terminal without it is coloured."""

    def shown(**environment: str) -> str:
        mine, theirs = pty.openpty()
        env = {**os.environ, "TERM": "xterm-256color", **environment}
        env = {name: value for name, value in env.items() if name not in ("FORCE_COLOR", "CI", "GITHUB_ACTIONS")}
        subprocess.run([sys.executable, "-m", "cuanto", *arguments], stdout=theirs, stderr=theirs, env=env)
        os.close(theirs)
        text = b""
        try:
            while piece := os.read(mine, 65536):
                text += piece
        except OSError:  # the end, on Linux
            pass
        os.close(mine)
        return text.decode()

    assert not COLOUR.search(shown(NO_COLOR="1")) and COLOUR.search(shown())


def test_verbose_is_about_what_takes_time(caplog: pytest.LogCaptureFixture) -> None:
    timings = Timings()
    with caplog.at_level(logging.INFO, "cuanto"):
        with timings.measure("nothing"):
            pass
        with timings.measure("something"):
            time.sleep(0.002)
    assert re.fullmatch(r"something: 0\.\d{3} s", caplog.messages[0]) and len(caplog.messages) == 1
    assert set(timings.seconds) == {"nothing", "something"}


# ------------------------------------------------------------------------------------------------- no molecule


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "the name of the molecule is empty: give an XYZ, QCSchema (JSON) or Molden file, - for standard input"),
        (".", "'.' is a folder: name a file in it, or use --out"),
        ("a.traj", "is a trajectory of ASE: `ase convert a.traj a.xyz`"),
        ("CCO", "does not exist; if it is a SMILES, write smiles:CCO"),
        ("c1ccccc1", "write smiles:c1ccccc1"),
        ("[NH4+]", "write smiles:[NH4+]"),
        ("h3.xyz", "does not exist; did you mean 'h2.xyz'?"),
        ("elsewhere/h2.xyz", "does not exist; give an XYZ"),
        ("protein.pdb", "`obabel protein.pdb -O protein.xyz` makes an XYZ file"),
        ("job.toml", "is a job: `cuanto run job.toml`"),
        ("ne.inp", "`cuanto atom ne.inp`"),
        ("kept.h5", "is a checkpoint: give the molecule's own file, and --restart kept.h5"),
        ("words.xyz", "words.xyz, line 1: expected the number of atoms"),
    ],
)
def test_what_is_no_molecule(given: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("protein.pdb").write_text("ATOM      1  N   MET A   1      38.198  19.582  28.290\n")
    Path("kept.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    Path("words.xyz").write_text("water\n")
    assert message in said(capsys, "energy", given)


def test_a_folder_of_many(capsys: pytest.CaptureFixture[str]) -> None:
    """Of which one is no molecule: the others are computed."""
    Path("a.pdb").write_text("ATOM\n")
    with pytest.raises(SystemExit) as leaving:
        run(["energy", "h2.xyz", "a.pdb", "-m", "pm6", "--backend", "cpu", "--out", "t.csv", "--workers", "0"])
    assert leaving.value.code == 2 and "`obabel a.pdb -O a.xyz`" in capsys.readouterr().out


# ------------------------------------------------------------------------------------------------- no meaning

OPTIONS = ("screening", "storage", "mopac_compatible")
NO_MEANING = [
    ("hf", {"grid": "fine"}, "grid is not for hf, which integrates nothing on one: leave it out"),
    ("uhf-d4", {"grid": (50, 194)}, "grid is not for uhf-d4"),
    ("pm6", {"grid": "fine"}, "grid is not for pm6: leave it out, or use a functional"),
    ("pm6", {"fitting": "jk"}, "fitting is not for pm6: leave it out, or use hf or a functional"),
    ("am1", {"auxbasis": "cc-pvdz-jkfit"}, "auxbasis is not for am1"),
    ("upm6", {"precision": "single"}, "precision is not for upm6"),
    ("pm6", {"field": [0.0, 0.0, 0.1]}, "field is not for pm6"),
    ("pm6", {"screening": 1e-10}, "screening is not for pm6"),
    ("pm6", {"storage": "stored"}, "storage is not for pm6"),
    ("pbe", {"mopac_compatible": True}, "mopac_compatible is not for pbe: leave it out, or use mndo, am1, pm3 or pm6"),
    ("pbe", {"fitting": "none", "auxbasis": "cc-pvdz-jkfit"}, "auxbasis is of no use with fitting='none'"),
]


@pytest.mark.parametrize(("method", "keywords", "message"), NO_MEANING)
def test_what_has_no_meaning_is_refused(
    method: str, keywords: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By Python, by the command line, in a job, in a QCSchema input and for many molecules, in the same words."""
    molecule = cuanto.Molecule.from_string(H2)
    for call in (cuanto.energy, lambda one, *given, **named: energies([one], *given, **named)):
        with pytest.raises(InputError) as refused:
            call(molecule, method, **keywords)
        assert message in str(refused.value)
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in keywords.items()}
    words = {name: ",".join(map(str, v)) if isinstance(v, list) else str(v).lower() for name, v in plain.items()}
    options = [word for name, text in words.items() for word in ("-o", f"{name}={text}")]
    assert message in said(capsys, "energy", "h2.xyz", "-m", method, *options)
    assert message in said(capsys, "energy", "h2.xyz", "-m", method, *options, "--out", "t.csv")
    job = "".join(f"{name} = {json.dumps(value)}\n" for name, value in plain.items() if name not in OPTIONS)
    job += "[options]\n" + "".join(f"{name} = {json.dumps(v)}\n" for name, v in plain.items() if name in OPTIONS)
    Path("job.toml").write_text(f'molecule = "h2.xyz"\nmethod = "{method}"\n{job}')
    assert said(capsys, "run", "job.toml").startswith(f"job.toml: {message}")
    model = {"method": method} | ({} if method in SEMIEMPIRICAL else {"basis": "sto-3g"})
    schema = {"molecule": {"symbols": ["He"], "geometry": [0, 0, 0]}, "model": model, "keywords": plain}
    assert message in cuanto.compute({**schema, "driver": "energy"})["error"]["error_message"]


def test_what_asks_for_nothing_is_not_refused(capsys: pytest.CaptureFixture[str]) -> None:
    molecule = cuanto.Molecule.from_string(H2)
    found = cuanto.energy(molecule, "pm6", fitting="auto", precision="double", storage="auto", backend="cpu")
    assert found.converged
    with pytest.raises(InputError, match="basis is not for pm6"):
        cuanto.energy(molecule, "pm6", "sto-3g")
    schema = {"symbols": ["He"], "geometry": [0, 0, 0]}
    asked = {"molecule": schema, "model": {"method": "pbe", "basis": "cc-pvdz"}, "keywords": {"grid": "coarse"}}
    Path("he.json").write_text(json.dumps(asked))
    with pytest.raises(SystemExit) as leaving:  # the grid was of the file's functional, not of this method
        run(["energy", "he.json", "-m", "hf", "--backend", "cpu", "-q"])
    assert leaving.value.code is None and "he -2.855" in capsys.readouterr().out


# ------------------------------------------------------------------------------------------------- jobs


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('method = "hartree"', "method: unknown method 'hartree'"),
        ('method = ""', "the method is empty"),
        ('fitting = "k"', "fitting: unknown fitting 'k': choose auto, none, j, jk"),
        ('precision = "half"', "precision: unknown precision 'half'"),
        ('basis = "cc-pvdx"', "basis: unknown basis 'cc-pvdx'"),
        ('auxbasis = "cc-pvdx-jkfit"', "auxbasis: "),
        ('method = "pbe"\ngrid = "fien"', "grid: unknown grid 'fien'; did you mean 'fine'?"),
        ('guess = "magic"', "guess: unknown guess 'magic': choose sad, core"),
        ("field = [0.0, 1.0]", "field: a field has three components"),
        ('backend = "abacus"', "backend: "),
        ('max_memory = "lots"', "max_memory 'lots': give a size"),
        ('restart = "nowhere.h5"', "restart: "),
        ("multiplicity = 2", "molecule: h2.xyz: multiplicity 2 is impossible with 2 electrons (charge 0): it can be"),
        ("[options]\ndamping = 2.0", "damping is 2: give a number from 0 to 0.95"),
        ('[output]\njson = "h2.xyz"', "h2.xyz would overwrite the input"),
        ('method = "pm6"\nbasis = "sto-3g"', "basis is not for pm6: leave it out"),
    ],
)
def test_values_of_a_job_name_the_file_and_the_key(
    lines: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("job.toml").write_text(f'molecule = "h2.xyz"\n{lines}')
    line = said(capsys, "run", "job.toml")
    assert line.startswith("job.toml: ") and line.count("job.toml") <= 2 and message in line, line
