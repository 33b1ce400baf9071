"""Atoms and sets that cannot be computed: error messages, and calculations that continue without them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cuanto.atomic import Atom, AtomBasis, AtomResult, Nucleus, Occupation, Repulsion, solve
from cuanto.atomic.export import contracted_table
from cuanto.atomic.input import parse_input
from cuanto.atomic.job import AtomEnergy, element_job, energy_is_constant, run_energy
from cuanto.atomic.optimise import EnergyFailure, Evaluation, EvaluationLog
from cuanto.atomic.search import best_start
from cuanto.atomic.wtbs import WellTempered
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.simt.backend import SimtBackend
from cuanto.errors import InputError

GOOD = (0.1, 2.0, 4.0, 1.5)
BORON = """B
$contrl $end
$nuc znuc=5 $end
$bas nsym=3 bastype='wtbs' $end
$wtbs wtbspara=0.1,2.0,4.0,1.5 nbs=6,3,3 $end
$econfig nclose=2,0,0 nopen=0,1,1 freeel=1 nconf=2 $end
1 0 1.0
0 1 2.0
$scf $end
"""


# ------------------------------------------------------------------------------------------------ sets of exponents


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ((float("nan"), 2.0, 4.0, 1.5), "a parameter is not finite"),
        ((0.0, 2.0, 4.0, 1.5), "alpha = 0 is not above 0"),
        ((0.1, 1.0, 4.0, 1.5), "beta = 1 is not above 1"),
        ((0.1, 2.0, 0.1, -0.9), "do not give rising, finite exponents"),
        ((0.1, 2.0, 4.0, -1.0), "gamma = -1 is not above -1"),
        ((0.1, 2000.0, 4.0, 1.5), "exponent 1.2e+23 is not between 1e-10 and 1e+20"),
        ((1e-12, 2.0, 4.0, 1.5), "exponent 1.0e-12 is not between 1e-10 and 1e+20"),
    ],
)
def test_parameters_that_make_no_set(parameters: tuple[float, ...], says: str) -> None:
    basis = WellTempered.shared(GOOD, {"s": (1, 8)}).at(parameters)
    reason = basis.invalid_reason()
    assert reason is not None and says in reason
    with pytest.raises(InputError, match="no well-tempered set: ") as caught:
        basis.basis()
    assert str(caught.value).endswith(reason)


@pytest.mark.parametrize("letters", ["", "p", "sd", "spf"])
def test_momenta_with_a_gap_are_refused(letters: str) -> None:
    with pytest.raises(InputError, match="without a gap"):
        WellTempered.shared(GOOD, dict.fromkeys(letters, (1, 4)))


def test_a_basis_file_for_an_atom_needs_every_momentum(tmp_path: Path) -> None:
    path = tmp_path / "gap.nw"
    path.write_text("He S\n 1.0 1.0\nHe D\n 0.5 1.0\n")
    with pytest.raises(InputError, match="up to g without a gap"):
        element_job("He", str(path))


# ------------------------------------------------------------------------------------------------------ input files


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("freeel=1 nconf=2", "freeel=1.5 autogen=.true.", "freeel is 1.5; autogen needs a whole number"),
        ("0 1 2.0", "0 1 -2.0", "the weight -2 is not between 1e-30 and 1e+30"),
        ("0 1 2.0", "0 1 1e300", "the weight 1e+300 is not between 1e-30 and 1e+30"),
        ("0 1 2.0", "0 1", "give a weight with every configuration or with none"),
        ("nbs=6,3,3", "nbs=9999*6, 9999*3", "nbs has more than 10000 values"),
    ],
)
def test_lines_that_are_wrong(old: str, new: str, says: str) -> None:
    assert parse_input(BORON).occupation.weights == (1.0, 2.0)
    with pytest.raises(InputError) as caught:
        parse_input(BORON.replace(old, new), "b.inp")
    assert says in str(caught.value) and str(caught.value).startswith("b.inp, line ")


def test_a_nucleus_between_two_elements_needs_its_size() -> None:
    with pytest.raises(InputError, match=r"no radius is known for the charge 2\.5"):
        Nucleus(2.5, "gaussian")
    assert Nucleus(2.5, "gaussian", 1e8).rms > 0


# --------------------------------------------------------------------------------------------------------- energies


@pytest.fixture(scope="module")
def helium() -> AtomResult:
    settings = {"relativistic": False}
    job = element_job("He", nucleus="point", parameters="0.2,3.0,1.0,1.0", ranges="s(1:4)", settings=settings)
    return run_energy(job, "cpu")


def test_integrals_that_do_not_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = CpuBackend(threads=1)
    monkeypatch.setattr(backend, "memory", lambda: (1000, 10**9))
    basis = AtomBasis.by_momentum([[2.0**k for k in range(20)]])
    with pytest.raises(InputError, match=r"integrals of 20 functions: 2 MiB are needed, 0 MiB are left: use a smaller"):
        Repulsion(basis, backend)


def test_a_memory_limit_bounds_the_integrals() -> None:
    backend, basis = SimtBackend(), AtomBasis.by_momentum([[2.0**k for k in range(20)]])
    with pytest.raises(InputError, match="raise max_memory"):
        Repulsion(basis, backend, max_memory=1e6)
    with pytest.raises(InputError):
        solve(Atom(Nucleus(2), basis, Occupation((1,))), backend=backend, max_memory=1e6)
    assert Repulsion(basis, backend, relativistic=False, max_memory=1e6).matrices


def test_no_contraction_of_orbitals_that_did_not_converge(helium: AtomResult) -> None:
    assert contracted_table("He", helium).shells
    with pytest.raises(InputError, match="orbitals of He did not converge"):
        contracted_table("He", replace(helium, converged=False))


def test_a_constant_energy_is_accepted_although_the_density_oscillates(helium: AtomResult) -> None:
    last = helium.history[-1]
    assert energy_is_constant(replace(helium, history=[last] * 5))
    assert not energy_is_constant(replace(helium, history=[last] * 4))
    assert not energy_is_constant(replace(helium, history=[last] * 4 + [replace(last, energy=last.energy + 1e-3)]))


def test_a_failed_energy_is_explained() -> None:
    job = element_job("He", parameters="0.2,3.0,1.0,1.0", ranges="s(1:4)", settings={"max_iterations": 1})
    assert isinstance(job.basis, WellTempered)
    energy_of = AtomEnergy(job, "cpu")
    with pytest.raises(EnergyFailure, match="the SCF did not converge"):
        energy_of(job.basis)
    with pytest.raises(EnergyFailure, match="beta = 1 is not above 1"):
        energy_of(job.basis.at((0.2, 1.0, 1.0, 1.0)))


@pytest.mark.parametrize(
    ("fails", "energies", "tried"),
    [
        ((), (-2.1, -2.2), [(0.2, False), (0.1, True)]),
        (("from another",), (-2.1, -2.2), [(0.2, False), (0.1, True), (0.1, False)]),
        (("of the job",), (None, -2.2), [(0.2, False), (0.2, False), (0.1, False)]),
    ],
)
def test_all_other_sets_start_from_the_spinors_of_the_job(
    monkeypatch: pytest.MonkeyPatch, fails: tuple[str, ...], energies: tuple[Any, Any], tried: list[tuple[float, bool]]
) -> None:
    """If that fails, the bare nucleus is used; the set of the job itself is computed once."""
    job = element_job("He", parameters="0.2,3.0,1.0,1.0", ranges="s(1:4)")
    calls: list[tuple[float, bool]] = []

    def solve(atom: Any, settings: Any, backend: str, start: Any, is_converged: Any) -> Any:
        alpha = float(atom.basis.exponents[0][0])
        calls.append((alpha, start is not None))
        bad = ("from another" in fails and start is not None) or ("of the job" in fails and alpha == 0.2)
        return SimpleNamespace(atom=atom, converged=not bad, history=[], energy=-2.3 + alpha)

    monkeypatch.setattr("cuanto.atomic.job.solve", solve)
    energy_of = AtomEnergy(job, "cpu")
    assert isinstance(job.basis, WellTempered)
    if energies[0] is None:
        with pytest.raises(EnergyFailure, match="did not converge"):
            energy_of(job.basis)
    else:
        assert energy_of(job.basis) == pytest.approx(energies[0])
    assert energy_of(job.basis.at((0.1, 3.0, 1.0, 1.0))) == pytest.approx(energies[1])
    assert calls == tried


# ------------------------------------------------------------------------------------------------- starts of a search


def tempered(*alphas: float) -> list[WellTempered]:
    return [WellTempered.shared((alpha, *GOOD[1:]), {"s": (1, 4)}) for alpha in alphas]


def near_a_tenth(basis: WellTempered) -> float:
    if basis.parameters[0] > 1:
        raise EnergyFailure("too tight")
    return abs(basis.parameters[0] - 0.1)


def test_a_search_starts_where_the_energy_is_lowest() -> None:
    starts = tempered(0.5, -1.0, 5.0, 0.11, 0.3)
    assert best_start(starts, near_a_tenth, EvaluationLog()) is starts[3]
    assert best_start(starts[1:2], near_a_tenth, EvaluationLog()) is starts[1]  # a single start is used as it is


def test_logged_energies_are_not_computed_again(tmp_path: Path) -> None:
    starts, tried = tempered(0.5, 0.2, 0.11), []

    def energy_of(basis: WellTempered) -> float:
        tried.append(basis.parameters[0])
        return near_a_tenth(basis)

    log = EvaluationLog(tmp_path / "a.log", {"element": "He"})
    log.append(Evaluation(0, starts[1].parameters, -7.0))
    log.append(Evaluation(0, starts[2].parameters, -6.0))
    again = EvaluationLog(tmp_path / "a.log", {"element": "He"})
    assert best_start(starts, energy_of, again) is starts[1]
    assert tried == [0.5]
    assert len(EvaluationLog(tmp_path / "a.log", {"element": "He"}).known) == 3


def test_a_search_without_any_start_is_explained() -> None:
    with pytest.raises(EnergyFailure, match="too tight"):
        best_start(tempered(3.0, 4.0), near_a_tenth, EvaluationLog())
    with pytest.raises(EnergyFailure, match="to start from has an energy: alpha = -2 is not"):
        best_start(tempered(-1.0, -2.0), near_a_tenth, EvaluationLog())


def test_a_log_of_another_optimisation_names_the_difference(tmp_path: Path) -> None:
    EvaluationLog(tmp_path / "a.log", {"element": "He", "nucleus": "point"})
    with pytest.raises(InputError, match=r"another optimisation \(nucleus differs\); give another name"):
        EvaluationLog(tmp_path / "a.log", {"element": "He", "nucleus": "gaussian"})
    with pytest.raises(InputError, match="another optimisation; give another name"):
        EvaluationLog(tmp_path / "a.log", {"element": "He"})
