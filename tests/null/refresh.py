"""Fingerprints of a sample of kernels: generated code is not committed, its hash and cost are.

python tests/null/refresh.py    writes golden.json anew, after a change that is meant to change kernels
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from cuanto.kernels.build import cost_of, programs_of, source_of
from cuanto.kernels.spec import KernelSpec, Shells

GOLDEN = Path(__file__).with_name("golden.json")

ONE_ELECTRON = [(0, 0), (1, 0), (2, 1), (3, 2)]
TWO_CENTRES = [(0, 0), (1, 2), (3, 3), (4, 6)]
THREE_CENTRES = [(0, 0, 0), (1, 0, 1), (1, 1, 2), (2, 1, 3), (3, 0, 4)]
FOUR_CENTRES = [(0, 0, 0, 0), (1, 0, 1, 0), (1, 1, 1, 1), (2, 1, 1, 0)]
LARGE = [(3, 2, 4), (4, 4, 5)]


def specs() -> list[KernelSpec]:
    """Every operator, algorithm, schedule; pure and cartesian, straight-line and table-driven."""
    chosen = []
    for straight in ("lane", "thread"):
        for operator in ("overlap", "kinetic", "dipole"):
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
    for tables in ("table", "group"):
        chosen.append(KernelSpec("dipole", Shells((3,)), Shells((2,)), "os", tables))
        for algorithm in ("hgp", "md"):
            chosen += [KernelSpec("coulomb", Shells((a, b)), Shells((c,)), algorithm, tables) for a, b, c in LARGE]
            chosen.append(KernelSpec("coulomb", Shells((2, 2)), Shells((2, 2)), algorithm, tables))
            chosen.append(
                KernelSpec("coulomb", Shells(TWO_CENTRES[3][:1]), Shells(TWO_CENTRES[3][1:]), algorithm, tables)
            )
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


def fingerprints() -> dict[str, dict[str, Any]]:
    """All of them by name."""
    return {spec.name: fingerprint(spec) for spec in specs()}


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in fingerprints().items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(lines)} kernels in {GOLDEN}")
