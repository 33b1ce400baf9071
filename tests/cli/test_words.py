"""Options of other programs, mixed basis sets, restarts, threads, and what the terminal shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cuanto.advice import ADVICE, advice_about
from cuanto.backends.cpu.backend import cores
from cuanto.cli.lines import as_flags, in_a_job
from cuanto.cli.main import run
from cuanto.errors import REMARKS
from cuanto.log import logger
from cuanto.options import OPTIONS

WATER = "3\n\nO 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n"
SEARCHES = ("ts", "irc", "scan", "convergence", "freeze")
"""Keywords of `cuanto.optimize`, which the advice shows with the function."""
FAST = ["--backend", "cpu", "--fitting", "none"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("water.xyz").write_text(WATER)
    Path("h2.xyz").write_text("2\n\nH 0 0 0\nH 0 0 0.74\n")
    return tmp_path


def cuanto(*arguments: str) -> int:
    with pytest.raises(SystemExit) as leaving:
        run(list(arguments))
    assert isinstance(leaving.value.code, int | None)
    return leaving.value.code or 0


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("--nprocs", "--threads 4"),
        ("--spin", "--multiplicity"),
        ("--solvent", "-o 'point_charges=[[-0.8, 0.4], [[0, 0, 5], [0, 1, 6]]]'"),
        ("--functional", "-m pbe0"),
        ("--mem", "limit the memory, for example to 4 GB, with --max-memory 4GB; see"),
        ("--opt", "`cuanto optimize`"),
        ("--d3", "-m b3lyp-d4"),
        ("--d3bj", "-m b3lyp-d4"),
        ("--ri", "--fitting none"),
        ("--no-ri", "--fitting none"),
        ("--smiles", "smiles:CCO"),
        ("--jobs", "--workers"),
        ("-j", "--threads 4"),
        ("-t", "--threads 4"),
        ("--ecp", "-b def2-svp"),
        ("--nroots", "excited states are not implemented"),
        ("--device", "--backend cuda"),
        ("--ts", "`cuanto optimize FILE --ts`"),
        ("--gradient", "`cuanto gradient`"),
        ("--forces", "`cuanto gradient`"),
        ("--scf-tol", "-o energy_tolerance=1e-10"),
        ("--constraints", "`cuanto optimize FILE --freeze 'distance 1 2'`"),
        ("--fmax", "`cuanto optimize FILE --convergence tight`"),
        ("--geom-maxiter", "--max-steps 200"),
        ("-T", "--threads 4"),
        ("-c", "--charge -1"),
        ("-0", "write the values of one option together, such as --field 0,0,0.01"),
    ],
)
def test_options_of_other_programs(option: str, advice: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cuanto("energy", "h2.xyz", option, "4") == 2
    error = capsys.readouterr().err
    assert error.startswith(f"cuanto: there is no option {option}: ") and advice in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("--mult", "give the configuration with --config '[Ar] 3d5 4s1'"),
        ("--spin", "give the configuration with --config '[Ar] 3d5 4s1'"),
        ("--threads", "CUANTO_THREADS"),
        ("--solvent", "there is no option --solvent; see `cuanto atom --help`"),
    ],
)
def test_advice_about_atoms(option: str, advice: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`cuanto atom` has other options than the commands for molecules."""
    assert cuanto("atom", "-e", "O", option, "3") == 2
    error = capsys.readouterr().err
    assert advice in error and "--multiplicity" not in error and "--threads 4" not in error


