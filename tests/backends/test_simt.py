"""The simt backend: barriers, shared memory and warp functions work, and their misuse is reported."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.backends.simt.arrays import DeviceArray
from cuanto.backends.simt.backend import SimtBackend
from cuanto.backends.simt.kernel import LaunchError, Order, SimtKernel, compile_simt
from cuanto.errors import CompilerError
from cuanto.kernels.build import programs_of
from cuanto.kernels.spec import Shells
from stored_blocks import assert_stored, ours

ORDERS: tuple[Order, ...] = ("forward", "reverse")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("simt")


def build(text: str, folder: Path, entry: str = "kernel") -> SimtKernel:
    """Compile a text for simt, after checking that NVRTC accepts it too."""
    compile_nvrtc(text, "compute_90")
    return compile_simt(text, entry, folder)


def launch(
    kernel: SimtKernel, grid: tuple[int, ...], block: tuple[int, ...], shared: int, args: Sequence[object], *how: Order
) -> None:
    """Launch on device arrays that share memory with the given ones."""
    values = [DeviceArray(given) if isinstance(given, np.ndarray) else given for given in args]
    kernel.launch(grid, block, shared, values, *how)


INDICES = """
extern "C" __global__ void kernel(int* out, int stride) {
    const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const int threads = blockDim.x * blockDim.y * blockDim.z;
    int* mine = out + (block * threads + thread) * stride;
    mine[0] = threadIdx.x; mine[1] = threadIdx.y; mine[2] = threadIdx.z;
    mine[3] = blockIdx.x; mine[4] = blockIdx.y; mine[5] = blockIdx.z;
}
"""


def test_indices_of_grid_and_block(folder: Path) -> None:
    grid, block = (3, 2, 2), (4, 3, 2)
    out = np.full((*grid[::-1], *block[::-1], 6), -1, dtype=np.int32)
    launch(build(INDICES, folder), grid, block, 0, [out, 6])
    bz, by, bx, tz, ty, tx = np.indices(out.shape[:-1])
    np.testing.assert_array_equal(out, np.stack([tx, ty, tz, bx, by, bz], axis=-1))


REDUCTION = """
__constant__ double scale[2] = {1.0, 0.5};
extern "C" __global__ void __launch_bounds__(128)
kernel(const double* __restrict__ x, double* __restrict__ total, double* blocks, long long n) {
    extern __shared__ double sums[];
    __shared__ double first[2];
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    sums[threadIdx.x] = i < n ? __ldg(x + i) * scale[1] : 0.0;
    if (threadIdx.x < 2) first[threadIdx.x] = scale[0] + threadIdx.x;
    for (int width = blockDim.x / 2; width > 0; width /= 2) {
        __syncthreads();
        if (threadIdx.x < width) sums[threadIdx.x] += sums[threadIdx.x + width];
    }
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1) blocks[blockIdx.x] = first[0] * sums[0] + first[1];
    if (threadIdx.x == 0) atomicAdd(total, sums[0]);
}
"""


@pytest.mark.parametrize("order", ORDERS)
def test_tree_reduction_in_shared_memory(folder: Path, order: Order) -> None:
    x = np.arange(1000.0)
    total, blocks = np.zeros(1), np.zeros(8)
    launch(build(REDUCTION, folder), (8,), (128,), 128 * 8, [x, total, blocks, np.int64(1000)], order)
    assert total[0] == 0.5 * x.sum()
    sums = np.pad(x, (0, 24)).reshape(8, 128).sum(axis=1)
    np.testing.assert_array_equal(blocks, 0.5 * sums + 2)


def test_without_a_barrier_results_depend_on_the_order_of_threads(folder: Path) -> None:
    text = """
    extern "C" __global__ void kernel(int* out) {
        __shared__ int value[64];
        value[threadIdx.x] = 0;
        __syncthreads();
        value[threadIdx.x] = threadIdx.x;
        out[threadIdx.x] = value[(threadIdx.x + 63) % 64];
    }
    """
    kernel = build(text, folder)
    results = []
    for order in ORDERS:
        out = np.zeros(64, dtype=np.int32)
        launch(kernel, (1,), (64,), 0, [out], order)
        results.append(out)
    assert not np.array_equal(*results)


WARP = """
extern "C" __global__ void kernel(const double* x, double* out, unsigned* votes, int rounds) {
    const unsigned all = 0xffffffffu;
    const int i = threadIdx.x, lane = i % 32, n = blockDim.x;
    double v = x[i];
    for (int r = 0; r < rounds; ++r) v = __shfl_sync(all, v, lane + 1);
    out[i] = v;
    out[n + i] = __shfl_down_sync(all, x[i], 5);
    out[2 * n + i] = __shfl_up_sync(all, x[i], 3);
    out[3 * n + i] = __shfl_xor_sync(all, x[i], 6);
    out[4 * n + i] = __shfl_down_sync(all, x[i], 2, 8);
    out[5 * n + i] = __shfl_sync(all, (float)lane, 3, 16);
    __syncwarp();
    if (lane < 16) {
        out[6 * n + i] = __shfl_xor_sync(0x0000ffffu, i, 1);
        __syncwarp(0x0000ffffu);
    } else {
        out[6 * n + i] = -1;
    }
    __syncthreads();
    votes[i] = __ballot_sync(all, lane % 3 == 0);
    votes[n + i] = __any_sync(all, lane == 7) + 2 * __all_sync(all, lane < 32);
    votes[n + i] += 4 * __all_sync(all, lane < 31);
}
"""


@pytest.mark.parametrize("order", ORDERS)
def test_warp_functions(folder: Path, order: Order) -> None:
    n = 96
    x = np.random.default_rng(3).normal(size=n)
    out, votes = np.zeros((7, n)), np.zeros((2, n), dtype=np.uint32)
    launch(build(WARP, folder), (1,), (n,), 0, [x, out, votes, 7], order)
    lane, base = np.arange(n) % 32, np.arange(n) // 32 * 32
    np.testing.assert_array_equal(out[0], x[base + (lane + 7) % 32])
    np.testing.assert_array_equal(out[1], x[base + np.where(lane + 5 < 32, lane + 5, lane)])
    np.testing.assert_array_equal(out[2], x[base + np.where(lane >= 3, lane - 3, lane)])
    np.testing.assert_array_equal(out[3], x[base + (lane ^ 6)])
    np.testing.assert_array_equal(out[4], x[base + np.where(lane % 8 + 2 < 8, lane + 2, lane)])
    np.testing.assert_array_equal(out[5], lane // 16 * 16 + 3)
    np.testing.assert_array_equal(out[6], np.where(lane < 16, np.arange(n) ^ 1, -1))
    np.testing.assert_array_equal(votes[0], sum(1 << k for k in range(0, 32, 3)))
    np.testing.assert_array_equal(votes[1], 3)


def test_functions_of_the_device(folder: Path) -> None:
    text = """
    extern "C" __global__ void kernel(double* d, float* f, int* k) {
        d[0] = fma(3.0, 4.0, 5.0); d[1] = rsqrt(16.0); d[2] = max(2.0, 3.0); d[3] = exp(0.0) + fabs(-2.0);
        d[4] = __hiloint2double(__double2hiint(d[0]), __double2loint(d[0]));
        d[5] = make_double2(1.5, 2.5).y;
        f[0] = fma(2.0f, 3.0f, 1.0f); f[1] = rsqrtf(4.0f); f[2] = sqrt(9.0f);
        f[3] = __int_as_float(__float_as_int(7.5f));
        k[0] = min(4, 2); k[1] = __popc(255u); k[2] = __clz(1); k[3] = __ffs(8);
        k[4] = atomicAdd(k + 5, 3); k[6] = atomicMax(k + 7, 9); k[8] = atomicCAS(k + 9, 0, 11);
    }
    """
    d, f, k = np.zeros(6), np.zeros(4, dtype=np.float32), np.zeros(10, dtype=np.int32)
    launch(build(text, folder), (1,), (1,), 0, [d, f, k])
    np.testing.assert_array_equal(d, [17, 0.25, 3, 3, 17, 2.5])
    np.testing.assert_array_equal(f, [7, 0.5, 3, 7.5])
    np.testing.assert_array_equal(k, [2, 8, 31, 4, 0, 3, 0, 9, 0, 11])


def test_deep_stacks_and_the_largest_block(folder: Path) -> None:
    text = """
    extern "C" __global__ void kernel(double* out) {
        volatile double mine[16384];  // 128 KiB
        for (int i = 0; i < 16384; ++i) mine[i] = threadIdx.x;
        __syncthreads();
        out[threadIdx.x] = mine[16383] + mine[0];
    }
    """
    out = np.zeros(1024)
    launch(build(text, folder), (1,), (1024,), 0, [out])
    np.testing.assert_array_equal(out, 2 * np.arange(1024))


def test_dynamic_shared_memory_starts_as_nan(folder: Path) -> None:
    text = """
    extern "C" __global__ void kernel(float* out) {
        extern __shared__ __align__(16) float memory[];
        out[blockIdx.x] = memory[threadIdx.x];
        memory[threadIdx.x] = 1.0f;
    }
    """
    out = np.zeros(3, dtype=np.float32)
    launch(build(text, folder), (3,), (1,), 16, [out])
    assert np.isnan(out).all()


# ---- errors that are reported --------------------------------------------------------------------------------

DIVERGENCE = {
    "has exited": "if (threadIdx.x == 5) return;\n__syncthreads();",
    r"waits at __syncthreads\(\) in line 3": "if (threadIdx.x < 5) __syncthreads();\nelse __syncthreads();",
    r"__syncwarp\(\) in line 2, but thread \(5,0,0\) waits at __syncthreads\(\)": (
        "if (threadIdx.x != 5) __syncwarp();\n__syncthreads();"
    ),
    "reads from a lane that takes no part, lane 9": ("if (threadIdx.x < 8) out[0] = __shfl_sync(0xffu, 1.0, 9);"),
    "is not in its own mask, lane 0": "if (threadIdx.x < 2) out[0] = __shfl_sync(2u, 1.0, 1);",
}


@pytest.mark.parametrize("expected", DIVERGENCE)
def test_divergence_is_an_error_and_the_kernel_survives_it(folder: Path, expected: str) -> None:
    head = 'extern "C" __global__ void kernel(double* out, int wrong) { if (wrong) {'
    tail = "} __syncthreads(); out[threadIdx.x] = threadIdx.x; }"
    kernel = build(f"{head}\n{DIVERGENCE[expected]}\n{tail}", folder)
    out = np.zeros(64)
    for _ in range(2):
        with pytest.raises(LaunchError, match=rf"kernel: block \(0,0,0\).*({expected})"):
            launch(kernel, (2,), (64,), 0, [out, 1])
        launch(kernel, (2,), (64,), 0, [out, 0])
        np.testing.assert_array_equal(out, np.arange(64))


def test_a_lane_beyond_the_block_cannot_be_read(folder: Path) -> None:
    text = """
    extern "C" __global__ void kernel(double* out) {
        out[threadIdx.x] = __shfl_down_sync(0xffffffffu, out[threadIdx.x], 16);
    }
    """
    with pytest.raises(LaunchError, match="reads from a lane that takes no part"):
        launch(build(text, folder), (1,), (48,), 0, [np.zeros(48)])


def test_writing_beyond_shared_memory_is_an_error(folder: Path) -> None:
    text = """
    extern "C" __global__ void kernel(int wrong) {
        extern __shared__ double memory[];
        memory[threadIdx.x + wrong] = 1.0;
    }
    """
    kernel = build(text, folder)
    launch(kernel, (1,), (8,), 64, [0])
    with pytest.raises(LaunchError, match="wrote byte 64 of dynamic shared memory of 64 bytes"):
        launch(kernel, (1,), (8,), 64, [2])


# ---- arguments, compilation --------------------------------------------------------------------------------

TYPES = """
extern "C" __global__ void
kernel(double* out, const float* in, int i, long long j, float s, double t, const void* any) {
    out[0] = t + in[0] + i + j + s + (any ? 100 : 0);
}
"""


def test_arguments_by_value_and_by_pointer(folder: Path) -> None:
    kernel = build(TYPES, folder)
    out, given = np.zeros(1), np.ones(1, dtype=np.float32)
    given.setflags(write=False)
    scalars = [np.int32(-2), np.int64(2**40), np.float32(0.5), np.float64(0.25)]
    launch(kernel, (1,), (1,), 0, [out, given, *scalars, None])
    assert out[0] == 1 - 2 + 2**40 + 0.75
    launch(kernel, (1,), (1,), 0, [out, given, -2, 3, 0.5, 1, np.zeros(1, dtype=np.int8)])
    assert out[0] == 1 - 2 + 3 + 0.5 + 1 + 100


@pytest.mark.parametrize(
    ("position", "wrong", "message"),
    [
        (0, np.zeros(1, dtype=np.float32), "must be an array of float64, an array of float32 was given"),
        (0, np.float64(1), "must be an array of float64, float64 np.float64"),
        (0, np.zeros((4, 4))[:, 1], "must be contiguous"),
        (1, np.zeros(1, dtype=np.int32), "must be an array of float32"),
        (2, np.int64(1), "must be one int32"),
        (2, 1.5, "must be one int32, float 1.5 was given"),
        (5, np.float32(1), "must be one float64"),
        (5, "1", "must be one float64"),
    ],
)
def test_wrong_arguments_are_refused(folder: Path, position: int, wrong: object, message: str) -> None:
    args: list[object] = [np.zeros(1), np.zeros(1, dtype=np.float32), 1, 1, 1.0, 1.0, None]
    args[position] = wrong
    with pytest.raises(LaunchError, match=rf"kernel: argument {position} {message}"):
        launch(build(TYPES, folder), (1,), (1,), 0, args)


def test_kernels_take_no_host_arrays(folder: Path) -> None:
    with pytest.raises(LaunchError, match="argument 0 must be an array of int32, a host array of int32 was given"):
        build(INDICES, folder).launch((1,), (1,), 0, [np.zeros(6, dtype=np.int32), 6])


def test_read_only_arrays_are_not_written(folder: Path) -> None:
    out = np.zeros((1, 1), dtype=np.int32)
    out.setflags(write=False)
    with pytest.raises(LaunchError, match="writeable"):
        launch(build(INDICES, folder), (1,), (1,), 0, [out, 6])


@pytest.mark.parametrize(
    ("grid", "block", "shared", "args", "message"),
    [
        ((1,), (1025,), 0, 2, "1024 is the limit"),
        ((0,), (1,), 0, 2, "positive numbers"),
        ((1, 1, 1, 1), (1,), 0, 2, "one to three"),
        ((1,), (1,), 300_000, 2, "bytes of shared memory"),
        ((1,), (1,), 0, 1, "takes 2 arguments, 1 were given"),
    ],
)
def test_impossible_launches(
    folder: Path, grid: tuple[int, ...], block: tuple[int, ...], shared: int, args: int, message: str
) -> None:
    given = [np.zeros(6, dtype=np.int32), 6][:args]
    with pytest.raises(LaunchError, match=message):
        launch(build(INDICES, folder), grid, block, shared, given)


def test_compile_errors_show_the_log_with_the_line_of_the_text(folder: Path) -> None:
    with pytest.raises(CompilerError, match=r"kernel:2:.*\n?.*undeclared_name"):
        compile_simt('extern "C" __global__ void kernel() {\n undeclared_name = 1; }', "kernel", folder)
    with pytest.raises(CompilerError, match="void elsewhere"):
        compile_simt(INDICES, "elsewhere", folder)


def test_the_cache_is_used_and_keeps_no_drafts(tmp_path: Path) -> None:
    compile_simt(INDICES, "kernel", tmp_path / "new")
    (library,) = (tmp_path / "new").iterdir()
    changed = library.stat().st_mtime_ns
    compile_simt(INDICES, "kernel", tmp_path / "new")
    assert [f.stat().st_mtime_ns for f in (tmp_path / "new").iterdir()] == [changed]
    with pytest.raises(CompilerError):
        compile_simt('extern "C" __global__ void kernel() { wrong }', "kernel", tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == [library]


def test_launches_from_several_threads(folder: Path) -> None:
    kernel = build(REDUCTION, folder)
    totals = [np.zeros(1) for _ in range(4)]

    def work(total: np.ndarray) -> None:
        for _ in range(5):
            launch(kernel, (8,), (128,), 1024, [np.ones(1024), total, np.zeros(8), np.int64(1024)])

    workers = [threading.Thread(target=work, args=(total,)) for total in totals]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [total[0] for total in totals] == [5 * 512.0] * 4


# ---- device memory -----------------------------------------------------------------------------------------

MIXED = {
    "operator": lambda xp, there, here: there + here,
    "reflected operator": lambda xp, there, here: here * there,
    "in place": lambda xp, there, here: there.__iadd__(here),
    "host in place": lambda xp, there, here: here.__iadd__(there),
    "product": lambda xp, there, here: there @ here,
    "function": lambda xp, there, here: xp.stack([there, here]),
    "output": lambda xp, there, here: xp.add(there, there, out=here),
    "assignment": lambda xp, there, here: there.__setitem__(..., here),
    "host assignment": lambda xp, there, here: here.__setitem__(..., there),
    "index": lambda xp, there, here: there[here.astype(int)],
    "NumPy's function": lambda xp, there, here: np.linalg.eigh(there),
    "conversion": lambda xp, there, here: np.asarray(there),
    "list": lambda xp, there, here: np.array([there, there]),
}


@pytest.mark.parametrize("how", MIXED)
def test_host_and_device_arrays_do_not_mix(how: str) -> None:
    backend, here = SimtBackend(), np.eye(2)
    there = backend.to_device(here)
    with pytest.raises(TypeError, match=r"host array|device array"):
        MIXED[how](backend.xp, there, here)
    np.testing.assert_array_equal(here, np.eye(2))


def test_copies_between_host_and_device() -> None:
    backend, here = SimtBackend(), np.arange(6.0).reshape(2, 3)
    given = backend.upload({"whole": here, "transposed": here.T})
    there, also = given["whole"], backend.xp.asarray(here)
    here[...] = -1.0
    assert backend.to_host(there).tolist() == backend.to_host(also).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert given["transposed"].flags.c_contiguous and given["transposed"].shape == (3, 2)
    back = backend.to_host(there)
    back[...] = -1.0
    assert float(there[1, 2]) == 5.0
    assert backend.to_host(here) is backend.xp.asnumpy(here) is here
    assert backend.zeros((2,), np.int32).dtype == np.int32


def test_device_arrays_compute_like_numpys() -> None:
    backend, here = SimtBackend(), np.arange(6.0).reshape(2, 3)
    xp, there = backend.xp, backend.to_device(here)
    pairs = [
        (1.0 + there.T @ there, here.T @ here + 1.0),
        (xp.concatenate([there, 2 * there]), np.concatenate([here, 2 * here])),
        (abs(-there).max(axis=1), here.max(axis=1)),
        (np.sqrt(there)[there > 2.0], np.sqrt(here)[here > 2.0]),
        (there[xp.asarray([1, 0])], here[::-1]),
        (xp.linalg.eigh(there @ there.T)[0], np.linalg.eigh(here @ here.T)[0]),
        (2.0 * there.sum(), 2.0 * here.sum()),
    ]
    for found, expected in pairs:
        assert isinstance(found, xp.ndarray)
        np.testing.assert_array_equal(backend.to_host(found), expected)
    assert int(there[1, 0]) == 3 and there[1, 1].item() == 4.0 and bool(there[0, 0] == 0.0)
    assert [len(row) for row in there] == [3, 3] and "DeviceArray" in repr(there)


@pytest.mark.parametrize(
    "operation",
    [
        lambda A: np.float64(2.0) * A,
        lambda A: A * np.float64(2.0),
        lambda A: A / 2,
        lambda A: A + 0.5,
        lambda A: A**2,
    ],
)
def test_numbers_for_which_cupy_imports_scipy_are_refused(operation: Callable[[Any], Any]) -> None:
    """It would take 0.3 s in every process; changes in place and Python numbers on the left do not need it."""
    there = SimtBackend().to_device(np.ones(2))
    there *= 3
    assert (2.0 * there).get().tolist() == [6.0, 6.0]
    with pytest.raises(TypeError, match="imports SciPy"):
        operation(there)


def test_views_share_device_memory() -> None:
    backend = SimtBackend()
    there = backend.zeros((2, 2), np.float64)
    there.reshape(-1)[::3] += 1.0
    one = there[0, 1]
    one += 5.0
    backend.xp.add(there[1], 2.0, out=there[1])
    assert backend.to_host(there).tolist() == [[1, 5], [2, 3]]
    assert there[1].data.ptr == there.data.ptr + 16


def test_uninitialised_memory_is_nan() -> None:
    xp = SimtBackend.xp
    result = xp.empty((2, 3)), xp.empty_like(xp.ones(4, dtype=np.float32))
    assert all(bool(xp.isnan(array).all()) for array in result)


def test_a_matrix_without_a_factor_gives_nan() -> None:
    """As on a GPU: NaN instead of an error."""
    xp = SimtBackend.xp
    assert bool(xp.isnan(xp.linalg.cholesky(-xp.eye(2))).all())
    assert SimtBackend().linalg.inverse_factor(-xp.eye(2)) == (None, -1.0)


def test_programs_beyond_sixteen_bits() -> None:
    """Cartesian (hh|i) by McMurchie and Davidson: places of its values do not fit into 16 bits."""
    bra, ket = Shells((5, 5), (False, False)), Shells((6,), (False,))
    primitive, _, _ = programs_of("coulomb", bra, ket, "md", levels=True)
    assert primitive.slots > 2**16 and primitive.table.max() > 2**16
    got = ours(SimtBackend("group"), "3c", "near", "cartesian", "md", [(5, 5, 6)])
    assert_stored(got, "3c", "near", "cartesian", [(5, 5, 6)])
