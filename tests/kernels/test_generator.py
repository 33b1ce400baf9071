"""The kernel generator: graphs give the integrals, costs match the texts, tables execute safely."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from bundle import Case, arguments, bundle, evaluate, expand_kernel_macro
from cuanto.basis import Basis
from cuanto.errors import InputError
from cuanto.integrals.batches import BraBatch, KetBatch, ket_batch, shell_batch
from cuanto.integrals.pairs import RowMap, pair_batches
from cuanto.integrals.segments import segments
from cuanto.kernels import abi, text
from cuanto.kernels.build import cost_of, general_source, integrals_of, programs_of, source_of
from cuanto.kernels.cost import node_operations
from cuanto.kernels.derivative import gradient
from cuanto.kernels.ir import Graph, Kind, Stage
from cuanto.kernels.passes import limit_terms, live_values, schedule_order
from cuanto.kernels.recurrences.components import function_count
from cuanto.kernels.schedule import table
from cuanto.kernels.schedule.straight import contracted_function, primitive_function
from cuanto.kernels.spec import KernelSpec, Shells
from cuanto.kernels.text import assemble, template
from cuanto.kernels.values import FOLD, Value, cbrt, exp, number, select, variable
from golden import GOLDEN, fingerprints
from oracle import Array
from oracles.functionals import evaluate as graph_values
from oracles.functionals import numpy_functions
from programs import evaluate_stage, level_statements, run_depth_first, run_levels, sweep_sums

Class = tuple[str, Shells, Shells, str]


def classes(l_max: int, aux_max: int, pure: bool = True) -> list[Class]:
    """Every class of every operator by every algorithm."""

    def shells(*l: int) -> Shells:
        return Shells(l, (pure,) * len(l))

    pairs = [(a, b) for a in range(l_max + 1) for b in range(a + 1)]
    one = [
        (operator, shells(a), shells(b), "os")
        for operator in ("overlap", "kinetic", "dipole")
        for a, b in product(range(l_max + 1), repeat=2)
    ]
    two = [
        ("coulomb", shells(a), shells(b), algorithm)
        for algorithm in ("hgp", "md")
        for a, b in product(range(aux_max + 1), repeat=2)
    ]
    three = [
        ("coulomb", shells(*pair), shells(c), algorithm)
        for algorithm in ("hgp", "md")
        for pair, c in product(pairs, range(aux_max + 1))
    ]
    return one + two + three


def name_of(class_: Class) -> str:
    operator, bra, ket, algorithm = class_
    return f"{operator}-{bra}-{ket}-{algorithm}"


TOTALS = [(0, 0), (1, 1), (2, 2), (3, 1), (3, 3), (4, 0), (4, 2)]
SAMPLE = list(
    dict.fromkeys(c for pure in (True, False) for c in classes(3, 4, pure) if (sum(c[1].l), c[2].l[0]) in TOTALS)
)


# ------------------------------------------------------------------------------------- the expression graph


def test_equal_nodes_are_stored_once() -> None:
    g = Graph()
    x, y, z = g.input("bra", 0, True), g.input("ket", 0, False), g.input("ket", 1, False)
    assert g.add(y, z) == g.add(z, y)
    assert g.sum(((2.0, x, y), (3.0, y, x))) == g.sum(((5.0, x, y),))
    assert g.sum(((1.0, x, y), (-1.0, y, x))) == g.zero
    assert g.mul(x, g.zero) == g.zero
    assert g.mul(g.one, y) == g.add(y, g.zero) == y
    assert g.power(x, 0) == g.one and g.power(x, 2) == g.mul(x, x)
    assert g.uniform[g.mul(x, x)] and not g.uniform[g.mul(x, y)]
    assert g.pairs[g.mul(y, x)] == ((x, y),), "the uniform factor comes first"


def test_arguments_come_before_their_node() -> None:
    for class_ in SAMPLE:
        integrals = integrals_of(*class_)
        for stage in (integrals.primitive, *(sweep.stage for sweep in integrals.sweeps)):
            order = schedule_order(stage, stage.outputs)
            graph = stage.graph
            known = {node for node in range(len(graph)) if graph.kind[node] in (Kind.CONST, Kind.INPUT)}
            for node in order:
                assert set(graph.arguments(node)) <= known, name_of(class_)
                known.add(node)
            assert set(stage.outputs) <= known
            assert len(order) == len(set(order))
            assert 0 <= live_values(stage) <= len(order)


def test_arithmetic_on_values_folds_and_merges() -> None:
    """Formulas give the same nodes as recurrences, and constants are folded."""
    g = Graph()
    x, y = variable(g, 0), variable(g, 1)
    assert (x + y).node == g.add(x.node, y.node) and (y * x).node == g.mul(x.node, y.node)
    assert (x + 2).node == g.sum(((1.0, x.node, g.one), (2.0, g.one, g.one))) and (3 * x).node == g.scale(3.0, x.node)
    assert 2 * x + 3 * x == 5 * x and (2 * x) * (3 * y) == 6 * (x * y) and (x - x).node == g.zero
    assert (x * (1 / x)).node == g.one and 1 / (1 / x) == x
    assert 1 / (2 * x) == 0.5 * (1 / x) and 1 / (4 / x) == 0.25 * x
    assert exp(number(g, 0)).node == g.one and x**0 == number(g, 1) and x ** Fraction(1, 3) == cbrt(x)
    assert select(number(g, 1), 2, x, y) == x and select(x, y, x, x) == x
    size = len(g)
    assert select(x, 1, x * y, 0) == select(x, 1, y * x, 0) and len(g) == size + 1


def test_gradient_matches_finite_differences() -> None:
    """Derivatives of sums of several products, of every function and of selections are right."""
    g = Graph()
    x, y = variable(g, 0), variable(g, 1)
    inner = Value(g, g.sum(((2.0, x.node, y.node), (1.0, x.node, x.node), (-3.0, y.node, g.one), (0.5, g.one, g.one))))
    total = inner
    for function in FOLD:
        total = total + Value(g, g.call(function, (inner * inner + y).node)) * x
    total = select(x, y, total * y, x) + select(y, x, 7, total)
    stage = Stage(g, tuple(value.node for value in (total, *gradient(total, (x, y, variable(g, 2))))))
    functions, h = numpy_functions(), 1e-6
    for point in ([0.3, 0.4, 0.0], [0.5, 0.2, 0.0]):
        _, *slopes = graph_values(stage, point, functions)
        for i, slope in enumerate(slopes):
            ends = [
                graph_values(stage, [v + s * h * (j == i) for j, v in enumerate(point)], functions)[0] for s in (1, -1)
            ]
            assert abs(float(slope) - float(ends[0] - ends[1]) / (2 * h)) <= 1e-6 * max(1.0, abs(float(slope)))
        assert slopes[2] == 0.0


def test_long_sums_become_partial_sums() -> None:
    g = Graph()
    terms = [(1.0 + i, g.input("bra", i, True), g.input("ket", i, False)) for i in range(11)]
    stage = Stage(g, (g.sum(terms), g.sum(terms[:3])))
    short = limit_terms(stage, 4)
    assert max(map(len, short.graph.pairs)) == 4
    records = {"bra": np.random.default_rng(1).normal(size=11), "ket": np.random.default_rng(2).normal(size=11)}
    assert np.allclose(evaluate_stage(short, records), evaluate_stage(stage, records), rtol=1e-14)


@cache
def exact_integrals(operator: str, basis: Basis, aux: Basis) -> Array:
    values = evaluate(None, operator, basis, aux)
    if operator == "dipole":  # the kernel's origin is that of the coordinates
        origin = arguments("dipole", basis)["origin"]
        values = values + origin[:, None, None] * evaluate(None, "overlap", basis, aux)
    return values.reshape(3 if operator == "dipole" else 1, -1, values.shape[-1])


def our_batches(class_: Class) -> tuple[BraBatch, KetBatch, Array]:
    """Batches of a class and reference integrals [component, row of the batch, column of the batch]."""
    operator, bra, ket, _ = class_
    form = "pure" if all((*bra.pure, *ket.pure)) else "cartesian"
    basis, aux = bundle(Case(form, "contracted", l_max=3, aux_max=4))
    groups = {b: {g.l: g for g in segments(b)} for b in (basis, aux)}
    if operator != "coulomb":
        exact = exact_integrals(operator, basis, aux)
        mine = groups[basis]
        bras, kets = shell_batch(mine[bra.l[0]], coulomb=False), ket_batch(mine[ket.l[0]], coulomb=False)
    else:
        kets = ket_batch(groups[aux][ket.l[0]], coulomb=True)
        if len(bra.l) == 1:
            exact = exact_integrals("2c", basis, aux)
            bras = shell_batch(groups[aux][bra.l[0]], coulomb=True)
        else:
            exact = exact_integrals("3c", basis, aux)
            a, b = (groups[basis][l] for l in bra.l)
            bras = pair_batches(a, b, a is b, RowMap(basis.nbf, packed=False), 0.0)[0]
    return bras, kets, exact


@pytest.mark.parametrize("class_", SAMPLE, ids=name_of)
def test_graphs_give_the_integrals(class_: Class) -> None:
    """Both stages, evaluated node by node with NumPy, agree with the reference."""
    integrals = integrals_of(*class_)
    bra, ket, exact = our_batches(class_)
    b, q, j = bra.count - 1, bra.columns - 1, min(ket.count, abi.BLOCK) - 1
    sums = np.zeros(integrals.width)
    for k, c in product(range(bra.first[b], bra.first[b + 1]), range(ket.first[1])):
        records = {"bra": bra.record[k], "ket": ket.record[c, :, j]}
        sums += bra.coefficient[k, q] * np.array([float(x) for x in evaluate_stage(integrals.primitive, records)])
    block = sweep_sums(integrals, sums, bra.shell[b], ket.shell[0, :, j])
    rows = bra.rows[b].reshape(bra.columns, -1)[q]
    expected = exact[:, rows][:, :, ket.cols[:, j]]
    assert np.abs(block - expected).max() <= 1e-12 * np.abs(expected).max() + 1e-14


# ------------------------------------------------------------------------------------- costs and the text


def text_operations(text: str) -> int:
    """Multiplications and additions in the body of a function, without addresses and loop counters."""
    body = text[text.index("{") :]
    body = re.sub(r"vload\([^)]*\)|\[[^\]]*\]|for \([^)]*\)", "", body)
    return 2 * body.count("vfma(") + body.count(" * ") + body.count(" + ")


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_cost_matches_the_text(target: str) -> None:
    for class_ in (c for pure in (True, False) for c in classes(3, 4, pure)):
        integrals, cost = integrals_of(*class_), cost_of(*class_)
        primitive = text_operations(primitive_function(integrals))
        contracted = text_operations(contracted_function(integrals, target))
        assert primitive == cost.primitive.operations + cost.primitive.uniform, name_of(class_)
        assert primitive + contracted == cost.text_operations, name_of(class_)


@pytest.mark.parametrize("algorithm", ["hgp", "md"])
def test_cost_of_four_centres_matches_the_text(algorithm: str) -> None:
    pairs = [(a, b) for a in range(3) for b in range(a + 1)]
    for bra, ket in product(pairs, pairs):
        class_ = ("coulomb", Shells(bra), Shells(ket), algorithm)
        integrals, cost = integrals_of(*class_), cost_of(*class_)
        texts = primitive_function(integrals), contracted_function(integrals, "cuda")
        assert sum(map(text_operations, texts)) == cost.text_operations, name_of(class_)


def test_bytes_and_operations_of_the_cost_model() -> None:
    for class_ in SAMPLE:
        integrals, cost = integrals_of(*class_), cost_of(*class_)
        operator, bra, ket, _ = class_
        functions = [function_count(l, p) for side in (bra, ket) for l, p in zip(side.l, side.pure, strict=True)]
        components = 3 if operator == "dipole" else 1
        assert cost.bytes_written == 8 * components * int(np.prod(functions))
        assert cost.bytes_read <= 8 * (abi.bra_fields(operator) + abi.ket_fields(ket))
        assert cost.width == integrals.width
        assert (cost.primitive.boys > 0) == (operator == "coulomb")
        assert cost.contracted == sum(sweep.repeat * lane_operations(sweep.stage) for sweep in integrals.sweeps)
        assert cost.total(4, 2) > cost.total(4) > cost.total(1) > 0


def lane_operations(stage: Stage) -> int:
    nodes = schedule_order(stage, stage.outputs)
    return sum(node_operations(stage.graph, node) for node in nodes if not stage.graph.uniform[node])


def test_kernels_are_self_contained() -> None:
    """One entry point, no launch and no call of another kernel, nothing included but the C library's memory."""
    specs = [
        KernelSpec(*class_, schedule, columns=columns)
        for class_ in SAMPLE
        for schedule, columns in (("lane", 1), ("thread", 1), ("thread", 4))
    ]
    sources = [source_of(spec) for spec in specs]
    sources += [general_source(schedule, real) for schedule in ("table", "group") for real in ("double", "float")]
    entries = {source.entry for source in sources}
    for source in sources:
        code = expand_kernel_macro(source.text)
        assert code.count('extern "C"') == 1, source.entry
        assert "<<<" not in code
        assert set(re.findall(r"\w+", code)) & entries == {source.entry}
        included = re.findall(r"#include\s*(\S+)", code)
        assert included == [] if source.target == "cuda" else set(included) <= {"<stdlib.h>"}
        assert ("__global__" in code) == (source.target == "cuda")


