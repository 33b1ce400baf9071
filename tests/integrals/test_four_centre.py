"""(pq|rs): against libcint (the reference where there is no PySCF), by both algorithms, on every backend."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bundle import CANCELLATION, HAS_PYSCF, Case, bundle, on
from cuanto import integrals
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.basis import Basis, Shell
from cuanto.errors import InputError
from cuanto.kernels.build import cost_of, integrals_of, programs_of
from cuanto.kernels.describe import describe
from four_centre_cases import GENERAL, SMALL, assert_blocks, backend, block, expected, four_shells, ours
from oracle import Array, block_scale, pyscf_block, reference_block
from oracle import describe as describe_shells
from oracles import integrals as reference
from sample import sample
from tolerances import INTEGRAL_REL, SMALLEST, SYMMETRY_REL

D_SHELLS = [Case(form, kind, l_max=2) for form in ("pure", "cartesian") for kind in ("primitive", "contracted")]
TIGHT = [Case("pure", "contracted", geometry, "mixed", l_max=1) for geometry in ("near", "coincident", "distant")]


@pytest.mark.parametrize("algorithm", ["hgp", "md", "auto"])
@pytest.mark.parametrize("case", [*SMALL, *D_SHELLS], ids=str)
@on("cpu-table", "simt-group", "cuda-group")
def test_all_classes(name: str, case: Case, algorithm: str) -> None:
    basis, exact = expected(case)
    assert_blocks(ours(backend(name), basis, algorithm), exact, basis)


@pytest.mark.parametrize("algorithm", ["hgp", "md"])
@pytest.mark.parametrize("case", SMALL, ids=str)
@on("cpu-lane", "simt-thread", "cuda-thread")
def test_s_and_p_on_the_other_schedules(name: str, case: Case, algorithm: str) -> None:
    basis, exact = expected(case)
    assert_blocks(ours(backend(name), basis, algorithm), exact, basis)


@on("cpu-table", "cuda-group")
def test_many_columns(name: str) -> None:
    basis, exact = expected(GENERAL)
    assert_blocks(ours(backend(name), basis), exact, basis)


@pytest.mark.parametrize("case", TIGHT, ids=str)
@on("cpu-table", "cuda-group")
def test_tight_and_diffuse(name: str, case: Case) -> None:
    """libcint loses digits here, so blocks are compared with the reference."""
    basis, _ = bundle(case)
    assert_blocks(ours(backend(name), basis, "md"), reference.eri_4c_tensor(basis), basis)


def assert_block(got: Array, shells: list[Shell], centres: Array) -> None:
    """1e-12 of the largest element of libcint's block, or of the reference's where libcint differs.

    Pure functions may have the rounding of the cartesian ones that cancel in them.
    """
    if HAS_PYSCF and _excess(got, pyscf_block("4c", shells, centres)) <= 1.0:
        return
    exact = reference_block("4c", shells, centres)
    rounding = CANCELLATION * block_scale("4c", shells, centres) if _excess(got, exact) > 1.0 else 0.0
    ratio = _excess(got, exact, rounding)
    assert ratio <= 1.0, f"{describe_shells(shells)}: {ratio:.2g} times the tolerance"


def _excess(got: Array, exact: Array, rounding: float = 0.0) -> float:
    return float(np.abs(got - exact).max() / (INTEGRAL_REL * np.abs(exact).max() + rounding + SMALLEST))


@pytest.fixture
def few_graphs() -> Iterator[None]:
    """The expression graphs of all classes together would take gigabytes."""
    yield
    for function in (integrals_of, programs_of, cost_of):
        function.cache_clear()


PAIRS = [(a, b) for a in range(6) for b in range(a + 1)]
CLASSES = [(*bra, *ket) for i, bra in enumerate(PAIRS) for ket in PAIRS[: i + 1]]
assert len(CLASSES) == 231


@pytest.mark.parametrize(("momenta", "pure"), sample(list(product(CLASSES, (True, False))), 3), ids=str)
def test_every_class_to_h(momenta: tuple[int, ...], pure: bool) -> None:
    """By McMurchie-Davidson, uncontracted and contracted; the schedule with a block per quartet needs no tables."""
    for primitives in (1, 2):
        shells, centres = four_shells(momenta, pure, primitives)
        assert_block(block(backend("simt-quartet"), shells, centres), shells, centres)


@pytest.mark.parametrize("momenta", sample(CLASSES, 2), ids=lambda momenta: "".join("spdfgh"[l] for l in momenta))
@pytest.mark.usefixtures("few_graphs")
def test_every_class_to_h_by_the_choice_of_auto(momenta: tuple[int, ...]) -> None:
    """Head-Gordon and Pople's recurrences, McMurchie and Davidson's where these would lose digits."""
    for pure in (True, False):
        shells, centres = four_shells(momenta, pure, 2)
        assert_block(block(backend("cpu-table"), shells, centres), shells, centres)


SAMPLE = [
    (2, 1, 2, 2),
    (3, 1, 2, 0),
    (3, 3, 1, 1),
    (4, 0, 2, 1),
    (4, 2, 3, 0),
    (5, 0, 5, 0),
    (5, 1, 1, 1),
    (5, 2, 2, 0),
]


@pytest.mark.parametrize("pure", [True, False], ids=["pure", "cartesian"])
@pytest.mark.parametrize("momenta", SAMPLE, ids=str)
@on("simt-group", "simt-scratch", "cuda-group")
@pytest.mark.usefixtures("few_graphs")
def test_high_momenta_on_a_gpu(name: str, momenta: tuple[int, ...], pure: bool) -> None:
    """A sample of the classes beyond d: the threads of simt are slow."""
    shells, centres = four_shells(momenta, pure, 1)
    assert_block(block(backend(name), shells, centres), shells, centres)


@pytest.mark.parametrize("momenta", CLASSES, ids=lambda momenta: "".join("spdfgh"[l] for l in momenta))
@on("cuda-group")
@pytest.mark.usefixtures("few_graphs")
@pytest.mark.slow
def test_every_class_to_h_on_a_gpu(name: str, momenta: tuple[int, ...]) -> None:
    shells, centres = four_shells(momenta, True, 2)
    assert_block(block(backend(name), shells, centres), shells, centres)


@pytest.mark.parametrize("momenta", [(3, 2, 2, 1), (3, 3, 3, 3), (4, 2, 1, 0), (5, 0, 3, 1), (5, 4, 0, 0)])
@pytest.mark.usefixtures("few_graphs")
def test_high_momenta_by_mcmurchie_davidson(momenta: tuple[int, ...]) -> None:
    shells, centres = four_shells(momenta, True, 2)
    assert_block(block(backend("cpu-table"), shells, centres, "md"), shells, centres)


@st.composite
def quartets(draw: st.DrawFn) -> tuple[list[Shell], Array]:
    """Draw four shells up to d with random exponents and nearby or equal centres."""
    pure = draw(st.booleans())
    shells = []
    for _ in range(4):
        count = draw(st.integers(1, 2))
        exponents = [10.0 ** draw(st.floats(-1.0, 1.0)) for _ in range(count)]
        assume(len(set(exponents)) == count)
        coefficients = np.array([[draw(st.floats(0.2, 1.0))] for _ in range(count)])
        shells.append(Shell.from_table(0, draw(st.integers(0, 2)), np.array(exponents), coefficients, pure))
    numbers = st.floats(-2.0, 2.0, allow_subnormal=False)
    centres = np.array([[draw(numbers) for _ in range(3)] for _ in range(4)])
    for i in range(1, 4):
        if draw(st.booleans()):
            centres[i] = centres[draw(st.integers(0, i - 1))]
    return shells, centres


@pytest.mark.parametrize("algorithm", ["md", "auto"])
@settings(max_examples=50)
@given(case=quartets())
def test_random_shells(algorithm: str, case: tuple[list[Shell], Array]) -> None:
    shells, centres = case
    assert_block(block(backend("cpu-table"), shells, centres, algorithm), shells, centres)


EIGHTFOLD = [(1, 0, 2, 3), (0, 1, 3, 2), (2, 3, 0, 1), (1, 0, 3, 2), (3, 2, 1, 0), (2, 3, 1, 0), (3, 2, 0, 1)]


@settings(max_examples=25)
@given(quartets(), st.sampled_from(EIGHTFOLD), st.tuples(*[st.floats(-5.0, 5.0)] * 3))
def test_permutations_and_translation_of_random_shells(
    case: tuple[list[Shell], Array], permutation: tuple[int, ...], shift: tuple[float, float, float]
) -> None:
    """Exchanging bra and ket gives another class, computed by other parts of a kernel."""
    shells, centres = case
    found = block(backend("cpu-table"), shells, centres, "md")
    moved = centres[list(permutation)] + np.array(shift)
    other = block(backend("cpu-table"), [shells[i] for i in permutation], moved, "md")
    scale = max(np.abs(found).max(), CANCELLATION / INTEGRAL_REL * block_scale("4c", shells, centres))
    # A translation rounds the coordinates themselves.
    assert np.abs(found.transpose(permutation) - other).max() <= 2 * INTEGRAL_REL * scale


@pytest.mark.parametrize("algorithm", ["hgp", "md"])
@pytest.mark.parametrize("momenta", [(0, 0, 0, 0), (1, 1, 1, 0), (2, 1, 2, 1)])
def test_the_cuda_text_compiles(momenta: tuple[int, int, int, int], algorithm: str) -> None:
    source = describe("4c", momenta, algorithm, "cuda", "thread").source
    assert compile_nvrtc(source.text, "sm_90")[0][:4] == b"\x7fELF"


def test_symmetries_and_translation() -> None:
    basis, _ = bundle(Case("pure", "contracted", l_max=2))
    device = backend("cpu-table")
    eri = ours(device, basis)
    scale = np.abs(eri).max()
    for permutation in ((1, 0, 2, 3), (0, 1, 3, 2), (2, 3, 0, 1)):
        assert np.abs(eri - eri.transpose(permutation)).max() <= SYMMETRY_REL * scale
    moved = Basis.from_shells(basis.shells, basis.R_ax + np.array([3.0, -2.0, 1.0]))
    assert np.abs(ours(device, moved) - eri).max() <= INTEGRAL_REL * scale


def test_packed_and_square_agree() -> None:
    basis, _ = bundle(Case("pure", "contracted", l_max=1))
    square = integrals.eri_4c(basis, backend="cpu")
    packed = integrals.eri_4c(basis, packed=True, backend="cpu")
    p, q = np.tril_indices(basis.nbf)
    np.testing.assert_allclose(square[p, q][:, p, q], packed, rtol=0, atol=1e-15 * np.abs(packed).max())


def test_too_large_a_result_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    basis, _ = bundle(Case(l_max=1))
    monkeypatch.setattr(CpuBackend, "memory", lambda self: (1000, 2000))
    with pytest.raises(
        InputError, match=r"\(pq\|rs\) of 8 functions: .* needed, .* left: use packed=True, which needs"
    ):
        integrals.eri_4c(basis, backend="cpu")


def test_max_memory() -> None:
    basis, _ = bundle(Case(l_max=1))
    packed, full = 8 * (8 * 9 // 2) ** 2, 8 * 8**4 + 8 * 64 * 36
    assert integrals.eri_4c(basis, packed=True, backend="cpu", max_memory=packed).nbytes == packed
    with pytest.raises(InputError, match=r"raise max_memory$"):
        integrals.eri_4c(basis, packed=True, backend="cpu", max_memory=packed - 1)
    assert integrals.eri_4c(basis, backend="cpu", max_memory=full).shape == (8, 8, 8, 8)
    with pytest.raises(InputError, match="packed=True"):
        integrals.eri_4c(basis, backend="cpu", max_memory=full - 1)
    with pytest.raises(InputError, match="positive"):
        integrals.eri_4c(basis, backend="cpu", max_memory=-1)
