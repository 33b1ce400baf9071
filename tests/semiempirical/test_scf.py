"""The SCF of NDDO methods: all diagonalisers reach the same states, and rotations have to be orthonormal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cuanto import Molecule
from cuanto.backends.base import get_backend
from cuanto.errors import InputError
from cuanto.methods.semiempirical import Semiempirical
from cuanto.options import ScfOptions
from cuanto.scf import rotations
from cuanto.scf.diagonalise import Diagonaliser, Full
from cuanto.scf.orthogonal import Frame
from cuanto.scf.pseudodiagonalise import MANY_ORBITALS, ORTHONORMALISE_EVERY, Pseudo
from cuanto.semiempirical.constants import RESCALE
from cuanto.semiempirical.diagonalisers import choose_diagonaliser, settings
from cuanto.semiempirical.purify import Purification, project
from nddo_cases import (
    DIAGONALISERS,
    METHODS,
    NAMES,
    TIGHT,
    molecule,
    molecule_of,
    polyethylene,
    reference,
    run,
    timing_geometry,
    water_cluster,
)
from sample import EVERY_CASE

HOST = get_backend("cpu")
SAME = 1e-9
CYCLES = 1.3
"""Largest number of iterations relative to full diagonalisation."""
PRINTED = 2e-5
"""Tolerance in kcal/mol: MOPAC's heats of the timing geometries are converged to, and printed with, five decimals."""
TIMED = ("water_64", "polyethylene_C83", "water_128")
LABELS = {"refined": "pseudo", "block": "block"}
"""Names of the steps of each variant."""
NOT_AUFBAU = 280.052185
"""PM6 heat, kcal/mol, of stretched HF with two electrons in its highest orbital instead of a lone pair."""


def steps(states: list[Any]) -> list[str]:
    """Name of the step that produced each state."""
    return [state.step.split()[-1] for state in states]


def in_double(frame: Frame) -> Diagonaliser:
    """Block rotations without single precision."""
    return Pseudo(frame, "economical")


def mopac_heat(name: str) -> float:
    records = reference()["timings_mopac"]["results"]
    (heat,) = [record["hof"] for record in records if (record["system"], record["mode"]) == (name, "full")]
    return float(heat)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES)
def test_rotations_reach_the_same_energy(name: str, method: str) -> None:
    full = run(molecule(name), method, diagonaliser="full")
    for variant in ("refined", "block"):
        states: list[Any] = []
        pseudo = run(molecule(name), method, on_iteration=states.append, diagonaliser="pseudo", variant=variant)
        assert full.converged and pseudo.converged
        assert abs(full.energy - pseudo.energy) < SAME
        assert pseudo.iterations <= CYCLES * full.iterations
        diagonalised = 2 if (name, method) == ("HI", "PM3") else 0  # the energy rises once
        assert steps(states).count(LABELS[variant]) >= pseudo.iterations - 1 - diagonalised


@pytest.mark.parametrize("variant", ["jacobi", "two-kernel"])
@pytest.mark.parametrize("name", ["glycine", "CH3", "SF6", "ribavirin"])
def test_the_older_variants(name: str, variant: str) -> None:
    full = run(molecule(name), "pm6")
    states: list[Any] = []
    pseudo = run(molecule(name), "pm6", on_iteration=states.append, diagonaliser="pseudo", variant=variant)
    assert pseudo.converged and abs(full.energy - pseudo.energy) < SAME
    assert steps(states).count("full") <= 2 and steps(states).count("pseudo") >= pseudo.iterations - 3


