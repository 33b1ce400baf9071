"""Optimising well-tempered sets: recovering the table, two optimisers, logs from which an interrupted run continues."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cuanto.atomic.atom import AtomBasis
from cuanto.atomic.input import TrustRegion, parse_input
from cuanto.atomic.job import AtomEnergy, element_job, problem_of
from cuanto.atomic.optimise import EnergyFailure, EvaluationLog, optimise_basis, resolve_method
from cuanto.atomic.repulsion import Repulsion, make_plan
from cuanto.atomic.solve import solve
from cuanto.atomic.wtbs import WellTempered, even_tempered, table_set
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.errors import InputError, MissingDependencyError

PERTURBED = np.array([1.15, 0.97, 0.85, 0.8])
VALLEY = WellTempered.shared((0.1, 2.0, 4.0, 1.5), {"s": (1, 5)})


def valley(basis: WellTempered) -> float:
    """A made-up energy with its minimum, -3, at known parameters."""
    x = np.array(basis.parameters) / (0.12, 1.8, 5.0, 1.2) - 1
    return float(-3 + 1e-6 * (x @ x + 3 * (x[2] + x[3]) ** 2))


def perturbed(symbol: str) -> tuple[WellTempered, AtomEnergy, float]:
    """A start away from the table's set, the energy function, and the energy of the table's set."""
    job = element_job(symbol)
    assert isinstance(job.basis, WellTempered)
    start = job.basis.at((np.array(job.basis.parameters) * PERTURBED).tolist())
    return start, AtomEnergy(job, "cpu"), AtomEnergy(job, "cpu")(job.basis)


@pytest.mark.parametrize("method", ["newuoa", "cobyqa"])
def test_both_optimisers_find_a_known_minimum(method: str) -> None:
    found = optimise_basis(VALLEY, valley, TrustRegion(rhoend=1e-5), method)
    np.testing.assert_allclose(found.basis.parameters, (0.12, 1.8, 5.0, 1.2), rtol=1e-3)
    assert found.converged and found.method == method and 0 < found.gain < 1e-6


RECOVERED = 1e-9
"""Relative tolerance of a recovered energy of the table."""
BELOW = {"He": 1.3e-11, "Be": 1.4e-10, "Ne": 9.6e-10, "Ar": 3.0e-9}
"""Relative difference between the minimum and the energy of the printed parameters; above 1e-9 for Ar only."""


@pytest.mark.parametrize(
    ("symbol", "method", "rhoend"),
    [("He", "newuoa", 1e-3), ("He", "cobyqa", 1e-3), ("Be", "newuoa", 1e-3), ("Ne", "newuoa", 1e-3),
     ("Ar", "newuoa", 3e-3)],
)  # fmt: skip
def test_the_energies_of_the_table_are_recovered(symbol: str, method: str, rhoend: float) -> None:
    """A distant start leads to the same minimum as the printed parameters, and never above their energy."""
    start, energy_of, printed = perturbed(symbol)
    found = optimise_basis(start, energy_of, TrustRegion(rhoend=rhoend), method)
    assert found.gain > 5e-9  # the start was well above the minimum
    nearby = optimise_basis(table_set(symbol), energy_of, TrustRegion(rhobeg=0.05, rhoend=1e-2), method)
    assert found.energy == pytest.approx(nearby.energy, rel=RECOVERED)
    above = (found.energy - printed) / abs(printed)
    assert above == pytest.approx(-BELOW[symbol], abs=1e-10)
    assert above < RECOVERED and (symbol == "Ar" or above > -RECOVERED)


def test_every_optimisation_of_argon_ends_below_the_table() -> None:
    """Unscaled parameters and energies from another start give the same minimum, below that of the printed set."""
    import nlopt

    job = element_job("Ar")
    assert isinstance(job.basis, WellTempered)
    own, energy_of = job.basis, AtomEnergy(job, "cpu")
    printed = energy_of(own)

    def bare(parameters: np.ndarray, _: np.ndarray) -> float:
        basis = own.at(parameters.tolist())
        return 0.0 if basis.invalid_reason() else energy_of(basis)

    search = nlopt.opt(nlopt.LN_NEWUOA, 4)
    search.set_min_objective(bare)
    search.set_initial_step(0.01)
    search.set_xtol_abs(1e-5)  # with 1e-4, rounding decides whether it ends in the flat valley before the minimum
    search.optimize(np.array(own.parameters) * (0.9, 1.02, 1.1, 1.1))
    assert (printed - search.last_optimum_value()) / abs(printed) == pytest.approx(BELOW["Ar"], abs=1e-10)


def test_an_optimisation_of_helium_with_a_known_result() -> None:
    """Point nucleus, 18 functions, start (0.09, 2.0, 4.0, 1.2): NLopt's NEWUOA gave -2.86181333157."""
    text = (
        "He\n$contrl jobtype='bsopt' $end\n$nuc znuc=2 $end\n$bas nsym=1 bastype='wtbs' $end\n"
        "$wtbs wtbspara=0.09,2.0,4.0,1.2 nbs=18 $end\n$newuoa $end\n$econfig nclose=1 $end\n$scf $end\n"
    )
    job = parse_input(text)
    assert isinstance(job.basis, WellTempered)
    found = optimise_basis(job.basis, AtomEnergy(job, "cpu"), job.optimise, "newuoa")
    assert found.energy == pytest.approx(-2.86181333157, abs=1e-11)
    np.testing.assert_allclose(found.basis.parameters, (0.08171, 1.957, 4.525, 1.547), rtol=1e-2)


