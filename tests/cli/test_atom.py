"""``cuanto atom`` and ``cuanto basis-search`` from a user's point of view: text, JSON, files, one-line errors, exit
status."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from atom_inputs import CHROMIUM, LISTED, NITROGEN, OPTIMISE, WRONG, WRONG_ELSEWHERE
from cuanto.atomic import job as jobs
from cuanto.atomic.input import TrustRegion
from cuanto.atomic.optimise import Evaluation
from cuanto.atomic.search import Progress as Finished
from cuanto.atomic.steps import Outcome
from cuanto.basis.formats import parse_basis
from cuanto.cli.main import run
from cuanto.cli.optimisation import OptimisationProgress, parse_elements, parse_threshold, search_progress
from cuanto.cli.show import status_line
from cuanto.errors import InputError

NITROGEN_ENERGY = -54.3277216469
"""Hartree, in the set of Table 2.1 of the thesis with a Gaussian nucleus."""

SMALL = ("--element", "He", "--parameters", "0.2,2.5,4.0,1.2", "--ranges", "s(1:8)", "--backend", "cpu")


@pytest.fixture(autouse=True)
def work_in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")


def status_of(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        run(arguments)
    code = stopped.value.code
    return 0 if code is None else int(code)


def atom(*arguments: str) -> int:
    return status_of("atom", *arguments)


def error_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The whole of standard error, which must be one line without a traceback."""
    err = capsys.readouterr().err
    assert err.startswith("cuanto: ") and err.count("\n") == 1, err
    return err.strip()


def test_nuclear_radius_and_model_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert atom(*SMALL, "--nuclear-radius", "2.5", "--nonrelativistic", "--json", "he.json") == 0
    shown = capsys.readouterr().out
    assert "rms radius 2.5 fm" in shown and "non-relativistic with a finite nucleus; a point nucleus with" in shown
    found = json.loads(Path("he.json").read_text())
    assert found["nucleus"]["rms_radius_fm"] == pytest.approx(2.5) and found["relativistic"] is False
    assert atom(*SMALL, "--nucleus", "point", "--nonrelativistic") == 0
    assert "nucleus: point\nnon-relativistic\n" in capsys.readouterr().out


def test_an_element_without_a_set_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert atom("-e", "H", "-q", "--backend", "cpu") == 0
    assert capsys.readouterr().out == "H -0.5000066560 Hartree\n"


def test_an_element_without_a_set_in_the_table_and_without_relativity(capsys: pytest.CaptureFixture[str]) -> None:
    energies = []
    for basis in ("auto", "limit"):
        assert atom("-e", "Fr", "-b", basis, "-q", "--nonrelativistic", "--nucleus", "point", "--backend", "cpu") == 0
        energies.append(float(capsys.readouterr().out.split()[1]))
    assert energies[0] == pytest.approx(energies[1], rel=2e-8)


# --------------------------------------------------------------------------------------------------- energies


def test_a_file_of_the_thesis(capsys: pytest.CaptureFixture[str]) -> None:
    Path("n.inp").write_text(NITROGEN)
    assert atom("n.inp", "--backend", "cpu", "--json", "n.json") == 0
    out, err = capsys.readouterr()
    assert err == "" and out.startswith("N atom, 2p3 average\nN: 7 electrons, charge 0\nnucleus: gaussian, exponent")
    assert "s(1:23)p(1:16), alpha = 0.05976" in out and "average of 3 configurations" in out
    rows = re.findall(r"^ +(\d+) +(-\d+\.\d{10})", out, re.MULTILINE)
    assert float(rows[-1][1]) == pytest.approx(NITROGEN_ENERGY, abs=1e-9)
    assert f"converged in {len(rows)} iterations" in out
    assert re.search(r"2p- +1 +-0\.5088\d+ +0\.94\d+ +1\.44\d+", out)  # <r> of 2p-: 1.446 in DBSR_HF's output
    found = json.loads(Path("n.json").read_text())
    assert found["energy"] == pytest.approx(NITROGEN_ENERGY, abs=1e-9) and found["converged"] is True
    assert found["iterations"] == len(rows) and set(found) >= {"parts", "spinors", "virial", "basis", "charge"}
    assert found["spinors"][0]["energy"] == pytest.approx(-15.6764099, abs=1e-6)


def test_every_kind_of_file_runs(capsys: pytest.CaptureFixture[str]) -> None:
    for name, text, energy in [("cr.inp", CHROMIUM, -1049.5988235864), ("he.inp", LISTED, None)]:
        Path(name).write_text(text)
        assert atom(name, "--backend", "cpu", "--json", "out.json") == 0
        if energy is not None:
            assert json.loads(Path("out.json").read_text())["energy"] == pytest.approx(energy, rel=1e-9)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("nclose", "electrons", "charge"), [(2, 4, -2), (1, 2, 0)])
