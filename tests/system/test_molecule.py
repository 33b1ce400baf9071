"""Molecules and XYZ files: reading, and one-line error messages."""

import json
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import qcelemental
from pyscf import gto

from cuanto.errors import InputError, InputWarning
from cuanto.system import ATOMIC_NUMBERS, SYMBOLS, Molecule, distances, symbol_of
from cuanto.system.formats import qcschema_structure
from cuanto.units import BOHR_IN_ANGSTROM
from paths import DATA

GEOMETRIES = DATA / "geometries"

WATER = """3
name=water charge=0 mult=1
O  0.000  0.000  0.117
H  0.000  0.757 -0.469
H  0.000 -0.757 -0.469
"""


def test_water_from_string() -> None:
    water = Molecule.from_string(WATER)
    assert water.symbols == ("O", "H", "H")
    assert water.name == "water"
    assert (water.natom, water.nelectron, water.n_alpha, water.n_beta) == (3, 10, 5, 5)
    assert water.numbers.tolist() == [8, 1, 1]
    assert water.R_ax[1, 1] == pytest.approx(0.757 / BOHR_IN_ANGSTROM, rel=1e-15)


@pytest.mark.parametrize(
    "text",
    [
        "O 0 0 0.117; H 0 0.757 -0.469; H 0 -0.757 -0.469",
        "O, 0, 0, 0.117\r\n\r\nx 9 9 9\r\n  H1 0 .757 -.469\r\n 1 0 -7.57D-1 -0.469\r\n",
    ],
)
def test_atoms_without_header(text: str, tmp_path: Path) -> None:
    expected, path = Molecule.from_string(WATER), tmp_path / "water.xyz"
    for lines, charge, multiplicity in ((text, 0, 1), ("+1 2\n" + text, 1, 2)):
        path.write_text(lines)
        for found in (Molecule.of(lines), Molecule.of(path), Molecule.from_string(lines), Molecule.from_xyz(path)):
            assert found.symbols == expected.symbols
            assert np.array_equal(found.R_ax, expected.R_ax)
            assert (found.charge, found.multiplicity) == (charge, multiplicity)
    assert Molecule.of(text, charge=-1).charge == -1


@pytest.mark.parametrize("path", sorted(GEOMETRIES.glob("*.xyz")), ids=lambda path: path.stem)
def test_reference_geometries_against_pyscf(path: Path) -> None:
    molecule = Molecule.from_xyz(path)
    atoms = [line.split()[:4] for line in path.read_text().splitlines()[2:]]
    mole = gto.M(
        atom=[(a[0], tuple(map(float, a[1:]))) for a in atoms],
        charge=molecule.charge,
        spin=molecule.multiplicity - 1,
        basis={},
        verbose=0,
    )
    assert molecule.name == path.stem
    assert (molecule.n_alpha, molecule.n_beta) == mole.nelec
    assert molecule.R_ax == pytest.approx(mole.atom_coords(), abs=1e-12)
    assert molecule.nuclear_repulsion() == pytest.approx(mole.energy_nuc(), rel=1e-13)


def test_frozen() -> None:
    water = Molecule.from_string(WATER)
    with pytest.raises(FrozenInstanceError):
        water.charge = 1  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        water.R_ax[0, 0] = 1.0
    assert replace(water, charge=1, multiplicity=None).multiplicity == 2
    assert pickle.loads(pickle.dumps(water)).symbols == water.symbols


def test_comment_line_gives_charge_and_multiplicity() -> None:
    text = "1\nCharge=-1 Multiplicity=3\nF 0 0 0\n"
    fluoride = Molecule.from_string(text)
    assert (fluoride.charge, fluoride.multiplicity) == (-1, 3)
    assert Molecule.from_string(text, multiplicity=1).multiplicity == 1
    # The multiplicity of the file belongs to the charge of the file.
    assert Molecule.from_string(text, charge=0).multiplicity == 2


def test_lowest_multiplicity_is_the_default() -> None:
    assert Molecule(["N"], [[0, 0, 0]]).multiplicity == 2
    assert Molecule(["N"], [[0, 0, 0]], charge=1).multiplicity == 1
    assert Molecule(["N"], [[0, 0, 0]], multiplicity=4).n_alpha == 5