@pytest.mark.parametrize("symbol", ["He", "Be", "Ne", "Cr"])
def test_the_energy_of_a_set_does_not_depend_on_earlier_ones(symbol: str) -> None:
    """Bitwise equal, and equal to that of tightly converged spinors to 1e-13."""
    start, energy_of, _ = perturbed(symbol)
    others = [start.at((np.array(start.parameters) * factor).tolist()) for factor in (1.05, 0.98)]
    fresh = energy_of(start)
    for other in others:
        energy_of(other)
        assert energy_of(start) == fresh
    job = energy_of.job
    another = AtomEnergy(job, "cpu")
    assert [another(basis) for basis in (others[1], start)][1] == fresh
    tight = solve(job.atom(start), job.settings, "cpu")
    assert tight.converged and fresh == pytest.approx(tight.energy, rel=1e-13)


def test_threads_do_not_change_a_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Potentials are summed in the same parts for any number of threads; a single part agrees to 1e-13."""
    basis = AtomBasis.by_momentum([even_tempered(0.01, 1.6, 40), even_tempered(0.05, 1.9, 20)])
    D_i = [np.full((2 * n, 2 * n), 0.1) + np.diag(1 / np.arange(1, 2 * n + 1)) for n in basis.sizes]

    def potentials(threads: int) -> tuple[list[np.ndarray], int]:
        store = Repulsion(basis, CpuBackend(threads=threads))
        P_i, Q_i = store.potential_and_open_shell(D_i, D_i, (1, 2), np.array([[0.3, 0.1], [0.1, 0.5]]))
        tasks = Counter((task.i, task.j) for task in store.plan.layout.tasks())
        return P_i + Q_i, max(tasks.values())

    (one, parts), (three, as_many) = potentials(1), potentials(3)
    assert parts == as_many == 3
    for P, same in zip(one, three, strict=True):
        np.testing.assert_array_equal(P, same)
    monkeypatch.setattr("cuanto.atomic.pairs.TASK_ELEMENTS", 1 << 40)
    make_plan.cache_clear()
    undivided, parts = potentials(1)
    make_plan.cache_clear()
    assert parts == 1
    for P, other in zip(one, undivided, strict=True):
        np.testing.assert_allclose(P, other, rtol=0, atol=1e-13 * np.abs(P).max())


# -------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("method", ["newuoa", "cobyqa"])
def test_sets_that_make_no_sense_or_fail_are_avoided(method: str) -> None:
    betas: list[float] = []

    def energy_of(basis: WellTempered) -> float:
        alpha, beta, _, gamma = basis.parameters
        assert alpha > 0 and beta > 1 and gamma > -1
        betas.append(beta)
        if beta > 2.05:
            raise EnergyFailure("the SCF did not converge")
        return valley(basis)

    found = optimise_basis(VALLEY, energy_of, TrustRegion(rhobeg=0.5, rhoend=1e-4), method)
    refused = [e for e in found.evaluations if e.energy is None]
    assert refused and all(e.note for e in refused)
    np.testing.assert_allclose(found.basis.parameters, (0.12, 1.8, 5.0, 1.2), rtol=2e-2)


def test_a_start_without_energy_is_an_error() -> None:
    with pytest.raises(InputError, match=r"start from has no energy: beta = 0\.9 is not above 1"):
        optimise_basis(VALLEY.at((0.1, 0.9, 4.0, 1.5)), valley)


def test_the_limit_of_evaluations_is_respected_and_reported() -> None:
    for method in ("newuoa", "cobyqa"):
        found = optimise_basis(VALLEY, valley, TrustRegion(maxfun=20), method, rounds=5)
        assert len(found.evaluations) <= 20 and not found.converged
        assert found.energy == min(e.energy for e in found.evaluations if e.energy is not None)


def test_without_nlopt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nlopt", None)
    assert resolve_method("auto") == "cobyqa"
    with pytest.raises(MissingDependencyError, match="pip install nlopt"):
        resolve_method("newuoa")
    with pytest.raises(InputError, match="unknown optimiser"):
        resolve_method("simplex")


# ------------------------------------------------------------------------------------------------------ logs


class Interrupting:
    """An energy function that counts its calls and raises KeyboardInterrupt."""

    def __init__(self, function: Callable[[WellTempered], float], after: int | None = None) -> None:
        self.function, self.after, self.calls = function, after, 0

    def __call__(self, basis: WellTempered) -> float:
        if self.after is not None and self.calls == self.after:
            raise KeyboardInterrupt
        self.calls += 1
        return self.function(basis)


@pytest.mark.parametrize("method", ["newuoa", "cobyqa"])
def test_an_interrupted_run_continues_where_it_stopped(tmp_path: Path, method: str) -> None:
    path, problem = tmp_path / "log.jsonl", {"what": "a valley"}
    whole = optimise_basis(VALLEY, valley, method=method, rounds=2)
    first = Interrupting(valley, after=30)
    with pytest.raises(KeyboardInterrupt):
        optimise_basis(VALLEY, first, method=method, rounds=2, log=EvaluationLog(path, problem))
    with path.open("a") as file:
        file.write('{"number": 31, "parameters": [0.1, 2')  # as after a crash in the middle of a line
    second = Interrupting(valley)
    found = optimise_basis(VALLEY, second, method=method, rounds=2, log=EvaluationLog(path, problem))
    distinct = {e.parameters for e in whole.evaluations}
    assert first.calls + second.calls == len(distinct)  # nothing is computed twice, not even in the second round
    assert found.energy == whole.energy and found.basis == whole.basis
    assert [e.parameters for e in found.evaluations] == [e.parameters for e in whole.evaluations]
    assert first.calls == 30
    third = Interrupting(valley)
    optimise_basis(VALLEY, third, method=method, rounds=2, log=EvaluationLog(path, problem))
    assert third.calls == 0
    assert set(EvaluationLog(path, problem).known) == distinct


def test_failures_are_logged_and_tried_again(tmp_path: Path) -> None:
    path, problem = tmp_path / "log.jsonl", dict[str, str]()

    def never(basis: WellTempered) -> float:
        raise EnergyFailure("no convergence")

    with pytest.raises(InputError, match="no convergence"):
        optimise_basis(VALLEY, never, log=EvaluationLog(path, problem))
    assert '"note": "no convergence"' in path.read_text()
    assert optimise_basis(VALLEY, valley, log=EvaluationLog(path, problem)).converged


DAMAGED = (
    '{"number": 1, "parameters": 7, "energy": -1.0}',
    '{"number": 1, "parameters": [0.1, 2.0, 4.0, null], "energy": -1.0}',
    '{"number": 1, "parameters": [0.1, 2.0, 4.0, {}], "energy": -1.0}',
    '{"number": 1, "parameters": [0.1, 2.0, 4.0, 1.5], "energy": "much"}',
    '{"number": 1, "parameters": [0.1, 2.0, 4.0, 1.5], "energy": NaN}',
    '{"number": 1, "parameters": [[0.1], 2.0, 4.0, 1.5], "energy": -1.0}',
)


@pytest.mark.parametrize("line", DAMAGED)
def test_damaged_lines_of_a_log_are_ignored(tmp_path: Path, line: str) -> None:
    path = tmp_path / "log.jsonl"
    EvaluationLog(path, {})
    with path.open("a") as file:
        file.write(line + '\n{"parameters": [0.1, 2.0, 4.0, 1.5], "energy": -2.5, "other": 1}\n')
    (known,) = EvaluationLog(path, {}).known.values()
    assert known.energy == -2.5


def test_settings_of_the_scf_belong_to_the_problem(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    EvaluationLog(path, problem_of(element_job("He", settings={"max_iterations": 2})))
    with pytest.raises(InputError, match=r"belongs to another optimisation \(max_iterations differs\)"):
        EvaluationLog(path, problem_of(element_job("He")))


def test_logs_of_something_else_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    problem = problem_of(element_job("He"))
    EvaluationLog(path, problem)
    assert json.loads(path.read_text())["problem"]["closed"] == [1]
    EvaluationLog(path, problem)  # the same problem can be opened again
    with pytest.raises(InputError, match=r"belongs to another optimisation \(nucleus differs\)"):
        EvaluationLog(path, problem_of(element_job("Be")))
    path.write_text('{"problem": {"nuc')  # as after a crash while the first line was written
    assert EvaluationLog(path, problem).known == {}
    (tmp_path / "text").write_text("hello\n")
    with pytest.raises(InputError, match="not a log"):
        EvaluationLog(tmp_path / "text", problem)
    with pytest.raises(InputError, match="cannot write"):
        EvaluationLog(tmp_path / "no" / "folder", problem)


def test_optional_packages_are_not_needed_to_import() -> None:
    code = (
        "import sys\n"
        "sys.modules |= dict.fromkeys(['nlopt', 'dask', 'distributed', 'matplotlib'])\n"
        "import cuanto.atomic.optimise, cuanto.atomic.search, cuanto.atomic.plot, cuanto.workers\n"
        "import cuanto.cli.main"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