@pytest.mark.parametrize("name", TIMED)
def test_large_molecules(name: str) -> None:
    mol = timing_geometry(name)
    full = run(mol, "pm6", diagonaliser="full")
    for diagonaliser in ("auto", "pseudo", "sp2"):
        if (name, diagonaliser) == ("water_128", "sp2"):
            continue  # takes longer than all others together
        states: list[Any] = []
        found = run(mol, "pm6", on_iteration=states.append, diagonaliser=diagonaliser)
        assert full.converged and found.converged and abs(found.energy - full.energy) < SAME
        assert found.iterations <= CYCLES * full.iterations
        assert steps(states).count("sp2" if diagonaliser == "sp2" else "block") == found.iterations - 1
        if diagonaliser != "sp2":  # early iterations are in single precision; only the guess is diagonalised
            singles = [state.D_spq.dtype == np.float32 for state in states]
            assert sum(singles) >= 3 and not any(singles[-3:])
            assert found.coefficients.dtype == found.orbital_energies.dtype == np.float64


@pytest.mark.parametrize("name", ["polyethylene_C166", "polyethylene_C250", "water_256"][: 3 if EVERY_CASE else 1])
def test_rotations_of_larger_molecules(name: str) -> None:
    """`benchmarks/pseudodiagonalisation.py` compares three molecules that are too large for a test."""
    mol = timing_geometry(name)
    full, found = run(mol, "pm6", diagonaliser="full"), run(mol, "pm6")
    assert full.converged and found.converged and abs(found.energy - full.energy) < SAME
    assert found.iterations <= CYCLES * full.iterations


@pytest.mark.parametrize("name", TIMED)
def test_heats_of_large_molecules(name: str) -> None:
    found = run(timing_geometry(name), "pm6", mopac_compatible=True)
    assert found.converged and abs(found.heat_of_formation - mopac_heat(name)) < PRINTED


def test_a_calculation_that_stops_in_single_precision() -> None:
    states: list[Any] = []
    few = {"max_iterations": 2, "unconverged_gradient": True}
    found = run(water_cluster(51), "pm6", on_iteration=states.append, **few)
    assert states[-1].D_spq.dtype == np.float32
    assert found.density.dtype == found.coefficients.dtype == found.orbital_energies.dtype == np.float64
    gradient = found.calculation.engine.gradient(states[-1].D_spq[None])[0]
    assert np.isfinite(found.gradient).all() and np.abs(found.gradient).max() < 1.0
    assert np.array_equal((gradient + found.calculation.corrections[1]) * RESCALE, found.gradient)


def test_single_precision_is_not_used_with_loose_criteria() -> None:
    """Loose criteria could be met while iterations are still in single precision."""
    mol = water_cluster(51)
    kinds: list[set[Any]] = []
    for options in ({}, {"energy_tolerance": 1e-6, "gradient_tolerance": 1e-3, "dipole_tolerance": 1.0}):
        states: list[Any] = []
        assert run(mol, "pm6", on_iteration=states.append, **options).converged
        kinds.append({state.D_spq.dtype.itemsize for state in states})
    assert kinds == [{4, 8}, {8}]
    calculation = Semiempirical(mol, "pm6", get_backend("cpu"), ScfOptions(), diagonaliser=in_double)
    assert {state.D_spq.dtype.itemsize for state in calculation.states()} == {8}


@pytest.mark.parametrize("mol", [water_cluster(51), polyethylene(51)], ids=["water", "polyethylene"])
def test_single_precision_does_not_affect_the_result(mol: Molecule) -> None:
    """Energies, charges and gradients agree whether or not early iterations are in single precision (atomic units)."""
    found = []
    for diagonaliser in (None, in_double):
        states: list[Any] = []
        calculation = Semiempirical(mol, "pm6", get_backend("cpu"), ScfOptions(**TIGHT), diagonaliser=diagonaliser)
        found.append(calculation.run(states.append))
        singles = [state.D_spq.dtype == np.float32 for state in states]
        assert found[-1].converged and sum(singles) >= 3 * (diagonaliser is None)
        assert not any(singles if diagonaliser else singles[-5:])
    one, other = found
    assert abs(one.energy - other.energy) < SAME
    assert np.abs(one.charges - other.charges).max() < SAME
    assert np.abs(one.gradient - other.gradient).max() < SAME


