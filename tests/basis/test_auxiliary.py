"""The choice of fitting sets, and the sets that come with the package."""

import basis_set_exchange as bse
import pytest
from pyscf import gto

import cuanto
from cuanto.basis import Basis, auxiliary_basis, fitting_basis, library
from cuanto.basis.auxiliary import _as_table
from cuanto.basis.exchange import automatic_auxiliary
from cuanto.basis.formats import parse_basis
from cuanto.basis.library import BasisChoice
from cuanto.errors import InputError
from cuanto.system import Molecule
from paths import DATA

WATER = Molecule.from_xyz(DATA / "geometries" / "water_01.xyz")
SYMBOLS = (
    "H",
    "B",
    "C",
    "N",
    "O",
    "F",
    "Ne",
    "Al",
    "Si",
    "P",
    "S",
    "Cl",
    "Ar",
    "Ga",
    "Ge",
    "As",
    "Se",
    "Br",
    "Kr",
)


def atoms(*symbols: str) -> Molecule:
    return Molecule(symbols, [[0.0, 0.0, 5.0 * i] for i in range(len(symbols))])


@pytest.mark.parametrize(
    ("orbital", "kind", "expected"),
    [
        ("cc-pVDZ", "jk", "cc-pvdz-jkfit"),
        ("cc-pvtz", "j", "cc-pvtz-jkfit"),
        ("aug-cc-pVQZ", "jk", "aug-cc-pvqz-jkfit"),
        ("cc-pV(T+d)Z", "jk", "cc-pvtz-jkfit"),
        ("cc-pwCVTZ", "jk", "cc-pvtz-jkfit"),
        ("cc-pv6z", "jk", "cc-pv5z-jkfit"),
        ("def2-SVP", "jk", "def2-universal-jkfit"),
        ("def2-TZVPPD", "j", "def2-universal-jkfit"),
        ("x2c-SVPall", "j", "x2c-jfit"),
        ("6-31G**", "jk", "def2-universal-jkfit"),
        ("STO-3G", "j", "def2-universal-jkfit"),
        ("orbitals.nw", "jk", "def2-universal-jkfit"),
    ],
)
def test_choice(orbital: str, kind: str, expected: str) -> None:
    assert fitting_basis(orbital, kind) == expected


def test_unknown_kind() -> None:
    with pytest.raises(InputError, match="unknown kind of fitting 'k'"):
        fitting_basis("cc-pvdz", "k")


def test_fitting_basis_follows_the_orbital_basis() -> None:
    for spherical in (True, False):
        orbital = Basis("cc-pvdz", WATER, spherical=spherical)
        fitting = auxiliary_basis(orbital, WATER)
        assert fitting.name == "cc-pvdz-jkfit"
        assert fitting.spherical == spherical
        mole = gto.M(
            atom=[("O", (0, 0, 0)), ("H", (0, 0, 1)), ("H", (0, 1, 0))],
            basis=fitting.name,
            cart=not spherical,
        )
        assert fitting.nbf == mole.nao
    named = auxiliary_basis(orbital, WATER, name="def2-universal-jfit")
    assert named.name == "def2-universal-jfit"
    assert not named.spherical


def test_gaps_are_filled_element_by_element() -> None:
    molecule = atoms("Li", "H")
    fitting = auxiliary_basis(Basis("cc-pvdz", molecule), molecule)
    assert fitting.name == "Li: def2-universal-jkfit, H: cc-pvdz-jkfit"
    heavy = atoms("I", "H")
    fitting = auxiliary_basis(Basis("sto-3g", heavy), heavy)
    assert fitting.name == "I: autoaux, H: def2-universal-jkfit"
    large = atoms("C")
    assert auxiliary_basis(Basis("pc-4", large), large).name == "autoaux"


@pytest.mark.parametrize("name", [None, "def2-universal-jkfit", {"default": "def2-universal-jkfit", "H": "autoaux"}])
def test_sets_with_functions_higher_than_g_are_spherical(name: BasisChoice | None) -> None:
    """As Cartesian functions those of bromine would be linearly dependent on one centre."""
    molecule = atoms("Br", "H", "Gh-Kr", "Ca", "O")
    orbital = Basis("6-31g", molecule, spherical=False)
    fitting = auxiliary_basis(orbital, molecule, name=name)
    for symbol, shells in zip(fitting.symbols, fitting.shells_of_atoms, strict=True):
        spherical = symbol in ("Br", "Kr")
        assert {shell.pure for shell in shells if shell.l >= 2} <= {spherical}
        assert (max(shell.l for shell in shells) > 4) == spherical


@pytest.mark.parametrize("name", ["3-21g", "6-31g", "6-31g*"])
@pytest.mark.parametrize(
    "molecule",
    ["Br 0 0 0; H 0 0 1.41", "Se 0 0 0; H 0 1 1.1; H 0 -1 1.1", "As 0 0 0; H 1 0 1; H -1 0 1; H 0 1 -1", "Kr 0 0 0"],
)
def test_gradients_of_heavy_atoms_in_cartesian_sets(molecule: str, name: str) -> None:
    found = cuanto.gradient(molecule, "hf", name, backend="cpu", search="none", multiplicity=1)
    assert found.auxbasis is not None
    values = []
    for step in (-0.001, 0.001):
        R_ax = found.molecule.R_ax.copy()
        R_ax[0, 2] += step
        moved = Molecule(found.molecule.symbols, R_ax)
        values.append(cuanto.energy(moved, "hf", name, backend="cpu", search="none", gradient_tolerance=1e-7).energy)
    assert found.gradient[0, 2] == pytest.approx((values[1] - values[0]) / 0.002, abs=2e-6)


