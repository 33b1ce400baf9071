"""Input errors of all kinds: one line that says what is wrong and what would work."""

from __future__ import annotations

import json
import logging
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import cuanto
import cuanto.log
from atom_inputs import NITROGEN
from cuanto.basis.library import is_file
from cuanto.batch import energies
from cuanto.cli.lines import as_flags
from cuanto.cli.main import run
from cuanto.cli.run import read_job
from cuanto.cli.usage import usage_line
from cuanto.errors import InputError
from cuanto.grid.settings import LEVELS
from cuanto.interfaces.sources import Model, choose_model, read_source
from cuanto.log import Timings
from cuanto.methods import METHODS, SEMIEMPIRICAL
from fitting_cases import DATA

H2 = "2\n\nH 0 0 0\nH 0 0 0.74\n"
FOREIGN = re.compile(r"valid (integer|number)|Input should|Value error|Invalid value|No such|Missing|Got unexpected")
"""Phrases of typer, click and pydantic that must not appear."""
COLOUR = re.compile(r"\x1b\[[\d;]*3[0-7]")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    Path("h2.xyz").write_text(H2)
    return tmp_path


def error_output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on standard error of a command that ends with status 2."""
    with pytest.raises(SystemExit) as stopped:
        run(arguments)
    out, err = capsys.readouterr()
    assert stopped.value.code == 2 and out == "", out
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
        ("energy h2.xyz --foo", "there is no option --foo; see `cuanto energy --help`"),
        ("energy", "MOLECULE is missing: XYZ, QCSchema (JSON) or Molden file"),
        ("energ h2.xyz", "there is no command 'energ'; did you mean energy? See `cuanto --help`"),
        ("energy h2.xyz b3lyp 6-31g", "file 'b3lyp' does not exist; a method is given with -m b3lyp, a basis with -b"),
        ("sp h2.xyz", "there is no command 'sp': use `cuanto energy`;"),
        ("h2.xyz -m pm6", "a command is missing before 'h2.xyz': for the energy, use `cuanto energy h2.xyz`;"),
        ("energy h2.xyz -m B3LYP/6-31G(d)", "give the method B3LYP and the basis 6-31G(d) (on the command line -m"),
        ("energy h2.xyz -m mp2/cc-pvdz", "not implemented: mp2;"),
        ("energy h2.xyz --maxiter 200", "as -o max_iterations=200, or of steps of a search as --max-steps"),
        ("atom --c x", "--c 'x': give a number;"),
        ("basis-search", "--elements is missing: Elements, such as Ne,Ar,Kr or He-Ne;"),
        ("basis-search -e He --diffuse 1.5", "--diffuse '1.5': give a whole number of at least 0;"),
        ("selftest now", "unexpected argument 'now';"),
        ("md h2.xyz --field 0 0 0.01", "argument '0' '0.01': write the values of one option together, such as --field"),
        ("energy h2.xyz -o h2.json", "files are written with --json, --molden, --report"),
        ("energy h2.xyz -m b3lip", "unknown method 'b3lip'; did you mean b3lyp"),
        ("atom ne", "ne is not an input file: for the element write --element Ne"),
        ("run h2.xyz", "to compute a molecule, use `cuanto energy h2.xyz`"),
        ("run g.com", "convert other formats with `obabel g.com -O g.xyz`"),
        ("run orca.inp", "it looks like the input of another program: write its coordinates to orca.xyz"),
        ("energy h2.xyz -o damping=2", "--option: damping is 2: give a number from 0 to 0.95"),
    ],
)
def test_wrong_options(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("g.com").write_text("# b3lyp/6-31g*\n\nhydrogen\n\n0 1\nH 0 0 0\nH 0 0 0.74\n\n")
    Path("orca.inp").write_text("! B3LYP def2-SVP\n* xyz 0 1\nH 0 0 0\nH 0 0 0.74\n*\n")
    assert message in error_output(capsys, *arguments.split())


def test_other_releases_of_typer() -> None:
    """Other releases raise errors of click, with other texts and attributes; unknown messages are passed on."""

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


def test_help_names_all_methods_and_formats(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["energy", "--help"])
    words = capsys.readouterr().out
    for name in (*LEVELS, *METHODS, *(name for name in SEMIEMPIRICAL if name[0] != "u"), "upm6", "ub3lyp"):
        assert name in words, name
    for ending in (".csv", ".jsonl", ".parquet", "HTML", "QCSchema", "Molden", "HDF5"):
        assert ending in words, ending


def read_terminal(mine: int, seconds: float) -> str:
    """Read everything until the other side is closed; a process blocks if its terminal is not read."""
    text, end = b"", time.monotonic() + seconds
    while select.select([mine], [], [], max(0.0, end - time.monotonic()))[0]:
        try:
            piece = os.read(mine, 65536)
        except OSError:  # on Linux, reading a closed terminal is an error
            piece = b""
        if not piece:
            return text.decode()
        text += piece
    raise TimeoutError(f"no end after {seconds:.0f} s: {text!r}")


@pytest.mark.parametrize("arguments", [["--help"], ["--loud"]])
def test_no_color_is_respected(arguments: list[str]) -> None:
    """https://no-color.org; without it, a terminal gets colours."""

    def shown(**environment: str) -> str:
        others = ("NO_COLOR", "FORCE_COLOR", "CI", "GITHUB_ACTIONS")
        env = {name: value for name, value in os.environ.items() if name not in others}
        env |= {"TERM": "xterm-256color", **environment}
        mine, theirs = pty.openpty()
        command = [sys.executable, "-m", "cuanto", *arguments]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=env) as process:
            os.close(theirs)
            try:
                return read_terminal(mine, seconds=120.0)
            finally:
                os.close(mine)
                process.kill()

    assert not COLOUR.search(shown(NO_COLOR="1")) and COLOUR.search(shown())