@pytest.mark.parametrize("options", DIAGONALISERS.values(), ids=DIAGONALISERS)
@pytest.mark.parametrize("case", range(4))
def test_hard_cases(case: int, options: dict[str, Any]) -> None:
    """Stretched HF and CO from neutral atoms."""
    record = reference()["scf_stress_cases"][case]
    result = run(molecule_of(record), record["method"], **options)
    assert result.converged
    assert result.heat_of_formation == pytest.approx(record["mopac_heat_of_formation_kcal_mol"], abs=1e-6)
    full = run(molecule_of(record), record["method"], diagonaliser="full")
    assert abs(result.energy - full.energy) < SAME and result.iterations <= CYCLES * full.iterations


class Held:
    """Diagonaliser that exchanges the highest occupied and the lowest empty orbital; after a restart it uses `then`."""

    def __init__(self, then: Diagonaliser) -> None:
        self.then, self.full, self.holds = then, Full(get_backend("cpu")), True

    def restart(self) -> None:
        self.holds = False
        self.then.restart()

    def __call__(self, F_sjk: Any, C_sjm: Any, n_sm: Any, energy: float) -> tuple[Any, Any, str]:
        if not self.holds:
            return self.then(F_sjk, C_sjm, n_sm, energy)
        C_sjm, eps_sm, _ = self.full(F_sjk, C_sjm, n_sm, energy)
        order, o = np.arange(C_sjm.shape[2]), int(np.count_nonzero(n_sm[0]))
        order[[o - 1, o]] = o, o - 1
        return C_sjm[:, :, order], eps_sm[:, order], "held"


@pytest.mark.parametrize("options", DIAGONALISERS.values(), ids=DIAGONALISERS)
def test_a_stationary_state_that_is_not_aufbau_is_left(options: dict[str, Any]) -> None:
    """Stretched HF, kept in a state 203 kcal/mol too high until energy and gradient are converged."""
    record = reference()["scf_stress_cases"][0]
    checked, other = settings(options)

    def held(frame: Any) -> Diagonaliser:
        return Held(choose_diagonaliser(checked, frame) if other is None else other(frame))

    states: list[Any] = []
    calculation = Semiempirical(molecule_of(record), "pm6", get_backend("cpu"), checked, diagonaliser=held)
    found = calculation.run(states.append)
    (last,) = [n for n, state in enumerate(states) if state.step.endswith("held")][-1:]
    there = replace(found, state=states[last])
    assert there.heat_of_formation == pytest.approx(NOT_AUFBAU, abs=1e-5)
    assert states[last].gradient < checked.gradient_tolerance and not states[last].converged
    assert found.converged and max(found.homo) < min(found.lumo)
    assert found.heat_of_formation == pytest.approx(record["mopac_heat_of_formation_kcal_mol"], abs=1e-6)


class Frozen:
    """The update as published: all rotations from the same matrix, on frozen vectors, with energies of the last
    diagonalisation, and without restoring orthonormality."""

    def __init__(self, orthonormal: bool) -> None:
        self.orthonormal, self.full = orthonormal, Full(get_backend("cpu"))
        self.eps: Any = None

    def restart(self) -> None:
        self.eps = None

    def __call__(self, F_sjk: Any, C_sjm: Any, n_sm: Any, energy: float) -> tuple[Any, Any, str]:
        o = int(np.count_nonzero(n_sm[0]))
        if self.eps is None:
            C_sjm, self.eps, step = self.full(F_sjk, C_sjm, n_sm, energy)
            return C_sjm, self.eps, step
        C_jm = C_sjm[0]
        X = (C_jm[:, :o].T @ F_sjk[0] @ C_jm[:, o:]) / rotations.gaps(self.eps[0], o)
        if self.orthonormal:
            C_jm = rotations.rotate_nearest(C_jm, X, float(np.linalg.norm(X)), np, HOST.linalg)
        else:
            C_jm = rotations.rotate(C_jm, X, np)
        return C_jm[None], self.eps, "frozen"