@pytest.mark.parametrize(
    "line", ["cl 0 0 0", "CL 0 0 0", "17 0 0 0", "Cl1 0 0 0", "Cl 0.0 0.0D+00 .0 -0.3 label", "\tCl 0 0 0 "]
)
def test_spellings_of_an_atom(line: str) -> None:
    assert Molecule.from_string(f"1\n\n{line}\n\n  \n").symbols == ("Cl",)


def test_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "water.xyz"
    variants = (WATER.replace("\n", "\r\n"), WATER.replace("\n", "\r"), "\ufeff" + WATER, WATER.rstrip())
    for data in variants:
        path.write_bytes(data.encode())
        assert Molecule.from_xyz(path).natom == 3


@pytest.mark.parametrize(
    ("comment", "line"),
    [
        ("", "O 0 0 0 -0.8 0.1 0.2 0.3"),
        ("", "O 0 0 0 OW"),
        ("", "O 0 0 0 CA 1"),
        ("Properties=species:S:1:pos:R:3:kind:S:1:forces:R:3", "O 0 0 0 C 0.1 0.2 0.3"),
    ],
)
def test_other_columns(comment: str, line: str) -> None:
    assert Molecule.from_string(f"1\n{comment}\n{line}\n").symbols == ("O",)


def test_extended_xyz_with_usual_columns() -> None:
    text = '1\nLattice="9 0 0 0 9 0 0 0 9" Properties=species:S:1:pos:R:3:forces:R:3 pbc="F F F"\nHe 0 0 0 1 2 3\n'
    assert Molecule.from_string(text).symbols == ("He",)


def test_cells() -> None:
    for pbc in ('"T T T"', "T", "'F F 1'", "[False,False,True]"):
        with pytest.raises(InputError, match='not periodic systems: write pbc="F F F" if it is a molecule'):
            Molecule.from_string(f"1\npbc={pbc}\nHe 0 0 0\n")
    with pytest.warns(InputWarning, match="line 2: the lattice is not read: cuanto computes molecules"):
        Molecule.from_string('1\nLattice="9 0 0 0 9 0 0 0 9"\nHe 0 0 0\n', charge=1)


@pytest.mark.parametrize(
    "comment",
    [
        *("units=A", "units=Å", "unit=Ångström", "Units='angstrom'", "# cell{atomic_unit} Traj: positions{angstrom}"),
        *(
            "energy=-76 unit=eV",
            "unit=hartree",
            "Units=kcal/mol",
            "units=metal",
            "unit=au/fs",
            "unit=a.u./fs",
            "unit=pmol",
        ),
    ],
)
def test_angstrom_and_units_of_other_quantities(comment: str) -> None:
    assert Molecule.from_string(f"2\n{comment}\nH 0 0 0\nH 0 0 0.74\n").natom == 2


@pytest.mark.parametrize(
    "comment",
    [
        *("units bohr", "Units: Bohr", "unit: bohr", "units are bohr", "water, units bohr", "unit of length: bohr"),
        *(
            "coordinates in Bohr",
            "coordinates (Bohr)",
            "xyz in bohr",
            "positions are given in bohr",
            "all units in bohr",
        ),
        *(
            "geometry in a.u.",
            "units: a.u.",
            "# units atomic units",
            "coordinates in nm, energy -76",
            "length unit: pm",
        ),
    ],
)
def test_other_units_in_words(comment: str) -> None:
    with pytest.raises(InputError, match=r"line 2: .*, but XYZ files are in Angstrom: convert the coordinates"):
        Molecule.from_string(f"2\n{comment}\nH 0 0 0\nH 0 0 0.74\n")


