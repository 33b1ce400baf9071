"""Fingerprints of a sample of kernels: generated code is not committed, its hash and cost are.

After an intended change of kernels, `python tests/support/golden.py` rewrites golden.json.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from cuanto.atomic.species import SPECIES, exchange_factors
from cuanto.functionals.registry import get_functional
from cuanto.kernels import (
    atomic,
    core_potential,
    direct,
    exchange_force,
    fitting_force,
    grid_setup,
    grid_values,
    hermite_build,
    nddo,
    shell_pairs,
)
from cuanto.kernels.build import cost_of, programs_of, source_of
from cuanto.kernels.spec import KernelSpec, Shells
from cuanto.kernels.text import Source

GOLDEN = Path(__file__).resolve().parents[1] / "kernels" / "golden.json"

ONE_ELECTRON = [(0, 0), (1, 0), (2, 1), (3, 2)]
TWO_CENTRES = [(0, 0), (1, 2), (3, 3), (4, 6)]
THREE_CENTRES = [(0, 0, 0), (1, 0, 1), (1, 1, 2), (2, 1, 3), (3, 0, 4)]
FOUR_CENTRES = [(0, 0, 0, 0), (1, 0, 1, 0), (1, 1, 1, 1), (2, 1, 1, 0)]
LARGE = [(3, 2, 4), (4, 4, 5)]
FORCE_CLASSES = [((0, 0), (0, 0)), ((1, 1), (1, 0)), ((2, 1), (1, 1)), ((2, 2), (2, 1)), ((3, 2), (3, 2))]
TARGETS = ("cpu", "cuda")
FUNCTIONALS = ("svwn5", "b3lyp", "wb97x", "r2scan")
GRID_SHELLS = ((0, True), (1, True), (2, True), (2, False))


def specs() -> list[KernelSpec]:
    """Every operator, algorithm, schedule; pure and cartesian, straight-line and table-driven."""
    chosen = []
    for straight in ("lane", "thread"):
        for operator in ("overlap", "kinetic", "dipole", "quadrupole"):
            chosen += [KernelSpec(operator, Shells((a,)), Shells((b,)), "os", straight) for a, b in ONE_ELECTRON]
        for algorithm in ("hgp", "md"):
            for a, b in TWO_CENTRES[:3]:
                chosen.append(KernelSpec("coulomb", Shells((a,)), Shells((b,)), algorithm, straight))
            for a, b, c in THREE_CENTRES:
                chosen.append(KernelSpec("coulomb", Shells((a, b)), Shells((c,)), algorithm, straight))
            for a, b, c, d in FOUR_CENTRES:
                chosen.append(KernelSpec("coulomb", Shells((a, b)), Shells((c, d)), algorithm, straight))
            cartesian = Shells((2, 1), (False, False)), Shells((2,), (False,))
            chosen.append(KernelSpec("coulomb", *cartesian, algorithm, straight))
    chosen.append(KernelSpec("coulomb", Shells((1, 1)), Shells((0,)), "hgp", "thread", columns=4))
    chosen.append(KernelSpec("coulomb", Shells((1, 1)), Shells((0,)), "hgp", "lane", real="float"))
    hermite = Shells((3,), hermite=True)
    chosen += [KernelSpec("coulomb", hermite, Shells((2,)), "md", x) for x in ("lane", "thread", "table", "group")]
    for tables in ("table", "group"):
        chosen.append(KernelSpec("dipole", Shells((3,)), Shells((2,)), "os", tables))
        for algorithm in ("hgp", "md"):
            chosen += [KernelSpec("coulomb", Shells((a, b)), Shells((c,)), algorithm, tables) for a, b, c in LARGE]
            chosen.append(KernelSpec("coulomb", Shells((2, 2)), Shells((2, 2)), algorithm, tables))
            chosen.append(
                KernelSpec("coulomb", Shells(TWO_CENTRES[3][:1]), Shells(TWO_CENTRES[3][1:]), algorithm, tables)
            )
    for schedule in ("lane", "thread", "table", "group"):
        quartets = Shells((2, 1)), Shells((1, 0))
        chosen.append(KernelSpec("coulomb", *quartets, "hgp", schedule, consumer="list"))
    for schedule in ("lane", "thread", "table", "group"):  # erf(omega r)/r
        for bra, ket in (((1, 0), (1,)), ((1, 1), (1, 0)), ((2, 1), (3,))):
            chosen.append(KernelSpec("coulomb_erf", Shells(bra), Shells(ket), "hgp", schedule))
    return chosen


def sources() -> list[Source]:
    """Texts other than classes of integrals: lists of quartets, J, atoms, semiempirical methods, functionals, grids."""
    chosen = []
    chosen += [direct.cpu_digest("double"), direct.cuda_digest("double", None), direct.cuda_select()]
    chosen += [direct.cpu_forces("double"), direct.cuda_select(forces=True)]
    chosen += [direct.cpu_matrices("double"), direct.cpu_expand()]
    chosen += [exchange_force.force_kernels(*pairs, "double", 10**5)[0].source for pairs in FORCE_CLASSES]
    for target in TARGETS:
        chosen += [hermite_build.straight_source(target, 2, 1, 1, "double")]
        chosen += [hermite_build.general_source(target, "double")]
        chosen += [hermite_build.step_source(target, step) for step in hermite_build.STEPS]
        chosen += [fitting_force.fit_pairs_source(target), fitting_force.fit_expand_source(target)]
        chosen += [fitting_force.fit_force_source(target), shell_pairs.shell_pairs_source(target)]
        chosen += [core_potential.core_source(target, name) for name in core_potential.KERNELS]
        chosen += [atomic.integral_source(target, kappa, other) for kappa, other in ((-1, -1), (1, -2), (2, 2))]
        chosen += [atomic.integral_source(target, -1, -1, relativistic=False), atomic.contract_source(target)]
        chosen += [nddo.repulsion_source(target, a, b) for a, b in ((1, 1), (4, 1), (9, 4))]
        chosen += [nddo.core_source(target, (4, 4, 3), (6, 5)), nddo.attraction_source(target, 9)]
        chosen += [nddo.exchange_source(target, 4, 4), nddo.repulsion_source(target, 4, 4, "gradient")]
        chosen += [nddo.core_source(target, (2, 2), (1,)), nddo.core_source(target, (3, 3, 3), (2, 2), "gradient")]
        chosen += [get_functional(name).source(target, spins) for name in FUNCTIONALS for spins in (1, 2)]
        for make in (grid_setup.weights_source, grid_setup.weights_gradient_source):
            chosen += [make(target, stratmann) for stratmann in (False, True)]
    for family in ("lda", "mgga"):
        chosen.append(grid_values.cpu_density((GRID_SHELLS, 1, family), "double", True))
        chosen.append(grid_values.cpu_matrix((GRID_SHELLS, 1, family), "double"))
        chosen.append(grid_values.device_values((GRID_SHELLS, 1, family), "double"))
        chosen.append(grid_values.cpu_gradient((GRID_SHELLS, 1, family), False))
        names = ("density", "weigh", "right", "force", "atoms")
        chosen += [grid_values.device_kernel(name, family, "double") for name in names]
    return chosen


def fingerprint(spec: KernelSpec) -> dict[str, Any]:
    """Hash of the text (and of the index tables), and the cost in numbers."""
    class_ = (spec.operator, spec.bra, spec.ket, spec.algorithm)
    digest = hashlib.sha256(source_of(spec).text.encode())
    result: dict[str, Any] = {}
    if spec.schedule in ("table", "group"):
        for program in programs_of(*class_, levels=spec.schedule == "group"):
            digest.update(program.table.tobytes())
            digest.update(program.constants.tobytes())
    cost = cost_of(*class_)
    result["sha256"] = digest.hexdigest()
    result["primitive"] = [cost.primitive.operations, cost.primitive.uniform, cost.primitive.live]
    result["contracted"] = cost.contracted
    return result


def atomic_tables() -> str:
    """Hash of the coefficients of all classes of atomic integrals to F+."""
    digest = hashlib.sha256()
    for one in SPECIES[:7]:
        for other in SPECIES[:7]:
            tables = atomic.class_tables(one.kappa, other.kappa, tuple(exchange_factors(one, other).items()))
            digest.update(tables.shape.tobytes())
            digest.update(tables.values.tobytes())
    return digest.hexdigest()


def fingerprints() -> dict[str, dict[str, Any]]:
    """Fingerprints of all kernels by name."""
    known: dict[str, dict[str, Any]] = {spec.name: fingerprint(spec) for spec in specs()}
    for source in sources():
        name = f"{source.entry} {source.target}"
        assert name not in known, f"two kernels are called {name}"
        known[name] = {"sha256": source.hash}
    return known | {"coefficients of atoms": {"sha256": atomic_tables()}}


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in fingerprints().items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(lines)} kernels in {GOLDEN}")
