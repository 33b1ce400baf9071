"""``cuanto energy``: printed table, files, one-line errors, exit status."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

from cuanto import Molecule, read
from cuanto.cli.arguments import complete_basis, complete_method, parse_options
from cuanto.cli.calculate import NOT_CONVERGED
from cuanto.cli.main import run
from cuanto.cli.show import IterationTable, print_table
from cuanto.errors import InputError
from cuanto.files import write_text
from cuanto.interfaces import qcschema
from cuanto.interfaces.qcschema import plain
from cuanto.log import Timings, report_progress, step_listener
from cuanto.scf.checkpoint import read_checkpoint
from cuanto.scf.state import State
from cuanto.system.text import parse_size
from fitting_cases import DATA

WATER = str(DATA / "geometries" / "water_01.xyz")
METHYL = str(DATA / "geometries" / "CH3.xyz")
WATER_ENERGY = -76.026411203
"""RHF/cc-pVDZ with cc-pVDZ-JKFIT, PySCF 2.14 `scf.RHF(mol).density_fit()`: -76.0264112034."""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
    monkeypatch.setenv("COLUMNS", "150")


@pytest.fixture
def h2(tmp_path: Path) -> Path:
    path = tmp_path / "h2.xyz"
    path.write_text("2\n\nH 0 0 0\nH 0 0 0.74\n")
    return path


def status_of(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        run(("energy", *arguments))
    code = stopped.value.code
    return 0 if code is None else int(code)


def error_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The whole of standard error, which must be one line without a traceback."""
    err = capsys.readouterr().err
    assert err.startswith("cuanto: ") and err.count("\n") == 1, err
    return err.strip()


def water(*arguments: str) -> int:
    return status_of(WATER, "-b", "cc-pvdz", "--backend", "cpu", *arguments)


# ------------------------------------------------------------------------------------------------- output


def test_a_converged_calculation(capsys: pytest.CaptureFixture[str]) -> None:
    assert water() == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert (
        "3 atoms, charge 0, multiplicity 1, rhf/cc-pvdz, 24 functions, spherical" in out
        and "density fitting: in-core" in out
    )
    rows = re.findall(r"^ +(\d+) +(-\d+\.\d{9})", out, re.MULTILINE)
    assert [int(n) for n, _ in rows] == list(range(1, len(rows) + 1))
    assert float(rows[-1][1]) == pytest.approx(WATER_ENERGY, abs=1e-8)
    assert f"converged in {len(rows)} iterations" in out
    found = re.findall(r"^ ([a-z ]+?) +(-?\d+\.\d{9})  Hartree *$", out, re.MULTILINE)
    terms = {name: float(value) for name, value in found}
    total = terms.pop("energy")
    assert set(terms) == {"nuclear repulsion", "core", "coulomb", "exchange"}
    assert sum(terms.values()) == pytest.approx(total, abs=1e-8)
    assert re.search(r"dipole moment +2\.\d+  Debye \(", out) and "<S^2>" not in out
    assert re.search(r"highest occupied orbital +-0\.\d+  Hartree \(-13\.\d+ eV\)", out)
    assert " charges / e:\n" in out and "  Mulliken    Loewdin  Hirshfeld        CM5\n     1 O          -0." in out


