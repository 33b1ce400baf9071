"""Basis sets: readers, normalisation, AO order and error messages."""

import builtins
import json
import pickle
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import basis_set_exchange as bse
import numpy as np
import pytest
from pyscf import gto

from cuanto.basis import Basis, Shell, exchange, library, unit_norm_factors
from cuanto.basis.formats import parse_basis, read_basis_file
from cuanto.basis.shell import normalised_coefficients, tabulated_coefficients
from cuanto.errors import InputError, MissingDependencyError
from cuanto.system import Molecule
from paths import DATA
from sample import sample

WATER = Molecule.from_xyz(DATA / "geometries" / "water_01.xyz")
CUO = Molecule.from_xyz(DATA / "geometries" / "CuO.xyz")
BENZENE = Molecule.from_xyz(DATA / "geometries" / "benzene.xyz")


def atom(symbol: str) -> Molecule:
    return Molecule([symbol], [[0.0, 0.0, 0.0]])


def pyscf_mole(molecule: Molecule, name: str, cart: bool) -> gto.Mole:
    """PySCF's molecule with the columns of the Basis Set Exchange, in the order of its JSON files."""
    basis = {}
    for symbol in set(molecule.symbols):
        (element,) = bse.get_basis(name, elements=[symbol])["elements"].values()
        shells = []
        for shell in element["electron_shells"]:
            columns = [list(map(float, column)) for column in shell["coefficients"]]
            momenta = shell["angular_momentum"]
            parts = [(momenta[0], columns)] if len(momenta) == 1 else zip(momenta, ([c] for c in columns), strict=True)
            for l, part in parts:
                rows = zip(map(float, shell["exponents"]), *part, strict=True)
                shells.append([l, *(list(row) for row in rows)])
        basis[symbol] = shells
    atoms = list(zip(molecule.symbols, molecule.R_ax.tolist(), strict=True))
    return gto.M(
        atom=atoms,
        unit="Bohr",
        basis=basis,
        cart=cart,
        charge=molecule.charge,
        spin=molecule.multiplicity - 1,
        verbose=0,
    )


SETS = [
    ("cc-pvdz", WATER, True),
    ("cc-pvtz", WATER, True),
    ("cc-pv5z", atom("C"), True),
    ("6-31g**", BENZENE, False),
    ("def2-tzvp", WATER, True),
    ("ano-rcc", WATER, True),
    ("sto-3g", CUO, True),
    ("dgauss-dzvp", WATER, False),
    ("6-31g**", CUO, True),
    ("pc-2", WATER, True),
]


@pytest.mark.parametrize(("name", "molecule", "spherical"), SETS, ids=lambda value: str(value)[:12])
def test_order_and_normalisation_equal_those_of_pyscf(name: str, molecule: Molecule, spherical: bool) -> None:
    basis = Basis(name, molecule, spherical=spherical)
    mole = pyscf_mole(molecule, name, cart=not spherical)
    assert basis.nbf == mole.nao
    assert basis.l_max == max(mole.bas_angular(i) for i in range(mole.nbas))
    assert basis.ao_labels() == [" ".join(label.split()) for label in mole.ao_labels()]
    assert basis.offsets.tolist() == mole.ao_loc_nr()[:-1].tolist()
    assert len(basis.shells) == mole.nbas
    for i, shell in enumerate(basis.shells):
        assert (shell.atom, shell.l, shell.ncol) == (mole.bas_atom(i), mole.bas_angular(i), mole.bas_nctr(i))
        # PySCF sorts the primitives of a shell by exponent.
        order = np.argsort(-shell.exponents, kind="stable")
        used = mole._libcint_ctr_coeff(i).any(axis=1)
        theirs = mole._libcint_ctr_coeff(i)[used]
        assert shell.exponents[order] == pytest.approx(mole.bas_exp(i)[used], rel=1e-15)
        scale = abs(theirs).max()
        assert shell.coefficients[order] == pytest.approx(theirs, rel=1e-13, abs=1e-13 * scale)


