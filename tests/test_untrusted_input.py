"""Untrusted input: files outside a job's folder, endless files, absurd numbers, names that are not UTF-8."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import cuanto
from cuanto.atomic.guess import SavedSpinors
from cuanto.batch.entry import Entry
from cuanto.batch.table import Row, Table
from cuanto.cli.calculate import run_job
from cuanto.cli.main import explain
from cuanto.cli.run import read_job
from cuanto.errors import CuantoError, InputError
from cuanto.files import write_text
from cuanto.interfaces.sources import Model, choose_model, read_source
from cuanto.report import report_html
from cuanto.scf.checkpoint import SEAL, read_checkpoint
from cuanto.system import text
from cuanto.system.formats import qcschema_structure

H2 = "2\n\nH 0 0 0\nH 0 0 0.74\n"
SCHEMA = {"symbols": ["H", "H"], "geometry": [0, 0, 0, 0, 0, 1.4]}
FAST: dict[str, Any] = {"fitting": "none", "backend": "cpu"}
MINIMAL = "H S\n 1.0 1.0\n"


@pytest.fixture
def hydrogen() -> cuanto.Molecule:
    return cuanto.Molecule.from_string(H2)


# ------------------------------------------------------------------------------------ files that an input may name


def write_input(path: Path, basis: str, **keywords: Any) -> Path:
    model = {"method": "hf", "basis": basis}
    path.write_text(json.dumps({"molecule": SCHEMA, "driver": "energy", "model": model, "keywords": keywords}))
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job's folder, which is the working folder; a secret file lies outside of it."""
    (tmp_path / "secret.nw").write_text(MINIMAL)
    inside = tmp_path / "job"
    inside.mkdir()
    (inside / "own.nw").write_text(MINIMAL)
    (inside / "link.nw").symlink_to(tmp_path / "secret.nw")
    monkeypatch.chdir(inside)
    return inside


OUTSIDE = ["../secret.nw", "{}/secret.nw", "link.nw", "/etc/passwd", "~/x.nw"]


@pytest.mark.parametrize("basis", OUTSIDE)
@pytest.mark.parametrize("key", ["basis", "auxbasis"])
def test_a_qcschema_input_reads_no_file_outside(basis: str, key: str, folder: Path) -> None:
    """Files outside are refused on the command line, in a job, and through `cuanto.compute`."""
    named = basis.format(folder.parent)
    chosen = {"basis": named} if key == "basis" else {"basis": "sto-3g", "auxbasis": named}
    path = write_input(folder / "in.json", **chosen)
    with pytest.raises(InputError, match=f"{key} .* is a file outside the folder of the input: copy it there, or name"):
        choose_model(read_source(str(path)), Model())
    (folder / "job.toml").write_text("molecule = 'in.json'\nbackend = 'cpu'\n")
    # In a job, ~ is the name of a folder.
    problem = "does not exist" if named.startswith("~") else "is outside the folder of the job"
    with pytest.raises(InputError, match=problem):
        run_job(read_job(folder / "job.toml", quiet=True))
    failed = cuanto.compute(json.loads(path.read_text()))
    assert not failed["success"] and "is a file outside" in failed["error"]["error_message"]


def test_a_qcschema_input_may_name_its_own_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_input(folder / "in.json", "own.nw")
    assert choose_model(read_source(str(path)), Model()).basis == "own.nw"
    assert choose_model(read_source(str(write_input(path, "../secret.nw"))), Model(basis="sto-3g")).basis == "sto-3g"
    (folder / "job.toml").write_text("molecule = 'in.json'\nbackend = 'cpu'\nfitting = 'none'\n")
    monkeypatch.chdir("/")
    assert run_job(read_job(write_input(path, "own.nw").with_name("job.toml"), quiet=True)) == 0
    write_input(path, "../secret.nw")
    assert run_job(read_job(folder / "job.toml", anywhere=True, quiet=True)) == 0


# --------------------------------------------------------------------------------------------- keys of the journal


@pytest.mark.parametrize("suffix", [".nw", ".gbs", ".json"])  # the format is recognised by the content
def test_an_edited_set_of_the_search_path_is_another_calculation(
    suffix: str, tmp_path: Path, hydrogen: cuanto.Molecule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(tmp_path))

    def key(basis: str = "mine", **keywords: Any) -> str:
        return Entry("a", hydrogen, Model("hf", basis, keywords)).key

    def keys() -> list[str]:
        return [key(), key("sto-3g", auxbasis="mine"), key("sto-3g")]

    missing = keys()
    (tmp_path / f"mine{suffix}").write_text(MINIMAL)
    before = keys()
    assert before[:2] != missing[:2] and before == keys()
    (tmp_path / f"mine{suffix}").write_text("H S\n 1.1 1.0\n")
    after = keys()
    assert after[0] != before[0] and after[1] != before[1] and after[2] == before[2]
    (tmp_path / f"mine.O{suffix}").write_text("O S\n 1.1 1.0\n")  # a set for an element that the molecule lacks
    assert keys() == after


# ------------------------------------------------------------------------------------------- endless and odd files