@pytest.mark.parametrize(("name", "method"), [("glycine", "am1"), ("water_04", "pm3"), ("ribavirin", "pm6")])
def test_frozen_vectors_without_orthonormalisation_fail(name: str, method: str) -> None:
    right = run(molecule(name), method)
    ends = {}
    for orthonormal in (True, False):
        options = ScfOptions(accelerator="diis", max_iterations=60)
        frozen = Frozen(orthonormal)
        calculation = Semiempirical(
            molecule(name), method, get_backend("cpu"), options, diagonaliser=lambda frame, chosen=frozen: chosen
        )
        result = calculation.run()
        norm = np.abs(result.coefficients[0].T @ result.coefficients[0] - np.eye(len(result.coefficients[0]))).max()
        ends[orthonormal] = (result, norm)
    result, norm = ends[True]
    assert result.converged and abs(result.energy - right.energy) < SAME and norm < 1e-10
    result, norm = ends[False]
    assert norm > 1e-4  # orbitals are not orthonormal any more,
    assert abs(result.energy - right.energy) > 1e-7  # and the energy is wrong, which is why this scheme is not used


def test_block_rotations_stay_orthonormal() -> None:
    rng = np.random.default_rng(0)
    n, o = 40, 13
    F = rng.normal(size=(n, n)) * 0.01 + np.diag(np.linspace(-2, 2, n))
    F = F + F.T
    n_sm = np.where(np.arange(n) < o, 2.0, 0.0)[None]
    for flip in (False, True):  # either block may be the smaller one
        C = np.linalg.eigh(-F if flip else F)[1]
        pseudo = Pseudo(HOST, "economical", mixed=flip)
        C_sjm, _, step = pseudo((-F if flip else F)[None], C[None], n_sm, 0.0)
        assert step == "block"
        for k in range(25):
            perturbation = rng.normal(size=(n, n)) * 2e-3 / (k + 1)
            C_sjm, _, _ = pseudo(((-F if flip else F) + perturbation + perturbation.T)[None], C_sjm, n_sm, 0.0)
        assert pseudo.steps > 15
        assert np.abs(C_sjm[0].T @ C_sjm[0] - np.eye(n)).max() < 1e-11
    near = rotations.make_orthonormal(C_sjm[0] * 1.0001)
    assert np.abs(near.T @ near - np.eye(n)).max() < 1e-6
    single = rotations.make_orthonormal(C_sjm[0].astype(np.float32))
    assert single.dtype == np.float64 and np.abs(single.T @ single - np.eye(n)).max() < 1e-12


def test_late_rotations_are_double() -> None:
    """Once |F_ov| is small, both variants perform the same operations, to the last bit."""
    rng, o = np.random.default_rng(4), 120
    levels = np.r_[np.linspace(-2.0, -0.5, o), np.linspace(0.3, 2.0, MANY_ORBITALS - o)]
    n_sm = np.where(np.arange(MANY_ORBITALS) < o, 2.0, 0.0)[None]
    perturbations = [
        1e-5 / 1.5**k * rng.normal(size=(MANY_ORBITALS, MANY_ORBITALS)) for k in range(ORTHONORMALISE_EVERY + 2)
    ]
    orbitals = []
    for mixed in (False, True):
        pseudo, C_sjm = Pseudo(HOST, "economical"), np.eye(MANY_ORBITALS)[None]
        for perturbation in perturbations:
            C_sjm, _, step = pseudo((np.diag(levels) + perturbation + perturbation.T)[None], C_sjm, n_sm, 0.0)
            assert step == "block" and C_sjm.dtype == np.float64
            pseudo.mixed = mixed
        orbitals.append(C_sjm)
    assert np.array_equal(*orbitals)