def test_spin_is_printed_for_open_shells(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(METHYL, "-m", "hf", "-b", "cc-pvdz", "--backend", "cpu") == 0
    assert re.search(r"<S\^2> +0\.7[56]", capsys.readouterr().out)


def test_unconverged_results_are_marked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert water("-o", "max_iterations=2", "--json", str(path)) == 1
    out, err = capsys.readouterr()
    assert err.startswith("cuanto: NOT converged in 2 iterations") and err.count("\n") == 1
    assert "last energy, NOT converged" in out and not re.search(r"^ energy ", out, re.MULTILINE)
    assert not re.search(r"^converged", out, re.MULTILINE)
    schema = json.loads(path.read_text())
    assert schema["success"] is False and schema["extras"]["cuanto"]["converged"] is False
    assert schema["error"]["error_type"] == "convergence_error"


def test_a_terminal_gets_a_live_table() -> None:
    nothing = np.zeros((1, 1))
    with open("/dev/null", "w") as nowhere:
        console = Console(force_terminal=True, width=100, height=10, record=True, file=nowhere)
        with IterationTable(console) as table:
            for n in range(1, 31):
                table.add(State(n, -1.5 * n, {}, -1.5, 0.1, False, "diis", nothing, nothing, nothing, nothing, nothing))
        shown = console.export_text()
    assert "-3.000000000" in shown and "energy / Hartree" in shown and "│" in shown
    last = shown[shown.rindex("iteration") :]
    assert all(f"{-1.5 * n:.9f}" in last for n in range(1, 31)), "all rows are there in the end"


def test_quiet_is_one_line(h2: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(str(h2), "-b", "sto-3g", "--backend", "cpu", "-q") == 0
    assert re.fullmatch(r"h2 -1\.1167\d+ Hartree\n", capsys.readouterr().out)


# ------------------------------------------------------------------------------------------------- files


def test_json_is_a_qcschema_result(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert water("--json", str(path)) == 0
    schema = json.loads(path.read_text())
    assert schema["schema_name"] == "qcschema_output" and schema["schema_version"] == 1
    assert schema["driver"] == "energy" and schema["success"] is True and "error" not in schema
    assert schema["model"] == {"method": "rhf", "basis": "cc-pvdz"}
    assert schema["return_result"] == pytest.approx(WATER_ENERGY, abs=1e-8)
    mol = Molecule.from_xyz(WATER)
    assert schema["molecule"]["geometry"] == mol.R_ax.reshape(-1).tolist()
    properties = schema["properties"]
    parts = ("nuclear_repulsion_energy", "scf_one_electron_energy", "scf_two_electron_energy")
    assert sum(properties[part] for part in parts) == pytest.approx(schema["return_result"], abs=1e-10)
    assert properties["calcinfo_nalpha"] == properties["calcinfo_nbeta"] == 5
    assert len(properties["scf_dipole_moment"]) == 3
    ours = schema["extras"]["cuanto"]
    assert ours["fitting"] == "jk" and ours["auxbasis"] == "cc-pvdz-jkfit" and ours["s_squared"] == pytest.approx(0.0)
    assert sum(ours["mulliken_charges"]) == pytest.approx(0.0, abs=1e-10)
    assert ours["homo"][0] < 0 < ours["lumo"][0]


def test_qcelemental_checks_where_it_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    class Models:
        @staticmethod
        def AtomicResult(**schema: Any) -> None:
            seen.append(schema)

    monkeypatch.setattr(qcschema, "import_module", lambda name: Models)
    assert water("--json", str(tmp_path / "a.json")) == 0
    assert seen[0]["schema_name"] == "qcschema_output"
    known = {"schema_name", "schema_version", "molecule", "driver", "model", "keywords", "properties", "return_result",
             "success", "error", "provenance", "extras", "protocols", "wavefunction"}  # fmt: skip
    assert set(seen[0]) <= known


def test_plain_values() -> None:
    given = {"a": np.array([1.0, np.inf]), "b": (np.float64(2.0), np.int64(3)), "c": float("nan"), "d": "text"}
    assert plain(given) == {"a": [1.0, None], "b": [2.0, 3], "c": None, "d": "text"}


@pytest.mark.parametrize("flag", ["--guess", "--restart"])
def test_a_json_result_is_a_guess(flag: str, h2: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (str(h2.with_name(name)) for name in ("first.json", "second.json"))
    assert status_of(str(h2), "-b", "sto-3g", "--json", first) == 0
    assert status_of(str(h2), "-b", "sto-3g", flag, first, "--json", second) == 0
    assert read(second).iterations <= 2


@pytest.mark.parametrize("command", ["energy", "optimize", "frequencies", "energy --counterpoise 1,1"])
def test_molden_files_without_h_functions(
    command: str, h2: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A basis that the file cannot hold is refused before the calculation, not after it."""
    monkeypatch.chdir(h2.parent)
    with pytest.raises(SystemExit) as stopped:
        run((*command.split(), "h2.xyz", "-b", "cc-pv6z", "--molden", "h2.molden"))
    captured = capsys.readouterr()
    assert stopped.value.code == 2 and "functions up to g; basis cc-pv6z has l = 5" in " ".join(captured.err.split())
    assert not captured.out and [path.name for path in h2.parent.iterdir()] == ["h2.xyz"]


def test_molden_and_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    molden, kept = tmp_path / "a.molden", tmp_path / "a.h5"
    assert water("--molden", str(molden), "--checkpoint", str(kept)) == 0
    assert molden.read_text().startswith("[Molden Format]")
    first = capsys.readouterr().out
    assert water("--restart", str(kept)) == 0
    again = capsys.readouterr().out
    counts = [int(re.findall(r"converged in (\d+)", out)[0]) for out in (first, again)]
    assert counts[1] < counts[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.h5", "a.molden"]


def test_an_interrupt_leaves_a_restart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, add = tmp_path / "a.h5", IterationTable.add

    def interrupted(self: IterationTable, state: State) -> None:
        add(self, state)
        if state.iteration == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(IterationTable, "add", interrupted)
        assert water("--checkpoint", str(kept)) == 130
    out, err = capsys.readouterr()
    assert f"continue with --restart {kept}" in out and err == "cuanto: interrupted\n"
    assert read_checkpoint(kept).iteration == 4
    assert water("--restart", str(kept)) == 0


def test_json_to_standard_output(h2: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(str(h2), "-b", "sto-3g", "--backend", "cpu", "--json", "-") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["success"] is True and "converged in" in err


def test_several_molecules(h2: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    helium = tmp_path / "he.xyz"
    helium.write_text("1\nname=../../he\nHe 0 0 0\n")
    both, settings = (str(h2), str(helium)), ("-b", "sto-3g", "--backend", "cpu")
    assert status_of(*both, *settings, "--json", str(tmp_path / "{name}.json")) == 0
    assert re.search(r"^he +-2\.8079\d+ +\d+ +\d+\.\d\d  converged$", capsys.readouterr().out, re.MULTILINE)
    assert json.loads((tmp_path / "he.json").read_text())["return_result"] == pytest.approx(-2.8079, abs=1e-3)
    assert (tmp_path / "h2.json").is_file()
    assert status_of(*both, *settings, "--json", str(tmp_path / "one.json")) == 2
    assert "write {name}" in error_line(capsys)
    assert status_of(str(h2), str(h2), "--json", str(tmp_path / "{name}.json")) == 2
    assert "several molecules are called h2" in error_line(capsys)
    assert status_of(*both, "-m", "rm1", "--backend", "cpu", "-q") == 2
    out, err = capsys.readouterr()
    assert "h2 -1." in out and re.search(r"^cuanto: he: .*He", err), "one that fails does not stop the others"


def test_report(h2: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "h2.html"
    assert status_of(str(h2), "-b", "sto-3g", "--backend", "cpu", "--report", str(page)) == 0
    assert page.read_text().lower().startswith("<!doctype html>")


# ------------------------------------------------------------------------------------------------- input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "hartree"], "unknown method 'hartree': choose hf"),
        (["-o", "max_iter=3"], "did you mean 'max_iterations'?"),
        (["-o", "max_iterations"], "write NAME=VALUE"),
        (["-o", "damping=2"], "damping is 2"),
        (
            ["--smearing", "0.03", "-o", "smearing=0.05"],
            "--smearing and -o smearing have different values: leave out one",
        ),
        (["--max-memory", "lots"], "give a size such as 4GB"),
        (["--max-memory", "1MB"], "of the program itself"),
        (["--fitting", "k"], "--fitting"),
        (["--guess", "magic"], "unknown guess 'magic'"),
        (["--mult", "2"], "multiplicity 2 is impossible"),
        (["--restart", "nowhere.h5"], "'nowhere.h5' does not exist"),
        (["--json", "/nowhere/a.json"], "the folder /nowhere does not exist"),
        (["-b", "cc-pvdx"], "cc-pvdx"),
        (["-m", "pm6"], "basis does not apply to pm6"),
        (["--molden", "-"], "only --json"),
        (["--json", "same", "--molden", "same"], "are the same file"),
    ],
)
def test_input_errors_are_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(WATER, "--backend", "cpu", "-b", "cc-pvdz", *arguments) == 2
    assert message in error_line(capsys)


def test_sizes() -> None:
    sizes = {"4GB": 4 * 2**30, "500 MiB": 500 * 2**20, "1.5k": 1536, "2000000": 2e6, "1e9": 1e9, "1tb": 2**40}
    assert {text: parse_size(text, "") for text in sizes} == sizes
    for nonsense in ("", "-1GB", "0", "GB", "nan", "inf"):
        with pytest.raises(InputError, match="give a size such as"):
            parse_size(nonsense, "--max-memory")


def test_options() -> None:
    given = ["max-iterations=30", "level_shift=0.25", "profile=true", "accelerator=adiis"]
    expected = {"max_iterations": 30, "level_shift": 0.25, "profile": True, "accelerator": "adiis"}
    assert parse_options(given) == expected


def test_completion_knows_methods_and_basis_sets() -> None:
    assert complete_method("b3lyp") == ["b3lyp", "b3lyp5"] and "pm6" in complete_method("PM")
    assert "def2-svp" in complete_basis("def2-s")


# ------------------------------------------------------------------------------------- files, pipes and terminals


AM1 = ("-m", "am1", "--backend", "cpu")


def test_outputs_must_be_regular_files_other_than_inputs(
    h2: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe, link, text = tmp_path / "pipe", tmp_path / "link.json", h2.read_text()
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "real.json")
    for name in (str(pipe), "/dev/null"):
        assert status_of(str(h2), *AM1, "--json", name) == 2
        assert "it is a device or a pipe" in error_line(capsys)
    (tmp_path / "again.xyz").symlink_to(h2)
    for name in (str(h2), str(tmp_path / "again.xyz")):
        assert status_of(str(h2), *AM1, "--json", name) == 2
        assert "would overwrite the input" in error_line(capsys) and h2.read_text() == text
    assert status_of(str(h2), *AM1, "-q", "--json", str(link)) == 0
    assert link.is_symlink() and json.loads((tmp_path / "real.json").read_text())["success"]
    capsys.readouterr()
    assert status_of(str(h2), *AM1, "--json", str(link), "--report", str(tmp_path / "real.json")) == 2
    assert "are the same file" in error_line(capsys)


def test_read_only_files_are_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path := tmp_path / "a.json").write_text("mine")
    monkeypatch.setattr(os, "access", lambda name, mode: Path(name) != path)  # root may write everything
    with pytest.raises(InputError, match="read-only"):
        write_text(path, "other")
    write_text(tmp_path / "b.json", "\u00e9")
    assert path.read_text() == "mine" and (tmp_path / "b.json").read_bytes() == b"\xc3\xa9"


@pytest.mark.parametrize("mistake", [("-m", ""), ("-b", " "), ("--auxbasis", "")])
def test_empty_names(mistake: tuple[str, str], h2: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(str(h2), *mistake) == 2
    assert "is empty" in error_line(capsys)


def test_drivers(h2: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "k.json", tmp_path / "out.json"
    molecule = {"symbols": ["H", "H"], "geometry": [0, 0, 0, 0, 0, 1.5]}
    inputs = {"molecule": molecule, "driver": "gradient", "model": {"method": "am1"}}
    path.write_text(json.dumps(inputs))
    assert status_of(str(path), "--backend", "cpu", "--json", str(out)) == 0
    assert "norm of the gradient" in capsys.readouterr().out
    schema = json.loads(out.read_text())
    assert schema["driver"] == "gradient" and len(schema["return_result"]) == 6
    assert np.allclose(read(out).gradient.reshape(-1), schema["return_result"])
    assert status_of(str(path), "-m", "hf", "-b", "sto-3g", "--backend", "cpu", "--json", str(out)) == 0
    schema = json.loads(out.read_text())
    assert schema["model"]["method"] == "rhf" and len(schema["return_result"]) == 6
    path.write_text(json.dumps({**inputs, "driver": "hessian"}))
    assert status_of(str(path)) == 2
    assert "use `cuanto frequencies`" in error_line(capsys)


def test_nothing_is_shown_before_an_error_in_the_input(h2: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(str(h2), "-b", "cc-pvdz", "--backend", "cpu", "--guess", "foo") == 2
    out, err = capsys.readouterr()
    assert out == "" and "unknown guess 'foo'" in err
    assert status_of(str(h2), WATER, *AM1, "-o", "diagonaliser=pseudo", "-o", "variant=nonsense") == 2
    assert capsys.readouterr().out == ""


def test_errors_of_one_of_several_go_to_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (iron := tmp_path / "iron.xyz").write_text("1\n\nFe 0 0 0\n")
    assert status_of(WATER, str(iron), *AM1, "-q") == 2
    out, err = capsys.readouterr()
    assert out.count("\n") == 1 and err.startswith("cuanto: iron: ") and err.count("\n") == 1


def test_ions_and_open_shells_are_labelled(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(WATER, *AM1, "--charge", "1") == 0
    out = capsys.readouterr().out
    assert re.search(r"^ dipole moment .* Debye \(.*\) about the centre of mass$", out, re.MULTILINE)
    assert "highest occupied orbital, alpha" in out and "lowest unoccupied orbital, beta" in out
    assert not re.search(r" $", out, re.MULTILINE)


def test_one_iteration(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(WATER, *AM1, "-o", "max_iterations=1") == 1
    err = capsys.readouterr().err
    assert "NOT converged in 1 iteration: the gradient" in err and "inf" not in err


def test_narrow_terminals_cut_no_number() -> None:
    nothing = np.zeros((1, 1))
    state = State(7, -12345.123456789, {}, -1.5, 0.1, False, "diis, full", *[nothing] * 5)
    for width in (40, 72, 80):
        with open("/dev/null", "w") as nowhere:
            console = Console(force_terminal=True, width=width, height=10, record=True, file=nowhere)
            with IterationTable(console) as table:
                table.add(state)
            shown = console.export_text()
        assert "-12345.123456789" in shown and "\u2026" not in shown


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("-", "-", *AM1) == 2
    assert "standard input can only be read once" in error_line(capsys)
    for data, problem in ((b"\xff\xfe", "not UTF-8"), (b"2\n\0", "zero bytes")):
        stream = io.TextIOWrapper(io.BytesIO(data), "utf-8", "surrogateescape")
        monkeypatch.setattr(sys, "stdin", stream)
        assert status_of("-", *AM1) == 2
        assert problem in error_line(capsys)


def test_a_closed_pipe_ends_quietly() -> None:
    command = [sys.executable, "-c", "from cuanto.cli.main import run; run()", "functionals"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait() == 141


def test_names_that_a_terminal_cannot_show(tmp_path: Path) -> None:
    (path := tmp_path / "h.xyz").write_text("2\nname=\u03b1\nH 0 0 0\nH 0 0 0.74\n", encoding="utf-8")
    command = [sys.executable, "-c", "from cuanto.cli.main import run; run()", "energy", str(path), *AM1]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and done.stdout.startswith(b"?: 2 atoms")


def test_restart_is_only_offered_if_a_checkpoint_was_written(
    h2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path := tmp_path / "old.h5").write_text("of another day")
    monkeypatch.setattr("cuanto.solve.solve", lambda *given, **more: signal.raise_signal(signal.SIGINT))
    notes: list[str] = []
    monkeypatch.setattr(IterationTable, "note", lambda self, text: notes.append(text))
    assert status_of(str(h2), "-b", "cc-pvdz", "--backend", "cpu", "--checkpoint", str(path)) == 130
    assert not notes


def test_wide_tables_are_wrapped_not_truncated() -> None:
    table = Table("name", "value")
    table.add_row("x" * 30, "-12345.123456789")
    with open("/dev/null", "w") as nowhere:
        console = Console(force_terminal=True, width=40, record=True, file=nowhere)
        print_table(console, table)
        assert "-12345.123456789" in console.export_text()


def test_gradient_command(capsys: pytest.CaptureFixture[str]) -> None:
    """A table of all atoms; without convergence there is no gradient, and the status says so."""
    path = str(DATA / "geometries" / "water_01.xyz")
    given = ["gradient", path, "-m", "hf", "-b", "sto-3g", "--backend", "cpu"]
    with pytest.raises(SystemExit) as stopped:
        run([*given, "-o", "max_iterations=2"])
    assert stopped.value.code == NOT_CONVERGED
    with pytest.raises(SystemExit) as stopped:
        run(given)
    assert not stopped.value.code
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    table = [row for row in rows if len(row) == 5 and row[1] in ("O", "H") and row[0].isdigit()]
    found = np.array([row[2:] for row in table], dtype=float)
    assert found.shape == (3, 3) and np.abs(found.sum(axis=0)).max() < 1e-8 < np.abs(found).max()


def test_gradient_of_point_charges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is printed in the table and written to the JSON file."""
    inputs, out = tmp_path / "asked.json", tmp_path / "found.json"
    keywords = {"point_charges": [[0.5], [[0.0, 0.0, 6.0]]], "backend": "cpu"}
    molecule = qcschema.molecule_schema(Molecule.from_xyz(WATER))
    about = {"driver": "gradient", "model": {"method": "hf", "basis": "sto-3g"}, "keywords": keywords}
    inputs.write_text(json.dumps({"molecule": molecule, **about}))
    assert status_of(str(inputs), "--json", str(out)) == 0
    (line,) = [line.split() for line in capsys.readouterr().out.splitlines() if "  1 charge " in line]
    schema = json.loads(out.read_text())
    (on_charge,) = schema["extras"]["cuanto"]["charges_gradient"]
    assert np.allclose(np.array(line[2:], dtype=float), on_charge, atol=1e-9)
    assert np.abs(np.reshape(schema["return_result"], (3, 3)).sum(axis=0) + on_charge).max() < 1e-9


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_of_a_gradient(terminal: bool) -> None:
    """The part that is being computed on a terminal; lines for what took more than a second elsewhere."""
    console = Console(force_terminal=terminal, width=100, record=True, file=io.StringIO())
    with IterationTable(console) as table, step_listener(table.add_step):
        timings = Timings()
        with timings.measure("coulomb"), timings.measure("gradient of exchange"):
            report_progress(0.25)
            shown = table._spinner.render(0.0) if terminal else ""
        table.add_step("gradient of core", 1.5)
    text = console.export_text()
    if terminal:
        assert "gradient of exchange, 25% of the work launched" in str(shown)
    else:
        assert text.split("\n")[0] == "  gradient of core: 1.5 s" and "exchange" not in text