def test_devices_and_pipes_are_read_in_bounded_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "LONGEST_WAIT", 0.2)
    with pytest.raises(InputError, match="'/dev/zero' cannot be read: it is a device, not a file"):
        cuanto.Molecule.from_file("/dev/zero")
    os.mkfifo(pipe := tmp_path / "pipe.xyz")
    begin = time.monotonic()
    with pytest.raises(InputError, match="the pipe delivered no data for"):
        cuanto.Molecule.from_file(pipe)
    for read in (cuanto.read, report_html):
        with pytest.raises(InputError, match="the pipe delivered no data for"):
            read(pipe)
    with pytest.raises(InputError, match="there is no such file"):
        SavedSpinors.load(pipe)
    assert time.monotonic() - begin < 10


def test_a_pipe_with_a_molecule_is_read(tmp_path: Path) -> None:
    """As in `cuanto energy <(obabel ...)`."""
    os.mkfifo(pipe := tmp_path / "pipe.xyz")
    writer = threading.Thread(target=lambda: pipe.write_text(H2))
    writer.start()
    assert cuanto.Molecule.from_file(pipe).symbols == ("H", "H")
    writer.join()


def test_a_pipe_with_a_result_is_read(tmp_path: Path) -> None:
    """As in `cuanto report <(zcat ...)`: the text is there only once."""
    result = cuanto.energy(cuanto.Molecule.from_string(H2), "hf", "sto-3g", backend="cpu")
    os.mkfifo(pipe := tmp_path / "pipe.json")
    schema = json.dumps(result.to_qcschema())
    for read, expected in ((cuanto.read, "hf"), (report_html, "<!doctype html>")):
        writer = threading.Thread(target=lambda: pipe.write_text(schema))
        writer.start()
        assert expected in str(read(pipe))
        writer.join()


def test_long_texts_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "long.xyz").write_text(H2 + "\n" * (2 << 20))
    monkeypatch.setattr(text, "MAX_FILE_BYTES", 1 << 20)
    with pytest.raises(InputError, match="cannot be read: it is larger than 1 MiB"):
        cuanto.Molecule.from_file(tmp_path / "long.xyz")


@pytest.mark.parametrize(
    ("smiles", "problem"),
    [("C" * 3000, "3000 characters is too long"), ("C" * 200, "602 atoms"), ("O.O****", "write the element")],
)
def test_large_smiles_are_refused(smiles: str, problem: str) -> None:
    begin = time.monotonic()
    with pytest.raises(InputError, match=problem):
        cuanto.Molecule.from_smiles(smiles)
    assert time.monotonic() - begin < 20


def rows(count: int, exponent: float = 0.1) -> str:
    return "H S\n" + "".join(f" {exponent * 1.05**k} 1.0\n" for k in range(count))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (rows(300), "a shell of 300 primitives is too large: the limit is 100"),
        ("H S\n 1e-308 1.0\n", "exponents from 1e-308 to 1e-308 are not all between 1e-08 and 1e\\+15"),
        ("H S\n 1e300 1.0\n", "exponents from 1e\\+300"),
        ("H P\n 1.0 1.0\n", "a basis without s functions cannot hold the superposed atoms: use guess=core"),
    ],
)
def test_odd_basis_sets_are_refused(content: str, problem: str, tmp_path: Path, hydrogen: cuanto.Molecule) -> None:
    (tmp_path / "odd.nw").write_text(content)
    with pytest.raises(InputError, match=problem):
        cuanto.energy(hydrogen, "hf", str(tmp_path / "odd.nw"), **FAST)


def test_a_basis_with_a_gap_between_its_momenta(tmp_path: Path) -> None:
    """Superposed atoms leave out what follows the gap."""
    (tmp_path / "gap.nw").write_text("N S\n 1.0 1.0\nN S\n 40.0 1.0\nN D\n 1.0 1.0\n")
    nitrogen = cuanto.Molecule(["N"], [[0, 0, 0]], charge=3)
    assert cuanto.energy(nitrogen, "hf", str(tmp_path / "gap.nw"), **FAST).converged


@pytest.mark.parametrize("basis", ["own.nw", "own"])
def test_p_functions_alone_work_with_the_core_guess(basis: str, folder: Path, hydrogen: cuanto.Molecule) -> None:
    (folder / "own.nw").write_text("H P\n 1.0 1.0\n")
    os.environ["CUANTO_BASIS_PATH"], before = str(folder), os.environ.get("CUANTO_BASIS_PATH", "")
    try:
        assert cuanto.energy(hydrogen, "hf", basis, guess="core", **FAST).converged
    finally:
        os.environ["CUANTO_BASIS_PATH"] = before


@pytest.mark.parametrize(
    "given",
    [{"field": [0, 0, 1e308]}, {"point_charges": ([1e300], [[0, 0, 9]])}, {"point_charges": ([1], [[0, 0, 1e99]])}],
)
def test_absurd_surroundings_are_refused(given: dict[str, Any], hydrogen: cuanto.Molecule) -> None:
    with pytest.raises(InputError, match=r"is too large, the limit is .* atomic units"):
        cuanto.energy(hydrogen, "hf", "sto-3g", **FAST, **given)


