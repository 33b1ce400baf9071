"""Random bytes and damaged files: readers raise only `InputError`, always with a one-line message."""

from pathlib import Path

import basis_set_exchange as bse
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cuanto.basis import Basis
from cuanto.basis.formats import parse_basis, read_basis_file
from cuanto.system import Molecule
from fuzz import damaged, only_input_errors
from paths import DATA

XYZ = (DATA / "geometries" / "glycine.xyz").read_text()
SHORT_XYZ = "2\nname=x charge=0 mult=1\nH 0.0 0.0 0.0\nF 0.0 0.0 0.9\n"
SETS = [bse.get_basis("6-31g*", elements=["H", "F"], fmt=fmt) for fmt in ("nwchem", "gaussian94", "json")]
SETS += [bse.get_basis("def2-svp", elements=["H", "Ag"], fmt=fmt, header=False) for fmt in ("nwchem", "gaussian94")]


@given(damaged([SHORT_XYZ, XYZ, "0 1; H 0 0 0; F 0 0 0.9", "H 0 0 0\n\nGh-F, 0, 0, 0.9\nX 0 0 1"]))
@example("1\n\nH 0 0 0\n\n\n2")
@example("1\ncharge=--1\nH 0 0 0")
@example("2\n\nH 0 0 0\nH 0 0 1e-320\n")
@settings(max_examples=500)
def test_damaged_xyz(text: str) -> None:
    only_input_errors(lambda: Molecule.from_string(text))


@given(st.text())
def test_random_text_as_xyz(text: str) -> None:
    only_input_errors(lambda: Molecule.from_string(text))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["H", "He", "C", "26", "Og", "h1"]),
            *[st.floats(allow_nan=True, allow_infinity=True)] * 3,
        ),
        max_size=5,
    ),
    st.integers(-200, 200) | st.none(),
    st.integers(-3, 300) | st.none(),
)
def test_random_atoms(atoms: list[tuple[str, float, float, float]], charge: int | None, mult: int | None) -> None:
    lines = [f"{symbol} {x!r} {y!r} {z!r}" for symbol, x, y, z in atoms]
    only_input_errors(lambda: Molecule.from_string("\n".join([str(len(lines)), "", *lines]), charge, mult))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@given(data=st.binary())
def test_random_bytes(folder: Path, data: bytes) -> None:
    path = folder / "random.txt"
    path.write_bytes(data)
    only_input_errors(lambda: Molecule.from_xyz(path))
    only_input_errors(lambda: read_basis_file(path))


@given(name=st.text())
def test_random_file_names(name: str) -> None:
    only_input_errors(lambda: Molecule.from_xyz(name + "\0"))
    only_input_errors(lambda: read_basis_file(name + ".nw"))


@given(damaged(SETS))
@example('{"elements": {"1": {"electron_shells": [{"angular_momentum": [true]}]}}}')
@example('{"elements": {"1": {"electron_shells": [{"angular_momentum": [0], "exponents": [1e400]}]}}}')
@example("H S\n1e-320 1\n")
@example("H S\n1e308 1\n1e308 1\n")
@example("9" * 5000)
@settings(max_examples=500)
def test_damaged_basis(text: str) -> None:
    def use() -> None:
        tables = parse_basis(text)
        Basis.from_tables("fuzz", tables, Molecule(list(tables), [[0, 0, 9.0 * i] for i in range(len(tables))]))

    only_input_errors(use)


@given(st.text() | st.text("SPDH0123456789.eD+-* \n"))
def test_random_text_as_basis(text: str) -> None:
    only_input_errors(lambda: parse_basis(text))


@given(st.text())
@example("../../../etc/passwd")
@example("/")
@example("a\0b")
@example("x" * 5000)
def test_random_basis_names(name: str) -> None:
    only_input_errors(lambda: Basis(name, Molecule(["H"], [[0, 0, 0]])))