@pytest.mark.parametrize("name", ["6-31g**", "dgauss-dzvp", "cc-pvqz"])
def test_unit_norm_factors_of_cartesian_functions(name: str) -> None:
    basis = Basis(name, WATER, spherical=False)
    norms = pyscf_mole(WATER, name, cart=True).intor("int1e_ovlp").diagonal()
    assert unit_norm_factors(basis) == pytest.approx(1 / np.sqrt(norms), rel=1e-13)
    assert (unit_norm_factors(Basis(name, WATER, spherical=True)) == 1).all()


def test_functions_are_as_the_set_says() -> None:
    assert Basis("cc-pvdz", WATER).spherical
    assert not Basis("6-31G*", WATER).spherical
    assert Basis("6-31G*", WATER, spherical=True).nbf == 18
    assert Basis("6-31G*", WATER).nbf == 19
    assert Basis("STO-3G", WATER).spherical
    # Cartesian d and pure f functions on the same atom
    copper = Basis("6-31G**", CUO)
    assert {shell.l: shell.pure for shell in copper.shells} == {0: False, 1: False, 2: False, 3: True}
    assert not copper.spherical
    assert copper.nbf == len(copper.ao_labels())


def test_contraction_styles() -> None:
    segmented = Basis("def2-svp", atom("C"))
    general = Basis("cc-pvdz", atom("C"))
    combined = Basis("6-31g", atom("C"))
    assert [(s.l, s.nprim, s.ncol) for s in segmented.shells][:3] == [(0, 5, 1), (0, 1, 1), (0, 1, 1)]
    assert [(s.l, s.nprim, s.ncol) for s in general.shells][:2] == [(0, 9, 3), (1, 4, 2)]
    assert [s.l for s in combined.shells] == [0, 0, 0, 1, 1]


def test_every_shell_is_normalised() -> None:
    r = np.linspace(0, 60, 200_001)[1:]
    for shell in Basis("cc-pvtz", atom("O")).shells:
        R_gq = r[:, None] ** shell.l * np.exp(-np.outer(r**2, shell.exponents)) @ shell.coefficients
        assert np.trapezoid(R_gq**2 * r[:, None] ** 2, r, axis=0) == pytest.approx(1.0, rel=1e-6)


def test_tabulated_coefficients_undo_the_normalisation() -> None:
    table = np.array([[0.3, 0.0], [0.5, 1.0], [-0.2, 0.4]])
    shell = Shell.from_table(0, 2, [9.0, 3.0, 0.5], table, True)
    ratio = tabulated_coefficients(shell) / np.where(table == 0, np.inf, table)
    assert ratio[0, 0] == pytest.approx(ratio[1, 0], rel=1e-14)
    assert ratio[1, 1] == pytest.approx(ratio[2, 1], rel=1e-14)


def test_zero_primitives_and_columns_are_dropped() -> None:
    shell = Shell.from_table(0, 1, [4.0, 2.0, 1.0], [[0, 0, 0], [1, 0, 0.5], [0, 0, 2]], True)
    assert shell.exponents.tolist() == [2.0, 1.0]
    assert shell.coefficients.shape == (2, 2)


