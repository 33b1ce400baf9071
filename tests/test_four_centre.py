"""(pq|rs): against libcint (the reference where there is no PySCF), by both algorithms, on every backend."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from bundle import HAS_PYSCF, Case, backend, bundle, on
from cuanto import integrals
from cuanto.backends import reference
from cuanto.backends.base import Backend
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.basis import Basis, Shell
from cuanto.errors import InputError
from cuanto.integrals.batches import BraBatch
from cuanto.integrals.engine import Engine
from cuanto.integrals.pairs import RowMap, pair_batches, pair_kets
from cuanto.integrals.segments import segments
from cuanto.kernels.describe import describe
from oracle import Array, _libcint_arrays, reference_block
from tolerances import INTEGRAL_ABS, INTEGRAL_REL, SYMMETRY_REL

SMALL = [Case("pure", kind, l_max=1) for kind in ("primitive", "contracted")]
GENERAL = Case("pure", "general", l_max=1)
D_SHELLS = [Case(form, kind, l_max=2) for form in ("pure", "cartesian") for kind in ("primitive", "contracted")]
TIGHT = [Case("pure", "contracted", geometry, "mixed", l_max=1) for geometry in ("near", "coincident", "distant")]


def ours(device: Backend | None, basis: Basis, algorithm: str = "auto") -> Array:
    assert device is not None
    result: Array = device.to_host(integrals.eri_4c(basis, algorithm=algorithm, backend=device, threshold=0.0))
    return result


@cache
def expected(case: Case) -> tuple[Basis, Array]:
    basis, _ = bundle(case)
    if not HAS_PYSCF:  # a GPU node: the table kernel, which the CPU tests hold to libcint
        return basis, ours(CpuBackend(schedule="table"), basis)
    from pyscf import gto

    atm, bas, env = _libcint_arrays(basis.shells, [basis.R_ax[shell.atom] for shell in basis.shells])
    kind = "sph" if case.form == "pure" else "cart"
    values: Array = gto.moleintor.getints(f"int2e_{kind}", atm, bas, env)
    return basis, values


def assert_blocks(got: Array, exact: Array, basis: Basis) -> None:
    """Every block of four shells within 1e-12 of its largest element, or of the rounding of its Schwarz bound."""
    starts = np.asarray(basis.offsets)
    error, scale = np.abs(got - exact), np.abs(exact)
    for axis in range(4):
        error, scale = (np.maximum.reduceat(x, starts, axis=axis) for x in (error, scale))
    diagonal = np.sqrt(np.einsum("pqpq->pq", scale))
    allowed = INTEGRAL_REL * scale + INTEGRAL_ABS * np.einsum("pq,rs->pqrs", diagonal, diagonal)
    assert (error <= allowed).all(), f"{(error / allowed).max():.2g} times the tolerance"


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
    """libcint loses digits here: the reference judges."""
    basis, _ = bundle(case)
    assert_blocks(ours(backend(name), basis, "md"), reference.eri_4c_tensor(basis), basis)


@pytest.mark.parametrize(
    "momenta", [(3, 2, 2, 1), (3, 3, 3, 3), (4, 2, 1, 0), (5, 0, 3, 1), (5, 4, 0, 0), (4, 1, 4, 1)]
)
@pytest.mark.parametrize("algorithm", ["hgp", "md"])
def test_high_momenta_against_the_reference(momenta: tuple[int, int, int, int], algorithm: str) -> None:
    """One block of a basis of four shells; the other blocks are classes of their own."""
    rng = np.random.default_rng(sum(momenta))
    basis, _ = bundle(Case(l_max=5))
    shells = [next(shell for shell in basis.shells if shell.l == l) for l in momenta]
    centres = rng.normal(size=(4, 3))
    got = block(shells, centres, algorithm)
    exact = reference_block("4c", shells, centres)
    assert np.abs(got - exact).max() <= INTEGRAL_REL * np.abs(exact).max() + INTEGRAL_ABS


def block(shells: list[Shell], centres: Array, algorithm: str) -> Array:
    """(ab|cd) of four shells, without the other blocks of their basis."""

    def pair(i: int, j: int) -> tuple[list[BraBatch], int, int]:
        basis = Basis.from_shells([replace(shells[i], atom=0), replace(shells[j], atom=1)], centres[[i, j]])
        n = basis.nbf
        classes = segments(basis)
        same = len(classes) == 1
        high, low = (classes[-1], classes[0])
        batches = pair_batches(high, low, same, RowMap(n, packed=False), 0.0)
        return batches, n, shells[i].nbf

    (bras, n, na), (kets, m, nc) = pair(0, 1), pair(2, 3)
    device = CpuBackend(schedule="table")
    out = np.zeros((n * n, m * m))
    Engine(device, out, row_stride=m * m).run("coulomb", bras, [pair_kets(k) for k in kets], algorithm)
    full = out.reshape(n, n, m, m)
    # Rows and columns are those of the lower triangle.
    return full[na:, :na, nc:, :nc].transpose(1, 0, 3, 2)


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
    with pytest.raises(InputError, match="GiB"):
        integrals.eri_4c(basis, backend="cpu")