@pytest.mark.parametrize("real", [5, "yes", [1, 0], [True]])
def test_real_in_qcschema(real: object) -> None:
    with pytest.raises(InputError, match="real must be true or false for each of the 2 atoms"):
        qcschema_structure({**SCHEMA, "real": real}, "in.json")


# ------------------------------------------------------------------------------------------------- names of files


def test_a_name_that_is_not_utf8_does_not_stop_a_table(tmp_path: Path, hydrogen: cuanto.Molecule) -> None:
    not_utf8 = os.fsdecode(b"\xff.xyz")
    row = Row(Entry(not_utf8, hydrogen, Model("pm6"), file=not_utf8), energy=-1.0)
    for ending in ("csv", "jsonl", "parquet"):
        Table(tmp_path / f"t.{ending}").write([row])
    assert "\\udcff.xyz" in (tmp_path / "t.csv").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "t.jsonl").read_text())["file"] == "\\udcff.xyz"
    write_text(tmp_path / "page.html", not_utf8)
    assert (tmp_path / "page.html").read_text() == "\\udcff.xyz"


@pytest.mark.parametrize("name", ["=1+1", "+cmd", "-2", "@sum", "\t=1"])
def test_a_table_has_no_formulas(name: str, tmp_path: Path, hydrogen: cuanto.Molecule) -> None:
    Table(tmp_path / "t.csv").write([Row(Entry(name, hydrogen, Model("pm6")), energy=-1.0)])
    with (tmp_path / "t.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["name"] == f"'{name}" and row["energy_hartree"] == "-1.0"


def test_long_names_can_be_written(tmp_path: Path, hydrogen: cuanto.Molecule) -> None:
    name = "a" * 250
    write_text(tmp_path / f"{name}.txt", "whole")
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.txt"]
    with pytest.raises(InputError, match="File name too long"):
        write_text(tmp_path / f"{name}.longer", "")


# ----------------------------------------------------------------------------------------------------- checkpoints

FULL_DISK = """
import resource, sys
import cuanto
from cuanto.scf.checkpoint import Checkpoint
from cuanto.errors import InputError
molecule = cuanto.Molecule.from_string(sys.argv[2])
result = cuanto.energy(molecule, "hf", "sto-3g", fitting="none", backend="cpu")
keep = Checkpoint(sys.argv[1], molecule, result.basis, "rhf", result.backend)
keep(result.state)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
try:
    keep(result.state)
except InputError as error:
    print(error)
"""


def test_a_disk_that_is_full_while_a_checkpoint_is_written(tmp_path: Path) -> None:
    """There is an error, and no crash of HDF5 when the process ends."""
    path = tmp_path / "a.h5"
    command = [sys.executable, "-c", FULL_DISK, str(path), H2]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout == f"cannot write the checkpoint {path}: File too large\n"
    assert read_checkpoint(path).converged and [one.name for one in tmp_path.iterdir()] == ["a.h5"]


def modify(path: Path, change: Callable[[Any], None]) -> None:
    """Change the data of a checkpoint and give it the matching digest."""
    content = path.read_bytes()
    path.write_bytes(content[: -len(SEAL) - 32])
    with h5py.File(path, "r+") as file:
        change(file)
    path.write_bytes((data := path.read_bytes()) + SEAL + hashlib.sha256(data).digest())


def replaced(name: str, value: Any) -> Callable[[Any], None]:
    def change(file: Any) -> None:
        del file[name]
        file[name] = value

    return change


CHANGES = {
    "NaN": replaced("orbitals/C_spm", np.full((1, 2, 1), np.nan)),
    "another shape": replaced("orbitals/C_spm", np.zeros((1, 3, 1))),
    "no orbitals": replaced("orbitals/C_spm", 5.0),
    "occupations": replaced("orbitals/n_sm", np.full((1, 1), 1e9)),
    "three spins": replaced("orbitals/n_sm", np.ones((3, 1))),
    "text": replaced("orbitals/C_spm", "text"),
    "shells": replaced("basis/shells", np.full((2, 5), 10**12)),
    "negative": replaced("basis/shells", np.full((2, 5), -1)),
    "exponents": replaced("basis/exponents", np.zeros(6)),
    "symbols": replaced("molecule/symbols", [5, 6]),
    "version": lambda file: file.attrs.__setitem__("version", "one"),
    "energy": lambda file: file.attrs.__setitem__("energy", "low"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_modified_checkpoint_with_a_new_digest_is_refused(
    change: str, tmp_path: Path, hydrogen: cuanto.Molecule
) -> None:
    from cuanto.scf.checkpoint import Checkpoint

    result = cuanto.energy(hydrogen, "hf", "sto-3g", **FAST)
    assert isinstance(result, cuanto.methods.GaussianResult)
    Checkpoint(path := tmp_path / "a.h5", hydrogen, result.basis, "rhf", result.backend)(result.state)
    modify(path, CHANGES[change])
    try:
        found = cuanto.energy(hydrogen, "hf", "sto-3g", guess=path, **FAST)
        assert found.energy == pytest.approx(result.energy)
    except CuantoError as error:
        assert explain(error)[1] == 2