def test_advice_is_written_for_both_callers() -> None:
    """Texts name options as in Python, and the command line has a flag for each of them."""
    assert advice_about("--Max-Cycle") == advice_about("max_cycle") == ADVICE["maxcycle"]
    for name, text in ADVICE.items():
        assert re.fullmatch("[a-z0-9]+", name) and name not in OPTIONS
        assert not re.search(r"(?<![\w-])(-o|-m|-b|--multiplicity|--fitting|--backend|--max-memory) ", text), text
        found = [one for one in re.findall(r"\b(\w+)=", as_flags(text)) if one not in SEARCHES]
        assert all(f"-o {one}=" in as_flags(text) or f"-o '{one}=" in as_flags(text) for one in found), text


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("use relativity='x2c', or a basis", "use --relativity x2c, or a basis"),
        ("give max_memory=4e9 or max_memory=500", "give --max-memory 4GB or --max-memory 500"),
        ("use guess=core", "use --guess core"),
        ("try damping=0.5 or max_iterations=200", "try -o damping=0.5 or -o max_iterations=200"),
        ("(storage='direct')", "(-o storage=direct)"),
        ("point_charges=[[1, 2], [3]]", "-o 'point_charges=[[1, 2], [3]]'"),
        ("basis='6-31g*'", "-b '6-31g*'"),
        ("write -o damping=0.5", "write -o damping=0.5"),
        ("file 'charge=1' does not exist", "file 'charge=1' does not exist"),
        ("'O 0 0 0; charge=-1', atom 2; write charge=-1", "'O 0 0 0; charge=-1', atom 2; write --charge -1"),
        ('"it\'s; charge=1" is wrong', '"it\'s; charge=1" is wrong'),
        ("the molecule's charge=1 and basis='sto-3g'", "the molecule's --charge 1 and -b sto-3g"),
        ("H=def2-svp, default=def2-svp", "H=def2-svp, default=def2-svp"),
    ],
)
def test_options_are_printed_as_flags(text: str, flags: str) -> None:
    assert as_flags(text) == flags
    token = in_a_job.set(True)
    try:
        assert as_flags(text) == text
    finally:
        in_a_job.reset(token)


def test_a_job_keeps_the_names_of_its_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """The same error on the command line and in a job file."""
    call = ["energy", "h2.xyz", "-b", "sto-3g", "--smearing", "0.01", "--diagonaliser", "pseudo"]
    assert cuanto(*call) == 2 and "-o diagonaliser=pseudo needs" in capsys.readouterr().err
    Path("job.toml").write_text('molecule = "h2.xyz"\n[options]\nsmearing = 0.01\ndiagonaliser = "pseudo"\n')
    assert cuanto("run", "job.toml") == 2 and "diagonaliser='pseudo' needs" in capsys.readouterr().err
    Path("job.toml").write_text('molecule = "h2.xyz"\nsolvent = "water"\n')
    assert cuanto("run", "job.toml") == 2 and " point_charges=[[-0.8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("scan", "--scan 'distance 1 2 1.0 2.0 11'"),
        ("ts", "`cuanto optimize FILE --ts`"),
        ("td", "excited states are not implemented"),
        ("tddft", "excited states are not implemented"),
        ("neb", "nudged elastic bands are not implemented"),
    ],
)
def test_commands_of_other_programs(command: str, advice: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cuanto(command, "h2.xyz") == 2
    error = capsys.readouterr().err
    assert error.startswith(f"cuanto: there is no command '{command}': ") and advice in error


@pytest.mark.parametrize(
    ("option", "meant"),
    [("--foo", ""), ("--metod", "--method"), ("--basis-set-name", "--basis"), ("--level_shift", "--level-shift")],
)
def test_only_similar_options_are_suggested(option: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cuanto("energy", "h2.xyz", option, "1") == 2
    hint = f"; did you mean {meant}? See" if meant else "; see"
    assert f"there is no option {option}{hint}" in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name, option in OPTIONS.items() if not option.flags])