@pytest.mark.parametrize("name", ["cc-pvdz", "aug-cc-pvdz"])
@pytest.mark.parametrize("symbol", ["Ga", "Br"])
def test_double_zeta_sets_have_tight_functions_for_3d_orbitals(name: str, symbol: str) -> None:
    """With the double-zeta fitting set the error is 0.5 to 0.7 Hartree."""
    molecule = f"2\n\n{symbol} 0 0 0\nH 0 0 1.5\n"
    fitted, exact = (cuanto.energy(molecule, "hf", name, fitting=fitting, backend="cpu") for fitting in ("jk", "none"))
    assert abs(fitted.energy - exact.energy) < 5e-5
    prefix = name.removesuffix("cc-pvdz")
    assert fitted.auxbasis is not None
    assert fitted.auxbasis.name == f"{symbol}: {prefix}cc-pvtz-jkfit, H: {prefix}cc-pvdz-jkfit"


def test_choice_by_element_has_fitting_sets_by_element() -> None:
    orbital = Basis({"O": "cc-pvtz", "H": "def2-svp"}, WATER)
    assert auxiliary_basis(orbital, WATER).name == "O: cc-pvtz-jkfit, H: def2-universal-jkfit"


@pytest.mark.parametrize(("name", "symbol"), [("sto-3g", "I"), ("ano-rcc", "Xe"), ("6-31g**", "Fe")])
def test_generated_set_equals_that_of_the_exchange(name: str, symbol: str) -> None:
    molecule = atoms(symbol)
    orbital = Basis(name, molecule, spherical=True)
    ours = automatic_auxiliary(symbol, [_as_table(shell) for shell in orbital.shells], "autoaux")
    (element,) = bse.get_basis(name, elements=[symbol], get_aux=1)["elements"].values()
    theirs = [(s["angular_momentum"][0], float(s["exponents"][0])) for s in element["electron_shells"]]
    assert [s.l for s in ours.shells] == [l for l, _ in theirs]
    assert [s.exponents[0] for s in ours.shells] == pytest.approx([a for _, a in theirs], rel=1e-6)


def test_an_exponent_twice_in_a_contraction_is_one_function() -> None:
    twice, once = (
        parse_basis(f"H S\n 5.0 0.1\n{rows}\n 0.2 1.0\nH P\n 0.7 1.0\n")["H"].shells
        for rows in (" 1.0 0.25\n 1.0 0.5", " 1.0 0.75")
    )
    assert automatic_auxiliary("H", twice, "made here") == automatic_auxiliary("H", once, "made here")


def test_another_molecule_is_refused() -> None:
    with pytest.raises(InputError, match="the orbital basis has no C"):
        auxiliary_basis(Basis("cc-pvdz", WATER), atoms("C"))


@pytest.mark.parametrize("name", library.shipped_names())
def test_shipped_sets_against_pyscf(name: str) -> None:
    """PySCF's copy is rounded to eight decimals."""
    assert len(library.shipped_names()) == 8
    for symbol in SYMBOLS:
        table = library.find(name, symbol)
        assert table is not None
        theirs = gto.basis.load(name, symbol)
        assert [shell.l for shell in table.shells] == [shell[0] for shell in theirs]
        for shell, (_, *rows) in zip(table.shells, theirs, strict=True):
            assert shell.exponents == pytest.approx([row[0] for row in rows], rel=1e-7, abs=1e-8)
            scale = shell.coefficients[0][0] / rows[0][1]  # a single primitive may have any coefficient
            assert [c[0] / scale for c in shell.coefficients] == pytest.approx([r[1] for r in rows], abs=1e-7)


@pytest.mark.parametrize("name", ["cc-pvtz-jkfit", "cc-pvqz-jkfit", "cc-pv5z-jkfit"])
def test_shipped_sets_against_the_exchange(name: str) -> None:
    for symbol, element in bse.get_basis(name)["elements"].items():
        table = library.find(name, bse.lut.element_sym_from_Z(symbol, normalize=True))
        assert table is not None
        theirs = [(s["angular_momentum"][0], tuple(map(float, s["exponents"]))) for s in element["electron_shells"]]
        assert sorted((s.l, s.exponents) for s in table.shells) == sorted(theirs)


def test_reference_copy_of_the_double_zeta_set() -> None:
    for path in sorted((DATA / "basis").glob("cc-pvdz-jkfit.*.nw")):
        symbol = path.name.split(".")[1]
        theirs = library.element_tables(path, [symbol])[symbol]
        ours = library.find("cc-pvdz-jkfit", symbol)
        assert ours is not None
        assert [(s.l, s.exponents, s.coefficients) for s in ours.shells] == [
            (s.l, s.exponents, s.coefficients) for s in theirs.shells
        ]


def test_core_potentials_have_the_universal_set() -> None:
    """Beyond Kr it was made for core potentials; without one, or with functions beyond g, a set is generated."""
    molecule = atoms("I", "Gh-I", "U")
    sets = {"I": "lanl2dz", "U": "stuttgart rsc 1997"}
    assert auxiliary_basis(Basis(sets, molecule), molecule).name == "I: def2-universal-jkfit, U: autoaux"
    assert auxiliary_basis(Basis("lanl2dz", atoms("Gh-I", "H")), atoms("Gh-I", "H"), "j").name == "def2-universal-jkfit"
    assert auxiliary_basis(Basis("jorge-DZP", atoms("I")), atoms("I")).name == "autoaux"
    assert auxiliary_basis(Basis("cc-pv5z-pp", atoms("I")), atoms("I")).name == "autoaux"