def test_purification_gives_the_projector() -> None:
    rng = np.random.default_rng(1)
    F = rng.normal(size=(50, 50))
    F = F + F.T
    values, C = np.linalg.eigh(F)
    F = C @ np.diag(values + np.where(np.arange(50) >= 20, 2.0, 0.0)) @ C.T
    P, products = project(F, 20, HOST)
    assert np.abs(P - C[:, :20] @ C[:, :20].T).max() < 1e-9 and 10 < products < 60
    levels = values[19], values[20] + 2.0
    known, fewer = project(F, 20, HOST, levels)
    assert np.abs(known - P).max() < 1e-9 and fewer < 0.8 * products
    wrong, more = project(F, 20, HOST, (values[0], values[2]))  # estimates far too low do not change the result
    assert np.abs(wrong - P).max() < 1e-9 and more > products
    n_sm = np.where(np.arange(50) < 20, 2.0, 0.0)[None]
    start = np.linalg.qr(C + 0.02 * rng.normal(size=(50, 50)))[0]
    purification = Purification(HOST)
    orbitals, _, step = purification(F[None], start[None], n_sm, 0.0)
    assert step == "sp2" and purification.products == products
    purification(F[None], orbitals, n_sm, 0.0)
    assert purification.products < 1.8 * products  # the second call knows the levels
    assert np.abs(orbitals[0].T @ orbitals[0] - np.eye(50)).max() < 1e-12
    assert np.abs(orbitals[0][:, :20] @ orbitals[0][:, :20].T - P).max() < 1e-9
    # An occupied orbital orthogonal to the new space: projected orbitals are linearly dependent.
    away = C[:, [*range(19), 30, *range(20, 30), 19, *range(31, 50)]]
    orbitals, _, step = Purification(HOST)(F[None], away[None], n_sm, 0.0)
    assert step == "full" and np.abs(orbitals[0][:, :20] @ orbitals[0][:, :20].T - P).max() < 1e-9


def test_purification_as_an_option() -> None:
    for name in ("water_04", "CH3"):
        full, found = run(molecule(name), "pm3"), run(molecule(name), "pm3", diagonaliser="sp2")
        assert found.converged and abs(found.energy - full.energy) < SAME
    with pytest.raises(InputError, match="'sp2' needs aufbau occupations"):
        run(molecule("HCN"), "pm3", diagonaliser="sp2", smearing=0.01)


@pytest.mark.parametrize("text", ["1\n\nH 0 0 0", "2\n\nH 0 0 0\nH 0 0 100"])
def test_purification_of_equal_levels(text: str) -> None:
    """Gershgorin's bounds coincide."""
    atoms = Molecule.from_string(text)
    full, found = run(atoms, "mndo"), run(atoms, "mndo", diagonaliser="sp2")
    assert found.converged and abs(found.energy - full.energy) < SAME


def test_recomputed_integrals_give_the_same_energy() -> None:
    kept = run(molecule("ribavirin"), "pm6")
    recomputed = run(molecule("ribavirin"), "pm6", max_memory=2e5)
    assert recomputed.converged and abs(kept.energy - recomputed.energy) < 1e-10
    assert "recomputed in" in recomputed.notes[0] and kept.notes == ()


@pytest.mark.parametrize(
    "options", [{"smearing": 0.01}, {"level_shift": 0.2}, {"damping": 0.3}, {"stability": "check"}]
)
def test_options_of_the_common_loop(options: dict[str, Any]) -> None:
    plain, other = run(molecule("HCN"), "pm3", **TIGHT), run(molecule("HCN"), "pm3", **TIGHT, **options)
    assert other.converged and other.energy == pytest.approx(plain.energy, abs=1e-3 if "smearing" in options else 1e-9)


def test_atoms_and_single_orbitals() -> None:
    """A single atom, without pairs; and a molecule whose orbitals are all occupied."""
    assert run(Molecule(["H"], [[0, 0, 0]]), "am1").heat_of_formation == pytest.approx(52.102, abs=1e-9)
    full = run(Molecule(["H", "H"], [[0, 0, 0], [0, 0, 1.5]], charge=-2), "pm6")
    assert full.converged and full.charges == pytest.approx([-1.0, -1.0])
    pseudo = run(
        Molecule(["H", "H"], [[0, 0, 0], [0, 0, 1.5]], charge=-2), "pm6", diagonaliser="pseudo", variant="block"
    )
    assert pseudo.energy == pytest.approx(full.energy, abs=1e-12)