@pytest.mark.parametrize(
    ("exponents", "coefficients", "message"),
    [
        ([1.0], [[0.0]], "not all zero"),
        ([1.0, 2.0], [[1.0]], "found shapes"),
        ([-1.0], [[1.0]], "positive"),
        ([1.0], [[np.nan]], "finite"),
        ([1.0, 1.0], [[1.0], [-1.0]], "cancel"),
        ([1e300], [[1.0]], "exceed the range"),
    ],
)
def test_impossible_shells(exponents: list[float], coefficients: list[list[float]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Shell.from_table(0, 3, exponents, coefficients, True)


def test_scale_of_coefficients_does_not_matter() -> None:
    a_k, c_kq = np.array([7.0, 0.2]), np.array([[1.0], [0.4]])
    expected = normalised_coefficients(1, a_k, c_kq)
    for factor in (1e-200, 1e200):
        assert normalised_coefficients(1, a_k, factor * c_kq) == pytest.approx(expected, rel=1e-14)


def test_frozen_and_shared() -> None:
    basis = Basis("sto-3g", WATER)
    with pytest.raises(FrozenInstanceError):
        basis.name = "other"  # type: ignore[misc]
    assert not basis.offsets.flags.writeable
    first, second = (shell for shell in basis.shells if shell.atom > 0)
    assert first.exponents is second.exponents
    copy = pickle.loads(pickle.dumps(basis))
    assert np.array_equal(copy.shells[-1].coefficients, second.coefficients)
    assert copy.sources == {"O": "sto-3g", "H": "sto-3g"}


def test_the_same_shell_on_another_atom() -> None:
    for basis in (Basis("cc-pvdz", WATER), Basis("cc-pvdz", WATER, spherical=False)):
        shell = basis.shells[-1]
        moved = shell.on(7)
        assert (moved.atom, shell.atom) == (7, 2) and moved.key == shell.key
        assert moved.exponents is shell.exponents and pickle.loads(pickle.dumps(moved)).atom == 7


def test_equal_tables_give_the_same_shells_whatever_their_kind() -> None:
    spherical, cartesian, again = (Basis("cc-pvdz", WATER, spherical=pure) for pure in (True, False, True))
    assert [shell.key for shell in again.shells] == [shell.key for shell in spherical.shells]
    assert (spherical.nbf, cartesian.nbf) == (24, 25)


def test_moved_bases_share_what_depends_on_shells_alone() -> None:
    basis, made = Basis("sto-3g", WATER), []

    def highest(given: Basis) -> int:
        made.append(given)
        return given.l_max

    moved = basis.moved_to(WATER.R_ax + 1.0)
    assert moved.of_shells(highest) == basis.of_shells(highest) == 1 and made == [moved]
    assert moved.moved_to(WATER.R_ax).of_shells(highest) == 1 and len(made) == 1
    assert moved.function_atoms is basis.function_atoms
    assert np.array_equal(moved.R_ax, WATER.R_ax + 1.0) and moved.shells is basis.shells
    for other in (Basis("sto-3g", WATER), pickle.loads(pickle.dumps(moved))):
        assert other.of_shells(highest) == 1
    assert len(made) == 3


def test_choice_by_element(tmp_path: Path) -> None:
    mixed = Basis({"O": "cc-pvtz", "default": "STO-3G"}, WATER)
    assert mixed.nbf == 30 + 2
    assert mixed.name == "O: cc-pvtz, H: STO-3G"
    assert mixed.sources["H"] == "STO-3G"
    path = DATA / "basis" / "def2-svp.H.nw"
    assert Basis({"o": "def2-svp", "H": path}, WATER).nbf == Basis("def2-svp", WATER).nbf
    for twice in ({"O": "def2-svp", "H": "sto-3g", "H2": "def2-svp"}, {"*": "def2-svp", "default": "sto-3g"}):
        with pytest.raises(InputError, match="two bases are given for "):
            Basis(twice, WATER)


FORMATS = {"nwchem": ".nw", "gaussian94": ".gbs", "json": ".json"}


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("name", ["cc-pvtz", "6-31g**", "3-21g", "def2-universal-jkfit"])
def test_files_agree_with_the_exchange(fmt: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / f"set{FORMATS[fmt]}"
    path.write_text(bse.get_basis(name, elements=["H", "O"], fmt=fmt))
    basis = Basis(path, WATER)
    expected = Basis(name, WATER, spherical=basis.spherical)
    if fmt != "gaussian94":  # a format that does not say whether functions are spherical
        assert basis.spherical == Basis(name, WATER).spherical
    assert basis.nbf == expected.nbf
    if fmt == "json":
        assert basis.ao_labels() == expected.ao_labels()
        for ours, theirs in zip(basis.shells, expected.shells, strict=True):
            assert np.array_equal(ours.coefficients, theirs.coefficients)
    moments = [
        sorted(
            (s.l, *np.round(tabulated_coefficients(s)[:, q][tabulated_coefficients(s)[:, q] != 0], 9))
            for s in b.shells
            for q in range(s.ncol)
        )
        for b in (basis, expected)
    ]
    assert len(moments[0]) == len(moments[1])
    for ours, theirs in zip(*moments, strict=True):
        assert ours == pytest.approx(theirs, abs=2e-9)


def test_reference_files_can_all_be_read() -> None:
    paths = sorted((DATA / "basis").glob("*.nw"))
    assert len(paths) > 30
    for path in paths:
        symbol = path.name.split(".")[-2]
        table = read_basis_file(path)[symbol]
        assert table.shells
        Basis(path, atom(symbol))


def test_fortran_exponents_and_scale_factors() -> None:
    nwchem = parse_basis("basis spherical\nH s\n 1.0D+01 0.5d0\n 2.d-1 1\nend\n")["H"].shells[0]
    gaussian = parse_basis("! a comment\nH 0\nS 2 2.00\n 0.25D+01 0.5D0\n .05 1.0\n****\n")["H"].shells[0]
    assert nwchem.exponents == gaussian.exponents == (10.0, 0.2)
    assert nwchem.coefficients == ((0.5,), (1.0,))


def test_several_elements_on_a_line_of_gaussian94() -> None:
    tables = parse_basis("****\n-H -He 0\nSP 1 1.0\n 1.0 1.0 0.0\n****\n")
    assert list(tables) == ["H", "He"]
    assert [shell.l for shell in tables["H"].shells] == [0]


BAD_FILES = {
    "empty": ("", "no basis set found"),
    "words": ("hello world\n", "line 1: unknown element 'hello'"),
    "three words": ("H S 3 1.0\n", "line 1: expected 'element shelltype' or numbers"),
    "Turbomole": (
        "$basis\n*\nh sto-3g\n*\n 3 s\n",
        "found '\\$basis'; basis files are in NWChem's, Gaussian's or the B",
    ),
    "row first": ("1.0 1.0\n", "line 1: a row of numbers before"),
    "no rows": ("H S\nH P\n1.0 1.0\n", "line 2: a shell needs rows"),
    "no rows at the end": ("H S\n1.0 1.0\nH P\n", "at the end: a shell needs rows"),
    "no coefficient": ("H S\n1.0\n", "a shell needs rows"),
    "ragged": ("H S\n1.0 1.0\n2.0 1.0 1.0\n", "one and the same length"),
    "not a number": ("H S\n1.0 one\n", "line 2: expected a number, found 'one'"),
    "infinite": ("H S\n1.0 1e999\n", "line 2: expected a number, found '1e999'"),
    "negative": ("H S\n-1.0 1\n", "exponents must be positive"),
    "shell type": ("H SQ\n1.0 1\n", "line 1: unknown shell type 'SQ'"),
    "shell letter": ("H J\n1.0 1\n", "line 1: unknown shell type 'J'"),
    "ambiguous": ("H L\n1.0 1 1\n", "'L' is ambiguous"),
    "SP": ("O SP\n1.0 1\n", "needs 2 coefficients"),
    "library": ("basis\n* library cc-pvdz\nend\n", "line 2: 'library' lines"),
    "two blocks": ("basis\nH S\n1 1\nend\nbasis\nend\n", "line 5: a second BASIS block"),
    "basis without end": ("basis\nH S\n1 1\n", "at the end: the file ends inside a block BASIS: END is missing"),
    "basis before ecp": ("basis\nH S\n1 1\necp\n", "line 4: ECP comes inside a block BASIS: END is missing"),
    "ecp without end": ("ecp\nI nelec 46\nI ul\n2 1 1\n", "at the end: the file ends inside a block ECP: END is miss"),
    "gaussian end": ("H 0\nS 1 1.0\n1.0 1.0\n", "at the end: the file ends inside a block: .* is missing"),
    "gaussian empty end": ("H 0\nS 1 1.0\n1 1\n****\nHe 0\n", "at the end: the file ends inside a block"),
    "gaussian next": ("H 0\nS 1 1.0\n1 1\nHe 0\n", "line 4: 'He 0' comes inside a block: .* is missing"),
    "gaussian truncated": ("H 0\nS 3 1.0\n1.0 1.0\n", "at the end: the last shell lacks 2"),
    "gaussian row": ("H 0\nS 1 1.0\n1.0 1.0 1.0\n", "line 3: expected an exponent and 1 coefficient"),
    "gaussian count": ("H 0\nS many 1.0\n", "line 2: expected 'shelltype count scale'"),
    "gaussian scale": ("H 0\nS 1 -1.0\n", "line 2: scale factors"),
    "gaussian large scale": ("H 0\nS 1 1e200\n1.0 1.0\n", "line 3: exponents from inf to inf"),
    "gaussian twice": ("H 0\nS 1\n1 1\n****\nH 0\nS 1\n1 1\n****\n", "line 6: H is defined a second time"),
    "gaussian nothing": ("****\nS 1 1.0\n", "line 2: expected 'element 0'"),
    "json": ("{", "not valid JSON: .*line 1"),
    "json deep": ('{"a":' * 100_000, "not valid JSON"),
    "json other": ("{}", "without 'elements'"),
    "json element": ('{"elements": {"H": 1}}', "element 'H': is not an object"),
    "json shells": ('{"elements": {"1": {"electron_shells": 3}}}', "is not a list"),
    "json unknown": ('{"elements": {"1000": {}}}', "atomic number '1000'"),
}


@pytest.mark.parametrize(("text", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_malformed_files_give_one_clear_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_basis(text, "file.nw")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("file.nw")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"function_type": "sto"}, "'sto' is not a Gaussian"),
        ({"angular_momentum": [-1]}, "angular momentum"),
        ({"angular_momentum": [10**9]}, "angular momentum"),
        ({"angular_momentum": []}, "angular momentum"),
        ({"coefficients": []}, "list of columns"),
        ({"coefficients": [["1.0"]]}, "not as long as the exponents"),
        ({"exponents": ["1.0", "x"]}, "expected a number, found 'x'"),
        ({"exponents": None}, "expected a list of numbers"),
    ],
)
def test_malformed_json_shells(change: dict[str, Any], message: str) -> None:
    shell = {
        "function_type": "gto",
        "angular_momentum": [0],
        "exponents": ["2.0", "1.0"],
        "coefficients": [["1", "1"]],
    }
    assert parse_basis(json.dumps({"elements": {"1": {"electron_shells": [shell]}}}))["H"].shells
    with pytest.raises(InputError, match=message):
        parse_basis(json.dumps({"elements": {"1": {"electron_shells": [shell | change]}}}))


@pytest.mark.parametrize(
    ("name", "molecule", "message"),
    [
        ("cc-pvdx", WATER, r"unknown basis 'cc-pvdx'; did you mean 'cc-pVDZ'"),
        ("cc-pvdz-jkfitt", WATER, r"did you mean 'cc-pvdz-jkfit'"),
        ("qqqqqqqq", WATER, "unknown basis 'qqqqqqqq'"),
        ("", WATER, "the name of the basis is empty"),
        (17, WATER, "a basis is a name, a file or a mapping"),
        ("6-31g", atom("Xe"), "basis '6-31g' has no functions for Xe; .* would work"),
        ("missing.nw", WATER, "basis file 'missing.nw' does not exist"),
        (DATA / "basis" / "sto-3g.O.nw", WATER, "has no H; it has O"),
        (DATA / "basis", WATER, "is a directory"),
        ({"O": "cc-pvdz"}, WATER, "no basis given for H"),
        ({"Qx": "cc-pvdz"}, WATER, "unknown element 'Qx'"),
        ({"O": 3}, WATER, "basis of 'O' must be a name or a file"),
        ("lanl2dz ecp", atom("Fe"), "only a core potential, no shells, for Fe: choose a set with orbital functions"),
    ],
)
def test_bad_choices_give_one_clear_line(name: Any, molecule: Molecule, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Basis(name, molecule)
    assert "\n" not in str(caught.value)


def test_search_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "6-31pgs.nw").write_text("H S\n 1.0 1.0\n")
    (tmp_path / "sto-3g.H.nw").write_text("H S\n 2.0 1.0\n")
    monkeypatch.setenv("CUANTO_BASIS_PATH", f"{tmp_path / 'absent'}:{tmp_path}:{DATA / 'basis'}")
    assert Basis("6-31+G*", atom("H")).shells[0].exponents.tolist() == [1.0]
    assert Basis("STO-3G", WATER).shells[-1].exponents.tolist() == [2.0]
    (tmp_path / "sto-3g.H.nw").write_text("H S\n 3.0 1.0\n")
    assert Basis("STO-3G", WATER).shells[-1].exponents.tolist() == [3.0]  # an edited file counts at once
    # Sets that the folders lack come from the Basis Set Exchange.
    assert Basis("6-31+G*", WATER).nbf > 20
    # The columns of the file, not those of the Basis Set Exchange: the first function is the primitive.
    hydrogen = Basis("cc-pvtz", atom("H")).shells[0]
    assert np.count_nonzero(hydrogen.coefficients, axis=0).tolist() == [1, 5, 1]


@pytest.mark.parametrize(("suffix", "format"), [(".nw", "nwchem"), (".gbs", "gaussian94"), (".json", "json")])
def test_search_path_has_every_format(
    suffix: str, format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(tmp_path))
    (tmp_path / f"mine{suffix}").write_text(bse.get_basis("6-31g", elements=["H", "O"], fmt=format))
    (tmp_path / f"mine.H{suffix}").write_text(bse.get_basis("sto-3g", elements=["H"], fmt=format))
    assert Basis("mine", WATER).nbf == 9 + 2
    assert sorted(path.name for path in library.files_of_set("mine", ["H"])) == [f"mine.H{suffix}", f"mine{suffix}"]
    (tmp_path / f"6-31gs{suffix}").write_text(bse.get_basis("sto-3g", elements=["H"], fmt=format))
    assert len(library.files_of_set("6-31G(d)", ["H"])) == 1


def test_without_the_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("basis_set_exchange"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    exchange._catalogue.cache_clear()
    exchange.exchange_table.cache_clear()
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingDependencyError, match=r"pip install basis-set-exchange.*basis files"):
        Basis("sto-3g", WATER)
    assert Basis({"O": DATA / "basis/sto-3g.O.nw", "H": DATA / "basis/sto-3g.H.nw"}, WATER).nbf == 7
    assert Basis("cc-pvdz-jkfit", WATER).spherical


def test_from_shells() -> None:
    shells = [Shell.from_table(1, 2, [1.0], [[1.0]], False), Shell.from_table(0, 0, [1.0], [[1.0]], False)]
    basis = Basis.from_shells(shells, [[0, 0, 0], [0, 0, 1]])
    assert (basis.nbf, basis.offsets.tolist(), basis.spherical) == (7, [0, 6], False)
    assert basis.ao_labels()[0] == "1 X 3dxx"
    with pytest.raises(InputError, match="not one of the 1"):
        Basis.from_shells(shells, [[0, 0, 0]])


NAMES = sorted(entry["display_name"] for entry in bse.get_metadata().values())


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_every_set_of_the_exchange(part: int) -> None:
    """Every set (CI: every sixth), on the lightest and the heaviest element that it has."""
    for name in sample(NAMES, 6)[part::8]:
        elements = sorted(exchange.elements_of(name), key=gto.charge)
        for symbol in {elements[0], elements[-1]}:
            try:
                basis = Basis(name, atom(symbol))
            except InputError as error:
                assert "only a core potential" in str(error), (name, symbol)
            else:
                assert basis.nbf == sum(shell.nbf for shell in basis.shells) > 0


def test_a_file_is_not_a_molecule() -> None:
    with pytest.raises(
        InputError, match=r"a basis needs a cuanto\.Molecule, not 'water\.xyz': make one with Molecule\.of"
    ):
        Basis("def2-svp", "water.xyz")  # type: ignore[arg-type]