def test_assembled_texts() -> None:
    """Macros, the line before the prelude, the prelude of the target, then templates and generated text in order."""
    arguments = (("INDEX", "begin"), ("const REAL*", "x"))
    for target, prelude in (("cpu", "prelude_cpu.h"), ("cuda", "prelude_cuda.cuh")):
        body = ("void generated();", "boys.h")
        source = assemble("entry_point", target, "float", arguments, {"WIDTH": 3}, body, before="#define LANES 4")
        macros = dict(line.split(" ", 2)[1:] for line in source.text.splitlines()[:6])
        assert macros.pop("PARAMETERS") == "INDEX begin, const REAL* x" and macros.pop("ARGUMENTS") == "begin, x"
        assert macros == {"REAL": "float", "ENTRY": "entry_point", "WIDTH": "3", "LANES": "4"}
        parts = ["LANES 4", template(prelude), body[0], template("boys.h")]
        positions = [source.text.index(part) for part in parts]
        assert positions == sorted(positions) and source.text.endswith(parts[-1])
        assert (source.entry, source.target, source.arguments) == ("entry_point", target, arguments)


def test_only_the_assembler_knows_targets() -> None:
    """Only `text.py` writes macros; other modules use tables with the target as key."""
    folder = Path(text.__file__).parent
    target_test = re.compile(r"[!=]= \"(cpu|cuda)\"|#define \{")
    found = {path.name for path in folder.rglob("*.py") if target_test.search(path.read_text())}
    assert found == {"text.py"}


