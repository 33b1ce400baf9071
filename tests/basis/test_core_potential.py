"""Core potentials: every format, the atoms that have them, and every error message."""

import json
from typing import Any

import basis_set_exchange as bse
import numpy as np
import pytest
from pyscf import gto

from cuanto.basis import Basis
from cuanto.basis.core_potential import CorePotential, RadialTerm
from cuanto.basis.formats import parse_basis
from cuanto.basis.potential_formats import potential_entry, potential_from_exchange
from cuanto.errors import InputError
from cuanto.system import Molecule
from sample import sample

AU_H = Molecule(["Au", "H", "Gh-Au"], [[0, 0, 0], [0, 0, 3.0], [0, 0, 9.0]])
NAMES = ["def2-svp", "cc-pvtz-pp", "lanl2dz", "stuttgart rsc 1997", "crenbl", "lcecp-1-tzvp"]

NWCHEM = """
basis spherical
I S
 1.0 1.0
end
ecp
I nelec 46
I ul
 1 1.5 -10.0
 2 0.7 0.0
I s
 0 2.0 3.0
 2 1.0D+00 20.0 0.25
I d
 2 1.0 5.0
end
so
I p
 2 0.5 0.1
end
"""


@pytest.mark.parametrize("name", NAMES)
def test_formats_agree_with_each_other_and_with_pyscf(name: str) -> None:
    heaviest = max(int(z) for z, e in bse.get_basis(name)["elements"].items() if "ecp_potentials" in e)
    tables = [
        next(iter(parse_basis(bse.get_basis(name, elements=[heaviest], fmt=fmt)).values()))
        for fmt in ("nwchem", "gaussian94", "json")
    ]
    assert tables[0].core_potential == tables[1].core_potential == tables[2].core_potential
    potential = tables[0].core_potential
    assert potential is not None and not potential.spin_orbit
    text = bse.get_basis(name, elements=[heaviest], fmt="nwchem", header=False)
    core, parts = gto.basis.parse_ecp(text[text.index("\nECP") :])
    assert potential.core_electrons == core
    for l, powers in parts:
        ours = potential.local if l < 0 else potential.projected[l] if l < len(potential.projected) else ()
        theirs = [(n, *row) for n, rows in enumerate(powers) for row in rows if row[1]]
        assert sorted((t.power, t.exponent, t.coefficient) for t in ours) == sorted(theirs)


def test_nwchem_block() -> None:
    """Gaps between projected parts stay empty, zero terms are dropped, spin-orbit parts are left out."""
    potential = parse_basis(NWCHEM)["I"].core_potential
    s = (RadialTerm(0, 2.0, 3.0), RadialTerm(2, 1.0, 20.0))
    assert potential == CorePotential(46, (RadialTerm(1, 1.5, -10.0),), (s, (), (RadialTerm(2, 1.0, 5.0),)), True)
    assert potential_from_exchange("I", potential_entry(potential)) == CorePotential(
        46, potential.local, potential.projected
    )


def test_gaussian_block_of_two_elements() -> None:
    block = "LA-ECP 1 46\nd potential\n1\n2 1.0 -1.0\ns-d potential\n2\n2 1.0 2.0\n1 3.0 4.0\n"
    tables = parse_basis(f"****\nLa Ce 0\nS 1 1.0\n1.0 1.0\n****\n\nLa Ce 0\n{block}\nLu 0\nLU-ECP 0 60\nlocal\n0\n")
    expected = CorePotential(46, (RadialTerm(2, 1.0, -1.0),), ((RadialTerm(2, 1.0, 2.0), RadialTerm(1, 3.0, 4.0)),))
    assert tables["La"].core_potential == tables["Ce"].core_potential == expected
    assert tables["Lu"].core_potential == CorePotential(60, (), ())


def test_core_potentials_of_atoms() -> None:
    """A ghost has functions and no potential; nothing is lost when atoms move or a basis is built from shells."""
    basis = Basis({"default": "def2-svp"}, AU_H)
    gold = basis.core_potentials[0]
    assert gold is not None and gold.core_electrons == 60 and basis.core_potentials[1:] == (None, None)
    assert basis.core_electrons.tolist() == [60, 0, 0]
    ghost_shells = [shell for shell in basis.shells if shell.atom == 2]
    assert len(ghost_shells) == len([shell for shell in basis.shells if shell.atom == 0])
    assert basis.moved_to(AU_H.R_ax + 1.0).core_potentials == basis.core_potentials
    copy = Basis.from_shells(basis.shells, basis.R_ax, core_potentials=basis.core_potentials)
    assert copy.core_potentials == basis.core_potentials
    assert Basis.from_shells(basis.shells, basis.R_ax).core_potentials == (None, None, None)
    with pytest.raises(InputError, match="3 atoms need a core potential or None"):
        Basis.from_shells(basis.shells, basis.R_ax, core_potentials=[gold])
    assert np.array_equal(copy.core_electrons, basis.core_electrons)