@pytest.mark.parametrize(
    "comment",
    [
        *("energy -76 hartree, dipole in a.u.", "B3LYP, a.u.", "energy units: a.u.", "dipole, units a.u."),
        *("spin in units of Bohr magnetons", "forces in hartree/bohr", "gradient units hartree/bohr", "units bohr^2"),
        *("geometry: Au dimer", "coordinates: atomic number, x, y, z", "geometry optimized, energies in a.u."),
        *("coordinates in Angstrom", "coordinates from Bohr et al.", "positions by PM6", "geometry au repos", "bohr"),
    ],
)
def test_words_that_are_not_units_of_coordinates(comment: str) -> None:
    assert Molecule.from_string(f"2\n{comment}\nH 0 0 0\nH 0 0 0.74\n").natom == 2


@pytest.mark.parametrize("unit", ["bohrs,", "a.u.", "AU", "atomic", "nm", "pm", "picometre"])
def test_other_units_of_length(unit: str) -> None:
    for comment in (f"unit={unit}", f"positions{{{unit.strip(',')}}}"):
        with pytest.raises(InputError, match=r"line 2: .*, but XYZ files are in Angstrom: convert the coordinates"):
            Molecule.from_string(f"2\n{comment}\nH 0 0 0\nH 0 0 0.74\n")


def atoms(*lines: str, comment: str = "") -> str:
    return "\n".join([str(len(lines)), comment, *lines])


