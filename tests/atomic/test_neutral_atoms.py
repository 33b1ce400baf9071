"""Every neutral atom to Z = 118: configurations, nuclei, generated sets, the stored campaign, published levels."""

from __future__ import annotations

import json

import numpy as np
import pytest

from atomic_cases import fermi_potential
from cuanto.atomic import SPECIES, Atom, AtomBasis, Nucleus, Repulsion, ScfSettings, even_tempered, one_electron, solve
from cuanto.atomic.configuration import configuration_text, ground_configuration, occupation_of, parse_configuration
from cuanto.atomic.input import parse_input
from cuanto.atomic.job import element_job, run_energy
from cuanto.atomic.wtbs import WellTempered, generated_set, table
from cuanto.errors import InputError
from cuanto.scf.configurations import capacity, configuration
from cuanto.system.elements import ATOMIC_NUMBERS, SYMBOLS
from cuanto.system.nuclear_sizes import BOHR_IN_FEMTOMETRES, mass_number, rms_radius
from paths import DATA, ROOT
from sample import sample

RECORD = json.loads((ROOT / "benchmarks" / "results" / "neutral_atoms_h200.json").read_text())
ROWS = {row["element"]: row for row in RECORD["elements"]}
VALENCE = json.loads((DATA / "atoms_valence.json").read_text())["elements"]
EXCEPTIONS = {
    "Cr": "[Ar] 3d5 4s1",
    "Pd": "[Kr] 4d10",
    "Pt": "[Xe] 4f14 5d9 6s1",
    "U": "[Rn] 5f3 6d1 7s2",
    "Lr": "[Rn] 5f14 7s2 7p1",
    "Rg": "[Rn] 5f14 6d9 7s2",
    "Og": "[Rn] 5f14 6d10 7s2 7p6",
}
"""Configurations that do not follow from Madelung's rule, or are predicted."""


def test_configurations_of_all_elements() -> None:
    for number, symbol in enumerate(SYMBOLS, start=1):
        held = configuration(number)
        assert sum(held.values()) == number and held == ground_configuration(symbol)
        assert all(0 < q <= capacity(l) and l < n for (n, l), q in held.items())
        assert occupation_of(held).electrons == pytest.approx(number)
    for symbol, text in EXCEPTIONS.items():
        expected = parse_configuration(text) if symbol != "Og" else configuration(118)
        assert ground_configuration(symbol) == expected and configuration_text(expected) == text


def test_nuclei_of_all_elements() -> None:
    radii = [Nucleus(number, "gaussian").femtometres for number in range(1, 119)]
    assert radii[0] == pytest.approx(1.406) and radii[117] == pytest.approx(6.129, abs=1e-3)
    for number, radius in enumerate(radii, start=1):
        assert radius == pytest.approx(rms_radius(mass_number(number)) * BOHR_IN_FEMTOMETRES)
        assert Nucleus(number, "sphere").femtometres == pytest.approx(radius)
    with pytest.raises(InputError, match=r"no mass number is known for element 119: give the size .*--nuclear-radius"):
        Nucleus(119, "gaussian")


def test_a_given_nuclear_radius() -> None:
    assert Nucleus.of_radius(119, "gaussian", 6.2).femtometres == pytest.approx(6.2)
    sphere = element_job("Pb", nucleus="sphere", nuclear_radius=5.5012).nucleus
    assert sphere.size == pytest.approx(np.sqrt(5 / 3) * 5.5012 / BOHR_IN_FEMTOMETRES)
    assert Nucleus(2).femtometres == 0.0
    for given, message in (((2, "point", 1.7), "has no radius"), ((2, "sphere", -1.0), "give a number from 0.001")):
        with pytest.raises(InputError, match=message):
            Nucleus.of_radius(*given)  # type: ignore[arg-type]


FILE = """Og6+
$contrl jobtype='energy' $end
$nuc znuc=118.0 nucmdl=3 rms=6.0 $end
$bas nsym=1 bastype='wtbs' $end
$wtbs wtbspara=0.1,2.0,1.0,0.0 nbs=20 $end
$econfig nclose=1 $end
$scf maxitr=50 $end
"""