def test_every_option_is_a_flag(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that help texts do not list are checked as after -o."""
    flag, switch = f"--{name.replace('_', '-')}", OPTIONS[name].kind == "switch"
    assert cuanto("energy", "h2.xyz", flag, *([] if switch else ["wrong"]), "-o", "damping=9") == 2
    assert "there is no option" not in capsys.readouterr().err


def test_an_option_as_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    energies = []
    for more in (["--field", "0,0,0.01"], ["-o", "field=0,0,0.01"], []):
        assert cuanto("energy", "h2.xyz", "-b", "sto-3g", *FAST, "-q", *more) == 0
        energies.append(float(capsys.readouterr().out.split()[1]))
    assert energies[0] == energies[1] != energies[2]
    assert cuanto("energy", "h2.xyz", "-m", "pm6", "--unconverged-gradient", "-q") == 0


@pytest.mark.parametrize("command", ["energy", "gradient", "optimize", "frequencies", "md"])
def test_quiet_prints_hints_on_standard_error(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("o2.xyz").write_text("2\n\nO 0 0 0\nO 0 0 1.1\n")
    more = ["--steps", "1"] if command == "md" else []
    assert cuanto(command, "o2.xyz", "-m", "pm6", "--backend", "cpu", "-q", *more) == 0
    out, err = capsys.readouterr()
    assert len([line for line in out.splitlines() if "drift" not in line]) == 1 and not any(r in out for r in REMARKS)
    assert err.count("cuanto: o2: hint: the ground state of this molecule has multiplicity 3") == 1


def test_quiet_prints_warnings_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    Path("hi.xyz").write_text("2\n\nI 0 0 0\nH 0 0 1.6\n")
    line = (
        "WARNING: I without relativity: use --relativity x2c with x2c-SVPall or x2c-TZVPall, or core potentials, for "
        "example def2-SVP or def2-TZVP"
    )
    call = ["energy", "hi.xyz", "-b", "sto-3g", *FAST]
    assert cuanto(*call, "-q") == 0
    out, err = capsys.readouterr()
    assert out.count("\n") == 1 and err == f"cuanto: hi: {line}\n"
    assert cuanto(*call) == 0
    out, err = capsys.readouterr()
    assert f" {line}\n" in out and err == ""
    assert cuanto(*call, "-q", "--out", "a.csv", "--workers", "0") == 0
    out, err = capsys.readouterr()
    assert out.count("\n") == 1 and err == f"hi: {line}\n"


@pytest.mark.parametrize("basis", ["O=6-31g*,*=sto-3g", "O=6-31g*,default=sto-3g", "O=6-31g*,sto-3g"])
def test_a_basis_for_all_other_elements(basis: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cuanto("energy", "water.xyz", "-b", basis, *FAST) == 0
    assert "O: 6-31g*, H: sto-3g, 17 functions, Cartesian" in capsys.readouterr().out


@pytest.mark.parametrize(("basis", "kind"), [("6-31g*", "19 functions, Cartesian"), ("def2-svp", "24 functions, sph")])
def test_headings_say_what_d_functions_are(basis: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In every command; without d functions there is no difference."""
    for call in (["energy"], ["optimize", "--max-steps", "1"], ["frequencies"]):
        cuanto(*call, "water.xyz", "-b", basis, *FAST)
        assert f"rhf/{basis}, {kind}" in capsys.readouterr().out
    assert cuanto("energy", "water.xyz", "-b", "sto-3g", *FAST) == 0
    assert "rhf/sto-3g, 7 functions\n" in capsys.readouterr().out


def test_what_helps_convergence(capsys: pytest.CaptureFixture[str]) -> None:
    call = ["energy", "water.xyz", "-b", "sto-3g", *FAST, "-o", "max_iterations=3"]
    assert cuanto(*call) == 1
    error = capsys.readouterr().err
    assert "-o max_iterations=100 or -o damping=0.5 or -o smearing=0.005" in error and "level_shift" not in error
    assert cuanto(*call, "-o", "max_iterations=100") == 0


@pytest.mark.parametrize("command", ["opt", "freq"])
def test_short_names_of_commands(command: str) -> None:
    assert cuanto(command, "h2.xyz", "-m", "pm6", "--backend", "cpu", "-q") == 0


def test_a_mixed_basis(capsys: pytest.CaptureFixture[str]) -> None:
    call = ["energy", "water.xyz", "-m", "hf", "-b", "O=6-31G(d),H=sto3g", *FAST, "--json", "a.json"]
    assert cuanto(*call) == 0
    out = capsys.readouterr().out
    assert "O: 6-31g*, H: sto-3g, 17 functions, Cartesian" in out
    assert json.loads(Path("a.json").read_text())["model"]["basis"] == "O: 6-31g*, H: sto-3g"
    assert cuanto("energy", "a.json", "-q") == 0 and cuanto("energy", "water.xyz", "-b", "O=sto-3g") == 2
    assert "no basis given for H" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["before.json", "before.h5"])