BAD_TEXTS = {
    "empty": ("", "is empty"),
    "blank": (" \n\n", "is empty"),
    "no count": ("water\nO 0 0 0\n", "line 1: expected the number of atoms, found 'water'"),
    "atom of a list": ("O 0 0 0; H 0 0\n", "xyz, atom 2: expected 'element x y z', found 'H 0 0'"),
    "element in a list": ("1 2; O 0 0 0; Hx 0 0 1", "xyz, atom 2: unknown element 'Hx'"),
    "atoms without semicolons": (
        "H 0 0 0 H 0 0 0.74",
        "xyz, atom 1: 'H 0 0 0 H 0 0 0.74' has 8 fields.*separate atoms by ;",
    ),
    "atoms with commas": ("O 0 0 0, H 0 0.76 0.59, H 0 -0.76 0.59", "atom 1: .* has 12 fields.*separate atoms by ;"),
    "atoms without a line end": (
        atoms("O 0 0 0 H 0 0 1"),
        "line 3: 'O 0 0 0 H 0 0 1' has two atoms: write one on each",
    ),
    "list of dummies": ("X 0 0 0\nX 0 0 1", "has dummy atoms only"),
    "forces": (
        "1\n# CELL(abcABC): 9 9 9 90 90 90 Step: 0 Bead: 0 forces{ev/ang} cell{angstrom}\nHe 0 0 0",
        "line 2: the columns are forces, not positions",
    ),
    "float count": ("1.0\n\nHe 0 0 0\n", "line 1: expected the number of atoms"),
    "zero atoms": ("0\n\n", "gives 0 as the number of atoms"),
    "negative count": ("-1\n\nHe 0 0 0\n", "gives -1 as the number of atoms"),
    "huge count": ("999999999\n\nHe 0 0 0\n", "line 1 says 999999999 atoms, but only 1 "),
    "too few": ("3\n\nHe 0 0 0\n", "line 1 says 3 atoms, but only 1 "),
    "only the count": ("3\n", "line 1 says 3 atoms, but only 0 "),
    "too many": ("1\n\nHe 0 0 0\nHe 0 0 5\n", "line 1 says 1 atoms, but 2 "),
    "two frames": (
        "1\n\nHe 0 0 0\n1\n\nHe 0 0 1\n",
        r"more than one structure; .* `cuanto energy FILE --out TABLE.csv`, in Python with cuanto.energies\(FILE\)",
    ),
    "missing column": (atoms("He 0 0"), "line 3: expected 'element x y z', found 'He 0 0'"),
    "blank atom": ("2\n\nHe 0 0 0\n\nHe 0 0 3", "line 1 says 2 atoms, but 3 "),
    "nan": (atoms("He 0 nan 0"), "line 3: coordinate 'nan' is not a number"),
    "inf": (atoms("He 0 0 -Infinity"), "coordinate '-Infinity' is not a number"),
    "overflow": (atoms("He 0 0 1e999"), "coordinate '1e999' is not finite"),
    "word": (atoms("He 0 zero 0"), "line 3: coordinate 'zero' is not a number"),
    "underscore": (atoms("He 0 1_0 0"), "coordinate '1_0' is not a number"),
    "comma": (atoms("He 0,0 0 0"), "coordinate '0,0' is not a number: write 0.0, with a point"),
    "commas": (atoms("He 0 1,000,0 0"), "coordinate '1,000,0' is not a number$"),
    "commas in a list": ("O 0,0 0,0 0,117", "separate atoms by ; or line ends, and write 0.5, not 0,5"),
    "huge": (atoms("He 0 0 1e7"), "are the units Angstrom?"),
    "duplicate": (atoms("H 0 0 0", "O 0 0 1", "H 0 0 0"), r"atoms 1 \(H\) and 3 \(H\) are at the same position"),
    "units": ("1\nunits=bohr\nHe 0 0 0\n", "line 2: 'units=bohr', but XYZ files are in Angstrom: convert"),
    "quoted units": (
        atoms("He 0 0 0", comment='unit=eV Units = "atomic units"'),
        r"line 2: 'Units = \"atomic units\"', but XYZ files are in Angstrom",
    ),
    "units of i-PI": (
        atoms("He 0 0 0", comment="# cell{atomic_unit} Traj: positions{atomic_unit} Step: 0"),
        r"line 2: 'positions\{atomic_unit\}', but XYZ files are in Angstrom: convert",
    ),
    "nanometre": (atoms("O 0 0 0.0117", "H 0 0.0757 -0.0469"), r"are 0.096 Angstrom apart.*nm"),
    "element": (atoms("Xq 0 0 0"), r"line 3: unknown element 'Xq'; did you mean 'Xe'\?"),
    "element number": (atoms("119 0 0 0"), "atomic number '119' is not between 1 and 118"),
    "label": (atoms("H_a 0 0 0"), "unknown element 'H_a': write a symbol"),
    "deuterium": (atoms("D 0 0 0"), "write isotopes of hydrogen as H"),
    "dummies only": (atoms("X 0 0 0"), "has dummy atoms only, which have no nucleus"),
    "nameless ghost": (atoms("Gh 0 0 0"), "dummy atom 'Gh' has no element: write a ghost atom as Gh-O"),
    "ghosts only": (
        atoms("@He 0 0 0"),
        "all atoms are ghosts, which have no electrons: at least one atom must be real",
    ),
    "number zero": (atoms("0 0 0 0"), "dummy atom '0' has no element"),
    "charge": (atoms("He 0 0 0", comment="charge=one"), "line 2: charge 'one' is not a whole number"),
    "two charges": (atoms("He 0 0 0", comment="charge=0 charge=1"), "more than one charge"),
    "columns": (atoms("He 0 0 0", comment="Properties=species:S:1:forces:R:3:pos:R:3"), "columns must begin"),
    "no electrons": (atoms("He 0 0 0", comment="charge=2"), r"charge \+2 is impossible"),
    "parity": (atoms("He 0 0 0", comment="mult=2"), "multiplicity 2 is impossible with 2 electrons"),
    "zero binary": ("\0\1\2", "line 1: expected the number of atoms"),
}