def test_a_radius_in_an_input_file() -> None:
    assert parse_input(FILE).nucleus.femtometres == pytest.approx(6.0)
    for old, new, says in (
        ("rms=6.0", "rms=6.0 alpha=1e8", "rms and alpha are both sizes of the nucleus; give one"),
        ("nucmdl=3 rms", "nucmdl=1 rms", "a point nucleus has no radius"),
        ("rms=6.0", "rms=-6.0", "between 0.001 and 1000"),
    ):
        with pytest.raises(InputError, match=says):
            parse_input(FILE.replace(old, new))


def test_default_sets_cover_every_element() -> None:
    for symbol in SYMBOLS:
        job = element_job(symbol)
        assert isinstance(job.basis, WellTempered)
        known = table().get(symbol)
        assert job.basis == (known or generated_set(symbol, max(l for _, l in ground_configuration(symbol))))
        assert job.atom().charge == 0 and max(job.atom().basis.sizes) <= 45
    assert element_job("Ne", configuration="1s2 2s2 2p5 3d1").basis == generated_set("Ne", 2)
    assert element_job("Ne", "EVEN").basis == generated_set("Ne", 1)
    assert element_job("Ce", "even", ranges="s(1:9)p(1:8)d(1:7)f(1:6)").basis.parameters[1] == 1.85  # type: ignore[union-attr]
    with pytest.raises(InputError, match="use --basis even"):
        element_job("Og", "wtbs")


@pytest.mark.parametrize("symbol", ["Kr", "Rn"])
def test_the_limit_is_below_the_generated_set_around_a_point_nucleus(symbol: str) -> None:
    """Spinors with j = 1/2 are singular there: tighter functions lower the limit of radon by 2e-7."""
    energies = []
    for basis in ("even", "limit"):
        result = run_energy(element_job(symbol, basis, nucleus="point"), "cpu")
        assert result.converged
        energies.append(result.energy)
    assert 0 < (energies[0] - energies[1]) / abs(energies[1]) < 2e-8


def test_the_stored_campaign_converged_with_small_errors() -> None:
    assert list(ROWS) == list(SYMBOLS)
    for symbol, row in ROWS.items():
        assert row["default"]["converged"] and row["even"]["converged"] and row["limit_converged"]
        assert row["configuration"] == configuration_text(ground_configuration(symbol))
        assert 0 < row["even"]["relative_error"] < 2.7e-8 and 0 < row["default"]["relative_error"] < 2.1e-7
        assert row["default"]["iterations"] <= 23


@pytest.mark.parametrize("symbol", sample(SYMBOLS, 31))
def test_atoms_in_their_default_sets(symbol: str) -> None:
    """From the core guess, energies equal those of the stored campaign."""
    result = run_energy(element_job(symbol), "cpu")
    assert result.converged and result.energy == pytest.approx(ROWS[symbol]["default"]["energy"], rel=1e-12)
    assert result.atom.electrons == ATOMIC_NUMBERS[symbol] and 1 < result.virial < 1.0025


def test_levels_of_a_published_program() -> None:
    """Valence levels s to f in the field of a closed core with Z = 88, on a radial grid with a Fermi nucleus."""
    entry = VALENCE["Ra"]
    with fermi_potential(entry["rms_radius_fm"]):
        found = valence_levels(entry["Z"])
    for label, energy in entry["levels"].items():
        assert found[label] == pytest.approx(energy, abs=5e-7), label


def valence_levels(protons: int) -> dict[str, float]:
    """Energies of the first two empty levels of each symmetry in the field of a core like radon's."""
    ends = ((0.002, 43), (0.002, 41), (0.002, 32), (0.001, 25))
    basis = AtomBasis.by_momentum([even_tempered(smallest, 1.85, count) for smallest, count in ends])
    occupation, nucleus = occupation_of(ground_configuration("Rn"), 3), Nucleus(protons, "sphere")
    repulsion, settings = Repulsion(basis, "cpu"), ScfSettings(c=137.035999084)
    result = solve(Atom(nucleus, basis, occupation), settings, repulsion=repulsion)
    P_i = repulsion.potential([SPECIES[i].capacity * C @ C.T for i, C in enumerate(result.coefficients)])
    found = {}
    for i, (species, z, P) in enumerate(zip(SPECIES, basis.exponents, P_i, strict=False)):
        core = one_electron.core(species, z, nucleus, settings.c, True)
        eps = np.linalg.eigvalsh(core.X.T @ (core.h + P) @ core.X)[core.negative :]
        for k in range(occupation.shells(i), occupation.shells(i) + 2):
            found[f"{species.l + 1 + k}{species.label.lower()}".replace("s+", "s")] = float(eps[k])
    return found