def test_a_restart_from_either_file(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    output = "--json" if name.endswith("json") else "--checkpoint"
    assert cuanto("energy", "water.xyz", "-b", "sto-3g", *FAST, output, name) == 0
    capsys.readouterr()
    assert cuanto("energy", "water.xyz", "-b", "sto-3g", *FAST, "--restart", name) == 0
    again = capsys.readouterr().out
    assert "converged in 1 iteration" in again or "converged in 2 iterations" in again
    assert cuanto("energy", "h2.xyz", "-b", "sto-3g", *FAST, "--restart", name) == 2
    error = capsys.readouterr().err
    assert f"{name} belongs to another molecule, with the atoms 'O H H' instead of 'H H': start without it" in error


def test_a_restart_without_orbitals(capsys: pytest.CaptureFixture[str]) -> None:
    assert cuanto("energy", "h2.xyz", "-m", "pm6", "--json", "pm6.json", "-q") == 0
    assert cuanto("energy", "h2.xyz", "-b", "sto-3g", "--restart", "pm6.json") == 2
    assert "pm6.json has no orbitals in a Gaussian basis: start without it" in capsys.readouterr().err


def test_what_is_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The heading comes before the first iteration; charges have a name, timings are behind -v."""
    import cuanto.solve as cuanto_solve

    solve = cuanto_solve.solve

    def watched(*given: Any, **more: Any) -> Any:
        assert capsys.readouterr().out.startswith("water: 3 atoms, charge +1, multiplicity 2, ")
        return solve(*given, **more)

    monkeypatch.setattr(cuanto_solve, "solve", watched)
    level = logger.level
    try:
        logger.setLevel("WARNING")
        assert cuanto("energy", "water.xyz", "-b", "def2-svp", "--charge", "1", "--backend", "cpu") == 0
        out = capsys.readouterr().out
        assert " J and K fitted in def2-universal-jkfit\n" in out and "time / s" not in out
        assert " charges / e and Mulliken spin populations:\n" in out
        assert "(ideal 0.750000)" in out and "\n gap " in out
        logger.setLevel("INFO")
        assert cuanto("energy", "water.xyz", "-b", "def2-svp", "--charge", "1", "--backend", "cpu") == 0
        assert " time / s: " in capsys.readouterr().out
    finally:
        logger.setLevel(level)


def test_the_number_of_threads(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CUANTO_THREADS", "7")  # restored after the test
    assert cuanto("energy", "h2.xyz", "-m", "pm6", "-q", "--threads", "1") == 0
    assert cores() == 1
    assert cuanto("energy", "h2.xyz", "--threads", "0") == 2
    assert "--threads" in capsys.readouterr().err
    assert cuanto("energy", "h2.xyz", "-m", "pm6", "--threads", "1", "--out", "a.csv") == 2
    assert "with --out, give the number of --workers" in capsys.readouterr().err


def test_a_solvent_of_point_charges(capsys: pytest.CaptureFixture[str]) -> None:
    """The option that the message about solvents names."""
    (option,) = re.findall(r"-o '(.*)'", as_flags(ADVICE["solvent"]))
    energies = []
    for more in ([], ["-o", option]):
        assert cuanto("energy", "h2.xyz", "-b", "sto-3g", *FAST, "-q", *more) == 0
        energies.append(float(capsys.readouterr().out.split()[1]))
    assert 1e-5 < abs(energies[1] - energies[0]) < 0.1
    assert cuanto("energy", "h2.xyz", "-o", "point_charges=[[1, 0") == 2
    assert "point_charges must be two lists" in capsys.readouterr().err