def test_names_of_specs_are_unique() -> None:
    specs = [
        KernelSpec(*c, schedule, real, columns)
        for pure in (True, False)
        for c in classes(3, 4, pure)
        for schedule in ("lane", "thread")
        for real in ("double", "float")
        for columns in (1, 2)
    ]
    assert len({spec.name for spec in specs}) == len(set(specs))
    assert all(re.fullmatch(r"[a-z]\w*", spec.name) for spec in specs)


def test_kernels_did_not_change_unnoticed() -> None:
    """Detects unintended changes of kernels; after an intended change, golden.json has to be updated."""
    known, now = json.loads(GOLDEN.read_text()), fingerprints()
    assert known.keys() == now.keys()
    different = [spec for spec in now if known[spec] != now[spec]]
    hint = f"if that is meant, run `python {Path('tests/support/golden.py')}` and commit tests/kernels/golden.json"
    assert not different, f"{len(different)} of {len(now)} kernels changed, {different[0]} first: {hint}"


# -------------------------------------------------------------------------------------------- index tables


@pytest.mark.parametrize("class_", SAMPLE, ids=name_of)
def test_tables_agree_with_the_graph(class_: Class) -> None:
    """Depth first, by levels in any order of a level's statements, and node by node: the same numbers."""
    integrals = integrals_of(*class_)
    stages = [integrals.primitive, *(sweep.stage for sweep in integrals.sweeps)]
    rng = np.random.default_rng(8)
    for levels in (False, True):
        tables = list(programs_of(*class_, levels=levels))
        if len(stages) == 2:  # no sweep over the ket
            assert tables.pop(1).repeat == 0
        for stage, program in zip(stages, tables, strict=True):
            uniform_inputs, lane_inputs = int(program.table[6]), int(program.table[5])
            uniform, lane = rng.uniform(0.5, 1.5, uniform_inputs), rng.uniform(0.5, 1.5, lane_inputs)
            values = int(program.table[14])
            records = {"bra": uniform, "bra_shell": uniform, "ket": lane, "acc": lane, "ket_shell": lane[values:]}
            exact = {k: v for k, v in enumerate(evaluate_stage(stage, records)) if stage.outputs[k] != stage.graph.zero}
            run = run_levels if levels else run_depth_first
            got = run(program, uniform, lane)
            assert got.keys() == exact.keys()
            scale = max(1.0, *(abs(float(v)) for v in exact.values()))
            assert all(abs(float(got[k] - exact[k])) <= 1e-12 * scale for k in exact), name_of(class_)