def test_the_charge_of_an_ion_is_printed(
    nclose: int, electrons: int, charge: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file has no charge: it follows from the nucleus and the spinors."""
    Path("he.inp").write_text(LISTED.replace("NCLOSE=1", f"NCLOSE={nclose}"))
    assert atom("he.inp", "--backend", "cpu", "--json", "he.json") == 0
    assert f"\nHe: {electrons} electrons, charge {charge}\n" in capsys.readouterr().out
    assert json.loads(Path("he.json").read_text())["charge"] == charge


@pytest.mark.parametrize(
    ("arguments", "energy"),
    [
        (("--element", "Ne", "--basis", "wtbs"), -128.69192977694),
        (("-e", "10", "--nucleus", "point"), -128.6919685081),
        (("-e", "c", "--nucleus", "sphere"), -37.6760405634),
        (("-e", "K", "--config", "[Ar] 4s1"), -601.5259485335),
        (("-e", "Ne", "--pool"), -128.69192934451),
    ],
)
def test_an_element(arguments: tuple[str, ...], energy: float) -> None:
    """Energies of an independent NumPy program, see `tests/data/atoms_reference.json`."""
    assert atom(*arguments, "--backend", "cpu", "--json", "out.json") == 0
    assert json.loads(Path("out.json").read_text())["energy"] == pytest.approx(energy, rel=1e-10)


def test_a_basis_of_molecules_and_other_speeds_of_light() -> None:
    Path("he.nw").write_text("basis spherical\nHe S\n 30.0 0.02\n 4.0 0.2\n 1.2 0.5\n 0.3 0.4\nend\n")
    energies = []
    for c in ("137.03599976", "3e5"):
        assert atom("-e", "He", "-b", "he.nw", "--c", c, "--backend", "cpu", "--json", "out.json") == 0
        energies.append(json.loads(Path("out.json").read_text())["energy"])
    assert atom("-e", "He", "-b", "he.nw", "--nonrelativistic", "--backend", "cpu", "--json", "out.json") == 0
    plain = json.loads(Path("out.json").read_text())["energy"]
    assert energies[1] == pytest.approx(plain, abs=1e-8) and energies[0] < energies[1]


def test_not_converged_is_reported_with_status_one(capsys: pytest.CaptureFixture[str]) -> None:
    Path("n.inp").write_text(NITROGEN.replace("maxitr=50", "maxitr=3"))
    assert atom("n.inp", "--backend", "cpu", "--json", "n.json") == 1
    out, err = capsys.readouterr()
    assert "last energy, NOT converged" in out and err.startswith("cuanto: NOT converged in 3 iterations")
    assert json.loads(Path("n.json").read_text())["converged"] is False


def test_quiet_units_and_the_optimiser(capsys: pytest.CaptureFixture[str]) -> None:
    assert atom(*SMALL, "-q") == 0
    quiet = capsys.readouterr().out
    assert re.fullmatch(r"He -2\.8\d{9} Hartree\n", quiet)
    assert atom(*SMALL) == 0
    out = capsys.readouterr().out
    for part in ("kinetic", "rest mass", "nuclear attraction", "one-electron", "energy"):
        assert re.search(rf"^ {part} +-?\d+\.\d{{10}}  Hartree *$", out, re.MULTILINE), part
    assert "<r^2>/Bohr^2" in out and "change / Hartree" in out and "c = 137.0359998 a.u." in out
    few = (*SMALL, "--optimise", "--max-evaluations", "12", "-q")
    for name in ("--optimiser", "--optimizer", "--method"):  # the last is its former name
        assert atom(*few, name, "cobyqa", "--log", f"{name}.jsonl") == 1 and Path(f"{name}.jsonl").is_file()
    out, err = capsys.readouterr()
    assert out.count("\n") == 3
    said = [line for line in err.splitlines() if "did not converge in 12 evaluations" not in line]
    assert err.count("\n") == 4 and said == [
        "cuanto: --method is deprecated and will be removed: write --optimiser cobyqa"
    ]
    assert atom("--help") == 0 and "--method" not in (words := capsys.readouterr().out)
    assert "Speed of light in atomic units" in words


# --------------------------------------------------------------------------------------------- bad input: one line


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "give either an input file FILE.inp or --element"),
        (("n.inp", "-e", "N"), "give either an input file FILE.inp or --element"),
        (("n.inp", "--basis", "wtbs"), "--basis applies to --element only"),
        (("n.inp", "--config", "1s2"), "--config applies to --element only"),
        (("missing.inp",), "does not exist"),
        (("n.txt",), "ends in .inp"),
        (("bad.inp",), "bad.inp, line 6: freeel is 7; the open spinors hold 6"),
        (("-e", "Xy"), "unknown element 'Xy'"),
        (("-e", "Ce", "--basis", "wtbs"), "has no Ce"),
        (("-e", "He", "--nucleus", "point", "--nuclear-radius", "2"), "a point nucleus has no radius"),
        (("n.inp", "--nuclear-radius", "2"), "--nuclear-radius applies to --element only"),
        (("-e", "Ne", "--config", "1s2 2s2", "--charge", "0"), "has 4 electrons, Ne with charge 0 has 10"),
        (("-e", "Ne", "--basis", "no-such-basis"), "unknown basis 'no-such-basis'"),
        (("-e", "I", "--basis", "def2-svp"), "replaces 28 electrons by a core potential, but here"),
        (("-e", "Ne", "--c", "-1"), "speed of light -1.0: give a positive number"),
        (("-e", "Ne", "--c", "1e6"), "above 300000 the SCF does not converge; without relativity"),
        (("-e", "Ne", "-o", "shift=1"), "the SCF of an atom has c, relativistic, max_iterations"),
        (("-e", "Ne", "-o", "max_iterations=many"), "it must be of the type int"),
        (("-e", "Ne", "-o", "damping=2"), "damping 2: give a number"),
        (("-e", "Ne", "--basis", "limit", "--pool"), "--pool applies to well-tempered sets"),
        (("-e", "Ne", "--basis", "limit", "--optimise"), "only well-tempered sets can be optimised"),
        (("-e", "He", "--export", "he.txt"), "a basis file ends in"),
        (("-e", "He", "--json", "no/folder.json"), "the folder no does not exist"),
        (("-e", "He", "--json", "he.json", "--export", "he.json"), "he.json was given for two outputs"),
        (("-e", "He", "--json", "he.json", "--log", "./he.json", "--optimise"), "he.json was given for two outputs"),
        (("-e", "He", "--plot", "he.png", "--plot-optimisation", "he.png", "--optimise"), "given for two outputs"),
        (("-e", "He", "--plot", "he.doc"), "a picture ends in"),
        (("-e", "He", "--plot-optimisation", "he.png"), "needs an optimisation"),
        (("-e", "He", "--nucleus", "cube"), "--nucleus"),
    ],
)
def test_bad_input_is_one_line_and_status_two(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("n.inp").write_text(NITROGEN)
    Path("bad.inp").write_text(NITROGEN.replace("freeel=3", "freeel=7"))
    assert atom(*arguments) == 2
    assert says in error_line(capsys)


def test_an_ion_given_by_its_configuration() -> None:
    assert atom("-e", "Ne", "--config", "1s2 2s2", "--backend", "cpu") == 0


@pytest.mark.parametrize(
    ("source", "old", "new", "line", "says"), [(NITROGEN, *row) for row in WRONG] + WRONG_ELSEWHERE
)
def test_errors_in_a_file_name_the_line(
    source: str, old: str, new: str, line: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.inp").write_text(source.replace(old, new, 1))
    assert atom("bad.inp") == 2
    text = error_line(capsys)
    assert text.startswith(f"cuanto: bad.inp, line {line}: ") and says in text


# --------------------------------------------------------------------------------------------- optimisation, files


def test_an_optimisation_from_a_file_is_logged_and_continues(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("he.inp").write_text(OPTIMISE.replace("nbs=18", "nbs=8").replace("iprint=1", "iprint=3 rhoend=1e-2"))
    plain, calls = jobs.AtomEnergy.__call__, []

    def interrupted(self: jobs.AtomEnergy, basis: object) -> float:
        calls.append(basis)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return plain(self, basis)  # type: ignore[arg-type]

    monkeypatch.setattr(jobs.AtomEnergy, "__call__", interrupted)
    assert atom("he.inp", "--backend", "cpu", "--log", "he.log") == 130
    assert "the same command with --log he.log continues" in capsys.readouterr().out
    assert atom("he.inp", "--backend", "cpu", "--log", "he.log", "--json", "he.json") == 0
    out = capsys.readouterr().out
    assert "optimising with NEWUOA, log he.log, 11 evaluations known" in out
    found = json.loads(Path("he.json").read_text())["optimisation"]
    shown = re.findall(r"^ +\d+  -2\.\d{12}  ", out, re.MULTILINE)
    assert len(shown) == found["evaluations"] and found["converged"] is True and found["relative_gain"] > 0
    assert "optimum: alpha = " in out


def test_an_optimised_set_is_used_in_a_molecule(capsys: pytest.CaptureFixture[str]) -> None:
    """Make, optimise, contract and export a set; then compute the atom in it with `cuanto energy`."""
    assert atom(*SMALL, "--optimise", "--export", "he.nw", "--contract", "--plot", "he.png",
                "--plot-optimisation", "way.svg") == 0  # fmt: skip
    assert re.search(r"log cuanto-He-[0-9a-f]{8}\.jsonl", capsys.readouterr().out)
    assert Path("he.png").stat().st_size > 1000 and Path("way.svg").stat().st_size > 1000
    Path("he.xyz").write_text("1\n\nHe 0 0 0\n")
    assert (
        status_of("energy", "he.xyz", "-b", "he.nw", "--fitting", "none", "--backend", "cpu", "--json", "m.json") == 0
    )
    energy = json.loads(Path("m.json").read_text())["return_result"]
    assert -2.86168 < energy < -2.8615  # the limit is -2.861680


def test_a_basis_that_cannot_be_exported_leaves_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("he.inp").write_text(LISTED.replace("ZNUC=2", "ZNUC=2.5"))
    assert atom("he.inp", "--json", "he.json", "--export", "he.nw", "--backend", "cpu") == 2
    assert "the charge 2.5 has none" in error_line(capsys) and not Path("he.json").exists()
    short = (*SMALL, "-o", "max_iterations=2", "--json", "he.json", "--export", "he.nw", "--contract")
    assert atom(*short) == 2 and not Path("he.json").exists() and not Path("he.nw").exists()
    assert "orbitals of He did not converge" in capsys.readouterr().err


def test_one_contraction_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert atom(*SMALL, "--export", "he.nw", "--contract", "--contract-x2c") == 2
    assert "--contract and --contract-x2c were given: choose one of them" in capsys.readouterr().err


def test_too_few_evaluations_are_status_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert atom(*SMALL, "--optimise", "--max-evaluations", "12", "--optimiser", "cobyqa") == 1
    out, err = capsys.readouterr()
    assert "NOT converged in 12 evaluations" in out
    assert err == "cuanto: the optimisation did not converge in 12 evaluations; try --max-evaluations\n"


@pytest.mark.parametrize(("iprint", "lines"), [(0, 0), (1, 0), (2, 2), (3, 4)])
def test_progress_as_lines(iprint: int, lines: int) -> None:
    """With iprint=2: the first evaluation, and one whenever steps have become ten times shorter."""
    console = Console(file=StringIO(), width=120)
    progress = OptimisationProgress(console, TrustRegion(rhobeg=0.1, iprint=iprint), lambda text: None)
    for number, (x, energy) in enumerate([(1.0, -2.0), (1.1, None), (0.95, -2.1), (0.951, -2.11)], start=1):
        progress(Evaluation(number, (x, 1.0, 1.0, 1.0), energy, "" if energy else "no convergence"))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.count("\n") == lines
    assert ("refused: no convergence" in text) == (iprint == 3)


def test_progress_on_a_terminal() -> None:
    console = Console(file=StringIO(), width=120, force_terminal=True)
    with status_line(console, "optimising") as update:
        progress = OptimisationProgress(console, TrustRegion(), update)
        progress(Evaluation(1, (1.0,), -2.5))
        progress(Evaluation(2, (1.1,), None, "no convergence"))
    assert "evaluation" in console.file.getvalue()  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------------------------- searches


def search(*arguments: str) -> int:
    return status_of("basis-search", *arguments)


def test_a_search_writes_its_sets_and_reuses_them(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--elements", "He", "--size", "9", "--threshold", "1e-4", "--scan", "bisect", "--workers", "0")
    arguments += ("--reference", "He=-2.8618133227", "--max-evaluations", "30")
    arguments += ("--export", "set.json", "--json", "r.json")
    assert search(*arguments) == 0
    first = capsys.readouterr().out
    assert "He s(1:9): -2.86" in first and "evaluations" in first and "relative error" in first
    found = json.loads(Path("r.json").read_text())["elements"]["He"]
    assert found["accurate"] is True and found["error"] <= 1e-4 and found["steps"][0]["name"] == "start"
    size = found["ranges"]["s"][1]
    shells = json.loads(Path("set.json").read_text())["elements"]["2"]["electron_shells"]
    assert len(shells) == size < 9
    assert search(*arguments[:-4], "--export", "set.nw", "--contract", "--diffuse", "2") == 0
    assert len(parse_basis(Path("set.nw").read_text())["He"].shells) == 3
    capsys.readouterr()
    assert search(*arguments) == 0
    second = capsys.readouterr().out
    assert second.count("known") == first.count(" evaluations") and second.splitlines()[-2:] == first.splitlines()[-2:]
    assert search(*arguments, "--method", "auto") == 0
    assert "--method is deprecated and will be removed: write --optimiser auto" in capsys.readouterr().err


def test_a_search_of_two_elements_in_two_processes(capsys: pytest.CaptureFixture[str]) -> None:
    """Two processes find what this one finds."""
    arguments = ("-e", "He,Be", "--size", "9", "--threshold", "1e-3", "--scan", "bisect", "--max-evaluations", "20")
    arguments += ("--reference", "He=-2.8618133227", "--reference", "Be=-14.575891698")
    found = {}
    for workers in ("2", "0"):
        assert search(*arguments, "--workers", workers, "--state", workers, "--json", f"{workers}.json") == 0
        found[workers] = json.loads(Path(f"{workers}.json").read_text())["elements"]
        assert {"He s(1:9)", "Be s(1:9)"} <= set(
            re.findall(r"^(?:He|Be) s\(1:9\)", capsys.readouterr().out, re.MULTILINE)
        )
    assert list(found["2"]) == list(found["0"]) == ["He", "Be"]
    for symbol, one in found["0"].items():
        assert one["accurate"] is True and found["2"][symbol]["ranges"] == one["ranges"]
        assert found["2"][symbol]["energy"] == pytest.approx(one["energy"], rel=1e-12)


def test_a_search_on_a_terminal_shows_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """A status line on standard error, below the printed lines; lines written to a file are not affected."""
    errors = Terminal()
    monkeypatch.setattr("sys.stderr", errors)
    out = StringIO()
    done = Finished("He", "s(1:3)", Outcome(-2.86, evaluations=4, seconds=0.1), known=True)
    with search_progress(Console(file=out, width=100), ["He", "Be"]) as watch:
        watch(done)
    assert out.getvalue() == "He s(1:3): -2.8600000000 Hartree, 4 evaluations, known already\n"
    assert "He to Be: 1 sets done, 1 of them known already; the last was He s(1:3)" in errors.getvalue()
    monkeypatch.setattr("sys.stderr", quiet := StringIO())
    with search_progress(Console(file=StringIO()), ["He"]) as watch:
        watch(done)
    assert quiet.getvalue() == ""


class Terminal(StringIO):
    """A stream that pretends to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_an_accuracy_that_is_not_reached_is_status_one(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("-e", "He", "--size", "4", "--threshold", "1e-9", "--workers", "0", "--reference", "He=-2.8618133227")
    assert search(*arguments, "--max-evaluations", "20") == 1
    assert "NOT below 1.0e-09" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-e", "Xx"), "unknown element 'Xx'"),
        (("-e", ""), "--elements is empty"),
        (("-e", "Ne-He"), "the first comes after the last"),
        (("-e", "He", "--threshold", "small"), "give a number such as 5e-9, or 'table'"),
        (("-e", "He", "--size", "1"), "size 1"),
        (("-e", "He", "--config", "Ne=1s2"), "Ne is not among the elements"),
        (("-e", "He", "--config", "1s2"), "write ELEMENT=VALUE"),
        (("-e", "He", "--config", "He=[Ar]"), "[Ar] has 18 electrons, more than He can bind"),
        (("-e", "He", "--config", "He=1s2", "--config", "he=1s1"), "--config he=1s1: he was given a second time"),
        (("-e", "He", "--reference", "He=2"), "give a negative energy"),
        (("-e", "Ce", "--threshold", "table", "--workers", "0"), "the table has no Ce"),
        (("-e", "He", "--scheduler", "tcp://x", "--workers", "2"), "leave out --workers"),
        (("-e", "He", "--export", "he.txt"), "a basis file ends in"),
        (("-e", "He", "--export", "he.json", "--json", "he.json"), "he.json was given for two outputs"),
    ],
)
def test_bad_searches_are_one_line_and_status_two(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert search(*arguments) == 2
    assert says in error_line(capsys)


def test_lists_of_elements_and_thresholds() -> None:
    assert parse_elements("Ne, ar,Kr") == ["Ne", "Ar", "Kr"]
    assert parse_elements("He-Be C 10") == ["He", "Li", "Be", "C", "Ne"]
    assert parse_elements("He,He-Li") == ["He", "Li"]
    assert parse_threshold("TABLE") == "table" and parse_threshold("5d-9") == 5e-9
    with pytest.raises(InputError, match="--threshold 0"):
        parse_threshold("0")