GAUSSIAN = "I 0\nS 1 1.0\n1.0 1.0\n****\nI 0\n"
BAD_FILES = {
    "row first": ("ecp\n2 1.0 1.0\nend\n", "line 2: a row of numbers before any line 'element ul'"),
    "row after nelec": ("ecp\nI nelec 28\n2 1.0 1.0\n", "line 3: expected 'power exponent coefficient'"),
    "no number": ("ecp\nI ul\n2 1.0 1.0\nend\n", "at the end: the core potential of I lacks its number"),
    "no local part": ("ecp\nI nelec 28\nI s\n2 1.0 1.0\nend\n", "at the end: the core potential of I lacks its local"),
    "too many electrons": ("ecp\nI nelec 53\nI ul\n2 1.0 1.0\nend\n", "53 core electrons are impossible for I"),
    "electrons": ("ecp\nI nelec many\n", "line 2: 'many' is not a number of electrons"),
    "twice": ("ecp\nI ul\n2 1.0 1.0\nI ul\n", "line 4: a second potential of the local part"),
    "kind": ("ecp\nI sp\n", "line 2: expected 'element nelec N', 'element ul' or 'element s', found 'I sp'"),
    "library": ("ecp\nI library def2-ecp\n", "line 2: 'library' lines are not supported"),
    "short row": ("ecp\nI ul\n2 1.0\n", "line 3: expected 'power exponent coefficient'"),
    "fraction": ("ecp\nI ul\n1.5 1.0 2.0\n", "line 3: expected 'power exponent coefficient'"),
    "power": ("ecp\nI nelec 28\nI ul\n99 1.0 1.0\nend\n", "power 99 of r is not one of 0 to 4"),
    "exponent": ("ecp\nI nelec 28\nI ul\n2 -1.0 1.0\nend\n", "exponents of a core potential must be positive"),
    "word": ("ecp\nI ul\n2 1.0 x\n", "line 3: expected a number, found 'x'"),
    "gaussian cut": (f"{GAUSSIAN}I-ECP 1 28\np potential\n1\n2 1.0 1.0\n", "the last core potential is not complete"),
    "gaussian count": (f"{GAUSSIAN}I-ECP 0 28\np potential\nmany\n", "line 8: expected the number of rows"),
    "gaussian momentum": (f"{GAUSSIAN}I-ECP 99 28\n", "line 6: angular momentum 99 of a core potential is too high"),
    "gaussian twice": (
        f"{GAUSSIAN}I-ECP 0 28\nul\n0\nI-ECP 0 28\n",
        "line 9: the core potential of I is defined a sec",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_malformed_files_give_one_clear_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_basis(text, "file.nw")
    assert "\n" not in str(caught.value) and str(caught.value).startswith("file.nw")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"angular_momentum": [0, 1]}, "of a core potential is not a list of one whole number"),
        ({"coefficients": []}, "one column of coefficients"),
        ({"coefficients": [["1.0", "2.0"]]}, "different lengths"),
        ({"r_exponents": None}, "expected a list of numbers"),
    ],
)
def test_malformed_json(change: dict[str, Any], message: str) -> None:
    part = {
        "ecp_type": "scalar_ecp",
        "angular_momentum": [1],
        "r_exponents": [2],
        "gaussian_exponents": ["1.0"],
        "coefficients": [["2.0"]],
    }
    spin_orbit = part | {"ecp_type": "spinorbit_ecp", "angular_momentum": None}

    def parse(*parts: Any) -> CorePotential | None:
        entry = {"electron_shells": [], "ecp_electrons": 28, "ecp_potentials": list(parts)}
        return parse_basis(json.dumps({"elements": {"53": entry}}))["I"].core_potential

    assert parse(part, spin_orbit) == CorePotential(28, (RadialTerm(2, 1.0, 2.0),), (), True)
    assert parse(spin_orbit) is None
    with pytest.raises(InputError, match=message):
        parse(part | change)
    with pytest.raises(InputError, match="is not a list of objects"):
        parse(1)


ALL = sorted(entry["display_name"] for entry in bse.get_metadata().values())


@pytest.mark.slow
def test_every_potential_of_the_exchange() -> None:
    """Every potential (CI: of every eighth set) can be read and has as many electrons as the database states."""
    found = 0
    for name in sample(ALL, 8):
        for z, entry in bse.get_basis(name)["elements"].items():
            if "ecp_potentials" in entry:
                potential = potential_from_exchange(next(iter(parse_basis(json.dumps({"elements": {z: {}}})))), entry)
                assert potential is not None and potential.core_electrons == entry["ecp_electrons"]
                found += 1
    assert found > 50