def test_verbose_leaves_out_fast_steps(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.0005, 1.0, 1.002])
    monkeypatch.setattr(cuanto.log, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    timings = Timings()
    with caplog.at_level(logging.INFO, "cuanto"):
        for name in ("nothing", "something"):
            with timings.measure(name):
                pass
    assert caplog.messages == ["something: 0.002 s"]
    assert set(timings.seconds) == {"nothing", "something"}


# ------------------------------------------------------------------------------------ names that are not molecules


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "the name of the molecule is empty: give an XYZ, QCSchema (JSON) or Molden file, - for standard input"),
        (".", "'.' is a folder: name a file in it, or use --out"),
        ("a.traj", "convert an ASE trajectory with `ase convert a.traj a.xyz`, then"),
        ("b.traj", "'b.traj' does not exist; did you mean 'a.traj'?"),
        ("none.pdb", "'none.pdb' does not exist; give an XYZ"),
        ("jobs.toml", "'jobs.toml' does not exist; did you mean 'job.toml'?"),
        ("CCO", "does not exist; if it is a SMILES, write smiles:CCO"),
        ("0.01", "'0.01' does not exist; write the values of one option together, such as --field 0,0,0.01"),
        ("c1ccccc1", "write smiles:c1ccccc1"),
        ("[NH4+]", "write smiles:[NH4+]"),
        ("h3.xyz", "does not exist; did you mean 'h2.xyz'?"),
        ("elsewhere/h2.xyz", "does not exist; give an XYZ"),
        ("protein.pdb", "convert other formats with `obabel protein.pdb -O protein.xyz`"),
        ("bad.out", "bad.out, line 4: coordinate 'x' is not a number; convert other formats"),
        ("mol.smi", "if the file has SMILES, give each of them as smiles:CCO"),
        ("job.toml", "to run a job, use `cuanto run job.toml`"),
        ("ne.inp", "`cuanto atom ne.inp`"),
        *(
            (name, f"it looks like the input of another program: write its coordinates to {Path(name).stem}.xyz")
            for name in ("orca.inp", "orca.txt", "gamess.inp", "psi4.inp", "unknown.inp")
        ),
        *((name, "Z-matrices are not read: write Cartesian coordinates to w.xyz") for name in ("w.zmat", "w.txt")),
        ("z.xyz", "Z-matrices are not read: write Cartesian coordinates to an XYZ file"),
        ("coord", "convert it with `obabel -itmol coord -O coord.xyz`"),
        ("POSCAR", "it looks like a POSCAR file: convert it with `ase convert -o xyz POSCAR POSCAR.xyz`"),
        ("kept.h5", "is a checkpoint: give the file of the molecule, and --restart kept.h5"),
        ("words.xyz", "words.xyz, line 1: expected the number of atoms"),
    ],
)
def test_names_that_are_not_molecules(given: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("protein.pdb").write_text("ATOM      1  N   MET A   1      38.198  19.582  28.290\n")
    Path("kept.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    Path("a.traj").write_bytes(b"- of Ulm\xff\0")
    Path("words.xyz").write_text("water\n")
    Path("job.toml").write_text('molecule = "h2.xyz"\n')
    Path("mol.smi").write_text("CCO\n")
    Path("ne.inp").write_text(NITROGEN)
    for name in ("orca.inp", "orca.txt"):
        Path(name).write_text("# water\n! B3LYP def2-SVP\n* xyz 0 1\nH 0 0 0\nH 0 0 0.74\n*\n")
    Path("gamess.inp").write_text(" $CONTRL SCFTYP=RHF $END\n $BASIS GBASIS=STO $END\n $DATA\nwater\nC1\n $END\n")
    Path("psi4.inp").write_text("molecule water {\nO 0 0 0\n}\nenergy('scf')\n")
    Path("unknown.inp").write_text("something\n")
    for name in ("w.zmat", "w.txt", "z.xyz"):
        Path(name).write_text("O\nH 1 0.96\nH 1 0.96 2 104.5\n")
    Path("coord").write_text("$coord\n0 0 0 h\n0 0 1.4 h\n$end\n")
    lattice = "9.0 0.0 0.0\n0.0 9.0 0.0\n0.0 0.0 9.0\n"
    Path("POSCAR").write_text(f"water\n1.0\n{lattice}O H\n1 2\nCartesian\n0 0 0.1\n0 0.8 -0.5\n0 -0.8 -0.5\n")
    Path("bad.out").write_text(H2.replace("0.74", "x"))
    assert message in error_output(capsys, "energy", given)


@pytest.mark.parametrize("name", ["bad.inp", "bad.txt"])
def test_a_wrong_xyz_file_is_no_input_of_another_program(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(name).write_text("2\n! a comment\nH 0 0 0\nH 0 0 x\n")
    assert error_output(capsys, "energy", name) == f"{name}, line 4: coordinate 'x' is not a number"


def test_a_bad_file_among_many_molecules(capsys: pytest.CaptureFixture[str]) -> None:
    """The others are computed."""
    Path("a.pdb").write_text("ATOM\n")
    with pytest.raises(SystemExit) as stopped:
        run(["energy", "h2.xyz", "a.pdb", "-m", "pm6", "--backend", "cpu", "--out", "t.csv", "--workers", "0"])
    assert stopped.value.code == 2 and "`obabel a.pdb -O a.xyz`" in capsys.readouterr().out


# ------------------------------------------------------------------------------------- options that do not apply

OPTIONS = ("screening", "storage", "mopac_compatible")
NOT_APPLICABLE = [
    ("hf", {"grid": "fine"}, "grid does not apply to hf: leave it out, or use a functional"),
    ("uhf-d4", {"grid": (50, 194)}, "grid does not apply to uhf-d4"),
    ("pm6", {"grid": "fine"}, "grid does not apply to pm6: leave it out, or use a functional"),
    ("pm6", {"fitting": "jk"}, "fitting does not apply to pm6: leave it out, or use hf or a functional"),
    ("am1", {"auxbasis": "cc-pvdz-jkfit"}, "auxbasis does not apply to am1"),
    ("upm6", {"precision": "single"}, "precision does not apply to upm6"),
    ("pm6", {"field": [0.0, 0.0, 0.1]}, "field does not apply to pm6"),
    ("pm6", {"screening": 1e-10}, "screening does not apply to pm6"),
    ("pm6", {"storage": "stored"}, "storage does not apply to pm6"),
    (
        "pbe",
        {"mopac_compatible": True},
        "mopac_compatible does not apply to pbe: leave it out, or use mndo, am1, pm3, pm6 or rm1",
    ),
    ("pbe", {"fitting": "none", "auxbasis": "cc-pvdz-jkfit"}, "auxbasis has no effect with fitting='none'"),
    ("hf", {"speed_of_light": 10.0}, "speed_of_light has no effect without relativity: add relativity='x2c'"),
]


@pytest.mark.parametrize(("method", "keywords", "message"), NOT_APPLICABLE)
def test_options_that_do_not_apply_are_refused(
    method: str, keywords: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message is the same in Python, on the command line (with flags), in a job, in QCSchema and for many."""
    molecule = cuanto.Molecule.from_string(H2)
    for call in (cuanto.energy, lambda one, *given, **named: energies([one], *given, **named)):
        with pytest.raises(InputError) as refused:
            call(molecule, method, **keywords)
        assert message in str(refused.value)
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in keywords.items()}
    words = {name: ",".join(map(str, v)) if isinstance(v, list) else str(v).lower() for name, v in plain.items()}
    options = [word for name, text in words.items() for word in ("-o", f"{name}={text}")]
    assert as_flags(message) in error_output(capsys, "energy", "h2.xyz", "-m", method, *options)
    assert as_flags(message) in error_output(capsys, "energy", "h2.xyz", "-m", method, *options, "--out", "t.csv")
    job = "".join(f"{name} = {json.dumps(value)}\n" for name, value in plain.items() if name not in OPTIONS)
    job += "[options]\n" + "".join(f"{name} = {json.dumps(v)}\n" for name, v in plain.items() if name in OPTIONS)
    Path("job.toml").write_text(f'molecule = "h2.xyz"\nmethod = "{method}"\n{job}')
    assert error_output(capsys, "run", "job.toml").startswith(f"job.toml: {message}")
    model = {"method": method} | ({} if method in SEMIEMPIRICAL else {"basis": "sto-3g"})
    schema = {"molecule": {"symbols": ["He"], "geometry": [0, 0, 0]}, "model": model, "keywords": plain}
    assert message in cuanto.compute({**schema, "driver": "energy"})["error"]["error_message"]


def test_default_values_are_never_refused(capsys: pytest.CaptureFixture[str]) -> None:
    molecule = cuanto.Molecule.from_string(H2)
    found = cuanto.energy(molecule, "pm6", fitting="auto", precision="double", storage="auto", backend="cpu")
    assert found.converged
    with pytest.raises(InputError, match="basis does not apply to pm6"):
        cuanto.energy(molecule, "pm6", "sto-3g")
    schema = {"symbols": ["He"], "geometry": [0, 0, 0]}
    inputs = {"molecule": schema, "model": {"method": "pbe", "basis": "cc-pvdz"}, "keywords": {"grid": "coarse"}}
    Path("he.json").write_text(json.dumps(inputs))
    with pytest.raises(
        SystemExit
    ) as stopped:  # the grid in the file belongs to its functional and is dropped for another method
        run(["energy", "he.json", "-m", "hf", "--backend", "cpu", "-q"])
    assert stopped.value.code is None and "he -2.855" in capsys.readouterr().out


# ------------------------------------------------------------------------------------------------- files with a model

MANY = ("--out", "t.csv", "--workers", "0")


def write_input(name: str, method: str, basis: str | None = None, **keywords: Any) -> str:
    """A QCSchema input."""
    hydrogen = {"symbols": ["H", "H"], "geometry": [0, 0, 0, 0, 0, 1.4]}
    inputs = {"molecule": hydrogen, "model": {"method": method, "basis": basis}, "keywords": keywords}
    Path(name).write_text(json.dumps(inputs))
    return name


def output_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """Output of a command that succeeds."""
    with pytest.raises(SystemExit) as stopped:
        run(["energy", *arguments, "--backend", "cpu", "-q"])
    out, err = capsys.readouterr()
    assert stopped.value.code in (None, 0), err + out
    return out, err


@pytest.mark.parametrize("many", [(), MANY])
def test_keywords_that_no_longer_apply_are_dropped(many: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """An auxiliary basis without fitting, and a guess and fitting without a basis, for one molecule and for many."""
    fitted = write_input("fitted.json", "hf", "cc-pvdz", auxbasis="cc-pvdz-jkfit")
    output_of(capsys, fitted, "--fitting", "none", *many)
    output_of(capsys, write_input("core.json", "hf", "cc-pvdz", guess="core", fitting="jk"), "-m", "pm6", *many)


@pytest.mark.parametrize(
    ("before", "method", "kept"),
    [
        ({"grid": "coarse", "max_iterations": 7}, "blyp", {"grid", "max_iterations"}),
        ({"grid": "coarse", "max_iterations": 7}, "hf", {"max_iterations"}),
        ({"fitting": "jk", "guess": "core", "max_iterations": 7}, "pm6", {"max_iterations"}),
        ({"mopac_compatible": True}, "pbe", set()),
        ({"mopac_compatible": True}, "am1", {"mopac_compatible"}),
        ({"auxbasis": "cc-pvdz-jkfit"}, "hf", {"auxbasis"}),
    ],
)
def test_keywords_taken_from_a_file(before: dict[str, Any], method: str, kept: set[str]) -> None:
    source = read_source(write_input("h.json", "pbe", "cc-pvdz", **before))
    assert set(choose_model(source, Model(method)).keywords) == kept
    assert "auxbasis" not in choose_model(source, Model(method, "sto-3g")).keywords
    assert set(choose_model(source, Model()).keywords) == set(before)


@pytest.mark.parametrize(("name", "value"), [("field", [0, 0, 0.02]), ("point_charges", [[0.5], [[0, 0, 6.0]]])])
def test_surroundings_of_a_file_are_not_dropped(capsys: pytest.CaptureFixture[str], name: str, value: Any) -> None:
    path = write_input("h.json", "pbe", "sto-3g", grid="coarse", **{name: value})
    for words in ((), ("--out", "table.csv"), ("--json", "new.json")):
        message = error_output(capsys, "energy", path, "-m", "pm6", *words)
        assert f"pm6 does not support the {name} of the file: use " in message
    assert not Path("table.csv").exists()
    assert choose_model(read_source(path), Model("hf")).keywords == {name: value}


def test_a_basis_is_refused_by_methods_without_basis(capsys: pytest.CaptureFixture[str]) -> None:
    message, given = "basis does not apply to pm6: leave it out", write_input("h.json", "pm6", "sto-3g")
    assert message in error_output(capsys, "energy", given)
    assert message in error_output(capsys, "energy", given, *MANY)
    schema = {**json.loads(Path(given).read_text()), "driver": "energy"}
    assert message in cuanto.compute(schema)["error"]["error_message"]
    assert message in error_output(capsys, "energy", "h2.xyz", write_input("good.json", "pm6"), "-b", "sto-3g", *MANY)
    for empty in ("", None):
        output_of(capsys, write_input("h.json", "pm6", empty), *MANY)


@pytest.mark.parametrize("order", [1, -1])
def test_options_are_checked_for_every_method(order: int, capsys: pytest.CaptureFixture[str]) -> None:
    files = [write_input("a.json", "pbe", "cc-pvdz"), write_input("b.json", "hf", "cc-pvdz")][::order]
    assert "grid does not apply to hf" in error_output(capsys, "energy", *files, "-o", "grid=coarse", *MANY)


@pytest.mark.parametrize(
    ("protocols", "accepted"), [({"wavefunction": "all"}, True), ({"colour": "red"}, False), ("all", False)]
)
def test_a_finished_calculation_is_never_lost(
    protocols: object, accepted: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Extra keys in a QCSchema 2 input; the answer is written even if QCElemental does not accept it."""
    model = {"driver": "energy", "model": {"method": "hf", "basis": "cc-pvdz"}, "comment": "mine"}
    about = {"schema_name": "qcschema_atomic_input", "schema_version": 2, "comment": "mine"}
    helium = {"symbols": ["He"], "geometry": [0, 0, 0]}
    inputs = {**about, "molecule": helium, "specification": {**model, "protocols": protocols}}
    Path("he.json").write_text(json.dumps(inputs))
    _, err = output_of(capsys, "he.json", "--json", "answer.json")
    answer = json.loads(Path("answer.json").read_text())
    assert answer["success"] and answer["return_result"] == pytest.approx(-2.8551604, abs=1e-4)
    assert "comment" not in answer["input_data"] and "comment" not in answer["input_data"]["specification"]
    assert err == "" if accepted else err.count("\n") == 1 and "QCElemental does not accept" in err


# ------------------------------------------------------------------------------------------------- jobs


@pytest.mark.parametrize("folder_of_job", [".", "sub"])
def test_paths_of_a_job_stay_as_they_are(folder_of_job: str) -> None:
    """`./basis` without an ending is a file, `./-` is not standard output, and `~` is not expanded."""
    Path(folder_of_job).mkdir(exist_ok=True)
    (Path(folder_of_job) / "mybasis").write_text("")
    job = Path(folder_of_job) / "job.toml"
    job.write_text('molecule = "./-"\nbasis = "./mybasis"\nrestart = "~/kept.h5"\n[output]\njson = "./-"\n')
    found = read_job(job)
    assert found.basis is not None and is_file(found.basis)
    for path in (found.sources[0], found.outputs["json"], found.restart):
        assert path is not None and path != "-" and not path.startswith("~")
    job.write_text('molecule = "h2.xyz"\n')
    assert read_job(job).sources == [os.path.join("" if folder_of_job == "." else folder_of_job, "h2.xyz")]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('molecule = "things"', "'things' is a folder: name a file in it"),
        ('molecule = "kept.h5"', "is a checkpoint: give the file of the molecule, and this one as restart"),
        ('molecule = "a.traj"', "`ase convert a.traj a.xyz`"),
        (
            'molecule = "elsewhere"',
            "(JSON) or Molden file, 'H 0 0 0; H 0 0 0.74' or smiles:CCO",
        ),
        ('molecule = ["h2.xyz", "h3.xyz"]\n[output]\njson = "a.json"', "json a.json would hold several results"),
    ],
)
def test_hints_of_a_job_name_no_options(lines: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("things").mkdir()
    Path("kept.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    Path("a.traj").write_bytes(b"- of Ulm\xff\0")
    Path("h3.xyz").write_text(H2)
    Path("job.toml").write_text(lines)
    line = error_output(capsys, "run", "job.toml")
    assert message in line and "--" not in line, line


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
        ('method = "pm6"\nbasis = "sto-3g"', "basis does not apply to pm6: leave it out"),
    ],
)
def test_values_of_a_job_name_the_file_and_the_key(
    lines: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("job.toml").write_text(f'molecule = "h2.xyz"\n{lines}')
    line = error_output(capsys, "run", "job.toml")
    assert line.startswith("job.toml: ") and line.count("job.toml") <= 2 and message in line, line