def test_records_fit_vector_loads() -> None:
    """Statements begin at a multiple of 16 bytes and have at most TERMS terms, even in the largest supported class."""
    largest: list[Class] = [("coulomb", Shells((5, 5)), Shells((6,)), algorithm) for algorithm in ("hgp", "md")]
    for class_ in [*SAMPLE, *largest]:
        for program in programs_of(*class_, levels=True):
            assert program.table.dtype == np.int32 and len(program.constants) >= 1
            assert program.table[0] % 4 == 0 and table.RECORD % 4 == 0
            levels = level_statements(program)
            assert all(len(statement.pairs) <= table.TERMS for level in levels for statement in level)


def test_source_of_every_schedule() -> None:
    bra, ket = Shells((1, 0)), Shells((1,))
    texts = {s: source_of(KernelSpec("coulomb", bra, ket, "hgp", s)) for s in ("lane", "table", "thread", "group")}
    assert len({source.text for source in texts.values()}) == 4
    assert [texts[s].target for s in ("lane", "table", "thread", "group")] == ["cpu", "cpu", "cuda", "cuda"]
    assert texts["group"].entry == "group_kernel" and texts["lane"].entry == "coulomb_ps_p_hgp_lane_double_1"


def test_consumers_and_derivatives_that_are_missing_are_refused() -> None:
    given = ("coulomb", Shells((1, 0)), Shells((1,)), "hgp")
    with pytest.raises(InputError, match="unknown consumer 'matrix': choose store, list, digest"):
        KernelSpec(*given, "lane", consumer="matrix")
    for schedule, more in (
        ("lane", {"derivative": 1}),
        ("thread", {"consumer": "gradient"}),
        ("table", {"derivative": 2}),
    ):
        with pytest.raises(InputError):
            source_of(KernelSpec(*given, schedule, **more))
    listed = source_of(KernelSpec(*given, "thread", consumer="list"))
    assert listed.entry.endswith("_list") and listed.text != source_of(KernelSpec(*given, "thread")).text