@pytest.mark.parametrize(("text", "message"), BAD_TEXTS.values(), ids=BAD_TEXTS)
def test_malformed_text_gives_one_clear_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Molecule.from_string(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("charge", "multiplicity", "message"),
    [
        (3, None, r"charge \+3 is impossible: no electron would be left with the 2 protons; it can be -4 to \+1"),
        (-9, None, r"charge -9 is impossible: 11 electrons are more than the 2 protons can bind; it can be -4 to \+1"),
        (0, 0, r"multiplicity 0 is impossible with 2 electrons \(charge 0\): it can be 1 or 3"),
        (0, -1, "it can be 1 or 3"),
        (0, 5, "it can be 1 or 3"),
        (1, 1, r"with 1 electron \(charge \+1\): it can be 2$"),
        (0.5, None, "charge must be a whole number, not '0.5'"),
        (0, "two", "multiplicity must be a whole number, not 'two'"),
    ],
)
def test_impossible_charge_and_multiplicity(charge: int, multiplicity: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Molecule(["He"], [[0, 0, 0]], charge, multiplicity)


def test_many_possible_multiplicities_are_not_all_listed() -> None:
    with pytest.raises(InputError, match=r"with 36 electrons \(charge 0\): it can be 1, 3, 5 and so on up to 37$"):
        Molecule(["Kr"], [[0, 0, 0]], 0, 2)


@pytest.mark.parametrize(
    ("symbols", "positions", "message"),
    [
        ([], [], "0 atoms need coordinates"),
        (["He"], [[0, 0]], r"not \(1, 2\)"),
        (["He"], [[0, 0, np.nan]], r"atom 1 \(He\) has a coordinate that is not finite"),
        (["He"], [["a", 0, 0]], "must be an array of numbers"),
    ],
)
def test_bad_arguments(symbols: list[str], positions: list[list[float]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Molecule(symbols, positions)


def test_a_formula_is_not_a_list_of_symbols() -> None:
    with pytest.raises(
        InputError, match=r"symbols are a list such as \['H', 'H'\], not 'H2'; cuanto.Molecule.of reads"
    ):
        Molecule("H2", [[0, 0, 0], [0, 0, 1.4]])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        Molecule.from_xyz(tmp_path / "none.xyz")
    with pytest.raises(InputError, match="is a directory"):
        Molecule.from_xyz(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        Molecule.from_xyz("a\0b.xyz")
    with pytest.raises(InputError, match="cannot be read"):
        Molecule.from_xyz("x" * 5000 + ".xyz")
    binary = tmp_path / "binary.xyz"
    for data, message in ((b"\xff\xfe\x00", "not UTF-8"), (b"3\n\0\n", "zero bytes")):
        binary.write_bytes(data)
        with pytest.raises(InputError, match=message):
            Molecule.from_xyz(binary)
    with pytest.raises(InputError, match="not bytes"):
        Molecule.from_string(b"1")  # type: ignore[arg-type]


def test_advice_for_a_table_of_smiles(tmp_path: Path) -> None:
    for name in ("a.csv", "b.SMI"):
        (path := tmp_path / name).write_text("smiles,name\nCCO,ethanol\n")
        with pytest.raises(InputError, match=r"if the file has SMILES, give each of them as smiles:CCO, .*--out TABLE"):
            Molecule.from_file(path)


def test_messages_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.xyz"
    path.write_text("1\n\nHe 0 0\n")
    with pytest.raises(InputError, match=r"bad\.xyz, line 3: "):
        Molecule.from_xyz(path)
    path.write_text("1\nmult=2\nHe 0 0 0\n")
    with pytest.raises(InputError, match=r"bad\.xyz: multiplicity 2 is impossible"):
        Molecule.from_xyz(path)


def test_elements() -> None:
    assert len(SYMBOLS) == len(set(SYMBOLS)) == 118
    assert [ATOMIC_NUMBERS[symbol] for symbol in ("H", "Kr", "Xe", "Rn", "Og")] == [1, 36, 54, 86, 118]
    assert [symbol_of(gto.mole._symbol(z)) for z in range(1, 119)] == list(SYMBOLS)


def test_nuclear_repulsion_of_many_atoms_needs_little_memory() -> None:
    n = 3000
    R_ax = np.column_stack([2.0 * np.arange(n), np.zeros(n), np.zeros(n)])
    chain = Molecule(["He"] * n, R_ax)
    expected = 4 * sum((n - d) / (2.0 * d) for d in range(1, n))
    assert chain.nuclear_repulsion() == pytest.approx(expected, rel=1e-12)


def test_import_is_light() -> None:
    code = (
        "import sys, cuanto.system, cuanto.basis; "
        "print([m for m in ('pyscf', 'basis_set_exchange', 'cupy', 'scipy.spatial') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"geometry": [0.0, 0.0, 10**400]}, "a number that is too large"),
        ({"molecular_charge": 10**10}, "molecular_charge '10000000000' is too large"),
        ({"geometry": [True, 0.0, 0.0]}, "geometry must be numbers"),
        ({"real": [1]}, "real must be true or false"),
    ],
)
def test_numbers_of_a_qcschema_molecule(changed: dict[str, object], message: str) -> None:
    schema = {"symbols": ["H"], "geometry": [0.0, 0.0, 0.0], **changed}
    with pytest.raises(InputError, match=message):
        qcschema_structure(schema, "h.json")


@pytest.mark.parametrize("few", [0, 250])
@pytest.mark.parametrize(("n", "edge"), [(1, 1.0), (2, 1.0), (50, 3.0), (200, 6.0)])
def test_close_atoms(n: int, edge: float, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same pairs are found from all distances and from a tree."""
    monkeypatch.setattr(distances, "FEW_ATOMS", few)
    R_ax = np.random.default_rng(n).uniform(0.0, edge, (n, 3))
    d_ab = np.linalg.norm(R_ax[:, None] - R_ax, axis=2)
    r_k, a_k, b_k = distances.close_pairs(R_ax, 1.1)
    expected = {(a, b) for a, b in np.argwhere(d_ab < 1.1).tolist() if a < b}
    assert n < 3 or 0 < len(expected) < n * (n - 1) / 4
    assert len(r_k) == len(expected) and set(zip(a_k.tolist(), b_k.tolist(), strict=True)) == expected
    np.testing.assert_allclose(r_k, d_ab[a_k, b_k], rtol=1e-14)


def test_the_closest_atoms_of_a_large_molecule() -> None:
    R_ax = 3.0 * np.random.default_rng(2).permutation(np.stack(np.mgrid[:7, :7, :7], axis=-1).reshape(-1, 3))
    R_ax[40] = R_ax[7] + [0.0, 0.3, 0.0]
    with pytest.raises(InputError, match=r"atoms 8 \(H\) and 41 \(H\) are 0.16 Angstrom apart"):
        Molecule(["H"] * len(R_ax), R_ax)


PAIR = {"symbols": ["C", "H"], "geometry": [0, 0, 0, 0, 0, 6.0], "fragments": [[0], [1]]}
HELIUM = {**PAIR, "symbols": ["He", "H"]}


@pytest.mark.parametrize(
    "given",
    [
        {**HELIUM, "fragment_charges": [0, 1]},
        {**HELIUM, "fragment_charges": [0, 1.0], "molecular_charge": 1.0},
        {**PAIR, "fragment_charges": [-1, 1], "fragment_multiplicities": [2, 1]},
        {**PAIR, "fragment_charges": [0, 0], "fragment_multiplicities": [3, 2]},
        {**PAIR, "fragment_multiplicities": [1, 2]},
        {**PAIR, "fragment_multiplicities": [3, 2], "molecular_multiplicity": 2},
        {**HELIUM, "symbols": ["H", "H"], "fragment_charges": [0, 0], "fragment_multiplicities": [2, 2]},
    ],
)
def test_fragments_of_qcschema_against_qcelemental(given: dict[str, Any]) -> None:
    expected = qcelemental.models.Molecule(**given)
    found = Molecule.from_text(json.dumps(given))
    assert (found.charge, found.multiplicity) == (expected.molecular_charge, expected.molecular_multiplicity)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"fragment_charges": [0, 1], "molecular_charge": 0},
            "molecular_charge 0 is not the sum of fragment_charges, 1",
        ),
        ({"fragment_charges": [1]}, "fragment_charges must be 2 whole numbers, one for each of the fragments"),
        ({"fragment_charges": [0, None]}, "fragment_charges must be 2 whole numbers"),
        ({"fragment_charges": 1}, "fragment_charges must be 2 whole numbers"),
        ({"fragment_charges": [0, 0.5]}, "fragment_charges must be a whole number, not '0.5'"),
        ({"fragment_multiplicities": [0, 2]}, "fragment_multiplicities must be at least 1"),
        ({"fragment_multiplicities": [2, 2]}, "multiplicity 3 is impossible with 7 electrons"),
    ],
)
def test_wrong_fragments_of_qcschema(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Molecule.from_text(json.dumps({**PAIR, **given}))
