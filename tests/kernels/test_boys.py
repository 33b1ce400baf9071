"""The kernels' Boys function against mpmath, and the vocabulary it is written in: CPU, CUDA text, NVRTC."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from cuanto.backends.cpu.compiler import find_compiler, native_flag
from cuanto.backends.cuda.nvrtc import compile_nvrtc, nvrtc_version
from cuanto.backends.simt.arrays import DeviceArray
from cuanto.backends.simt.kernel import compile_simt
from cuanto.errors import CompilerError
from cuanto.kernels.recurrences import boys
from tolerances import BOYS_REL

Array = NDArray[np.floating]
Evaluate = Callable[[int, Array], Array]

HIGHEST = 32
ORDERS = (0, 1, 2, 3, 4, 5, 8, 13, 20, 26, 30, 32)
FLAGS = ["-std=c++17", "-O2", "-ffp-contract=fast", "-fPIC", "-shared", "-Wno-psabi"]
FLOAT_PER_ORDER = 6e-8
"""Relative tolerance in single precision, divided by m + 2: rounding of T alone changes F_m by m + 1/2 units."""


def template(name: str) -> str:
    return files("cuanto.kernels").joinpath("templates", name).read_text()


def real_type(real: str) -> type[np.floating]:
    return np.float64 if real == "double" else np.float32


def table(real: str) -> Array:
    return boys.boys_table() if real == "double" else boys.table_float()


@lru_cache(maxsize=1)
def arguments() -> NDArray[np.float64]:
    """Zero, denormals, grid points and mid-points, both sides of T_MAX, random, up to 1e4."""
    rng = np.random.default_rng(20)
    edge = np.nextafter(boys.T_MAX, [0.0, 100.0])
    halves = np.arange(2 * boys.T_MAX * boys.ROWS_PER_UNIT + 1) * (boys.STEP / 2)
    parts = (
        [0.0, 5e-324, 1e-310, 1e-300, 1e-20, 1e-8],
        halves[rng.integers(0, len(halves), 60)],
        [boys.T_MAX, *edge, boys.T_MAX - 1e-3, boys.T_MAX + 1e-3, boys.T_MAX - boys.STEP / 2],
        rng.uniform(0, boys.T_MAX, 160),
        rng.uniform(boys.T_MAX, 120, 80),
        10 ** rng.uniform(-6, 4, 60),
        [700.0, 708.0, 709.0, 746.0, 9999.0, 1e4],
    )
    T = np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])
    return np.concatenate([T, np.zeros(-len(T) % 16)])


def exact(T: float) -> list[mpmath.mpf]:
    """F_0..F_HIGHEST from the incomplete gamma function, then downward in 60 digits."""
    with mpmath.workdps(60):
        t = mpmath.mpf(T)
        half = mpmath.mpf(HIGHEST) + mpmath.mpf(1) / 2
        if t < mpmath.mpf(10) ** -100:
            return [mpmath.mpf(1) / (2 * m + 1) for m in range(HIGHEST + 1)]
        values = [mpmath.gammainc(half, 0, t) / (2 * t**half)]
        for m in range(HIGHEST - 1, -1, -1):
            values.append((2 * t * values[-1] + mpmath.exp(-t)) / (2 * m + 1))
        return values[::-1]


@lru_cache(maxsize=2)
def reference(real: str) -> NDArray[np.float64]:
    """Exact values at the arguments, rounded to the type that the kernel reads."""
    T = arguments().astype(real_type(real)).astype(np.float64)
    return np.array([[float(value) for value in exact(t)] for t in T]).T


# ---- the function on every target --------------------------------------------------------------------------

CPU_MAIN = """
template <int M> static void batch(long n, const REAL* T, const REAL* table, REAL* out) {
    for (long i = 0; i < n; i += LANES) {
        VEC F[M + 1];
        boys<M>(vload(T + i), table, F);
        for (int m = 0; m <= M; ++m) vstore(out + m * n + i, F[m]);
    }
}
extern "C" void fixed(int M, long n, const REAL* T, const REAL* table, REAL* out) {
    switch (M) { CASES }
}
extern "C" void any(int M, long n, const REAL* T, const REAL* table, REAL* out) {
    for (long i = 0; i < n; i += LANES) {
        VEC F[BOYS_MAX_ORDER + 1];
        boys_any(M, vload(T + i), table, F);
        for (int m = 0; m <= M; ++m) vstore(out + m * n + i, F[m]);
    }
}
extern "C" void words(long n, const REAL* x, REAL* out) {
    for (long i = 0; i < n; i += LANES) {
        const VEC v = vload(x + i);
        vstore(out + i, vexp(v));
        vstore(out + 1 * n + i, vsqrt(-v));
        vstore(out + 2 * n + i, vrcp(v));
        vstore(out + 3 * n + i, vfma(v, v, vfma(REAL(2), v, vset(REAL(1)))));
        vstore(out + 4 * n + i, vround(v));
        vstore(out + 5 * n + i, vselect(v < REAL(-10), vset(REAL(-0.0)), v));
        vstore(out + 6 * n + i, vset(REAL(vany(v < REAL(-100)))));
        vstore(out + 9 * n + i, vrsqrt(-v));
        for (int j = 0; j < LANES; ++j) {
            out[7 * n + i + j] = vexp(x[i + j]);
            out[10 * n + i + j] = vrsqrt(-x[i + j]);
            out[8 * n + i + j] = vsqrt(-x[i + j]) - vrcp(x[i + j]) + vfma(x[i + j], x[i + j], REAL(1));
        }
    }
}
"""
CUDA_MAIN = """
template <int M> FN void batch(long long n, const REAL* T, const REAL* table, REAL* out) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    VEC F[M + 1];
    boys<M>(vload(T + i), table, F);
    UNROLL for (int m = 0; m <= M; ++m) vstore(out + m * n + i, F[m]);
}
extern "C" __global__ void __launch_bounds__(64)
fixed(int M, long long n, const REAL* __restrict__ T, const REAL* __restrict__ table, REAL* out) {
    switch (M) { CASES }
}
extern "C" __global__ void
any(int M, long long n, const REAL* __restrict__ T, const REAL* __restrict__ table, REAL* out) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    VEC F[BOYS_MAX_ORDER + 1];
    boys_any(M, T[i], table, F);
    for (int m = 0; m <= M; ++m) out[m * n + i] = F[m];
}
"""


def kernel_text(target: str, defines: dict[str, object]) -> str:
    prelude, main = ("prelude_cpu.h", CPU_MAIN) if target == "cpu" else ("prelude_cuda.cuh", CUDA_MAIN)
    head = "".join(f"#define {name} {value}\n" for name, value in defines.items())
    cases = " ".join(f"case {M}: batch<{M}>(n, T, table, out); break;" for M in ORDERS)
    return head + template(prelude) + template("boys.h") + main.replace("CASES", cases)


def cpu_library(folder: Path, defines: dict[str, object], command: list[str], flags: list[str]) -> ctypes.CDLL:
    source, library = folder / "boys.cpp", folder / "boys.so"
    source.write_text(kernel_text("cpu", defines))
    done = subprocess.run(
        [*command, *FLAGS, *flags, "-o", str(library), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    return ctypes.CDLL(str(library))


def cpu_evaluate(library: ctypes.CDLL, entry: str, real: str) -> Evaluate:
    def evaluate(M: int, T: Array) -> Array:
        out = np.full((M + 1, len(T)), np.nan, dtype=T.dtype)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (T, table(real), out)]
        getattr(library, entry)(M, ctypes.c_long(len(T)), *pointers)
        return out

    return evaluate


def simt_evaluate(entry: str, real: str, folder: Path) -> Evaluate:
    kernel = compile_simt(kernel_text("cuda", {"REAL": real}), entry, folder)

    def evaluate(M: int, T: Array) -> Array:
        out = np.full((M + 1, len(T)), np.nan, dtype=T.dtype)
        arrays = [DeviceArray(array) for array in (T, table(real), out)]
        kernel.launch((-(-len(T) // 64),), (64,), 0, [M, len(T), *arrays])
        return out

    return evaluate


def check(evaluate: Evaluate, real: str) -> None:
    T = arguments().astype(real_type(real))
    normal = np.finfo(T.dtype).tiny
    for M in ORDERS:
        expected = reference(real)[: M + 1]
        bound = BOYS_REL if real == "double" else FLOAT_PER_ORDER * (M + 2)
        error = np.abs(evaluate(M, T) - expected)
        assert np.all(error <= np.where(expected > normal, bound * expected, normal)), M


CONFIGURATIONS = [
    ("double", 8, "native"),
    ("double", 4, "native"),
    ("double", 2, "native"),
    ("double", 4, "baseline"),
    ("float", 8, "native"),
    ("float", 16, "native"),
]


@pytest.mark.parametrize(("real", "lanes", "machine"), CONFIGURATIONS)
def test_cpu_vectors_agree_with_mpmath(tmp_path: Path, real: str, lanes: int, machine: str) -> None:
    flags = [native_flag()] if machine == "native" else []
    library = cpu_library(tmp_path, {"REAL": real, "LANES": lanes}, list(find_compiler().command), flags)
    check(cpu_evaluate(library, "fixed", real), real)
    check(cpu_evaluate(library, "any", real), real)


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["-march=native"], []])
def test_zig_agrees_with_mpmath(tmp_path: Path, flags: list[str]) -> None:
    command = [sys.executable, "-m", "ziglang", "c++", "-nostdlib++"]  # otherwise zig builds a C++ runtime first
    check(cpu_evaluate(cpu_library(tmp_path, {}, command, flags), "fixed", "double"), "double")


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("entry", ["fixed", "any"])
def test_cuda_text_agrees_with_mpmath(tmp_path: Path, entry: str, real: str) -> None:
    check(simt_evaluate(entry, real, tmp_path), real)


@pytest.mark.parametrize("real", ["double", "float"])
def test_not_a_number_stays_one(tmp_path: Path, real: str) -> None:
    """Lanes that pad a vector may hold anything: no table row is read for them, neighbours are untouched."""
    T = np.array([np.nan, 1.0, np.inf, 40.0] * 4, dtype=real_type(real))
    library = cpu_library(tmp_path, {"REAL": real}, list(find_compiler().command), [native_flag()])
    F = cpu_evaluate(library, "fixed", real)(3, T)
    assert np.isnan(F[:, 0]).all()
    assert np.all(F[:, 2] == 0)
    assert np.isfinite(F[:, [1, 3]]).all()


# ---- the vocabulary ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("real", "lanes", "machine"), CONFIGURATIONS)
def test_vocabulary(tmp_path: Path, real: str, lanes: int, machine: str) -> None:
    flags = [native_flag()] if machine == "native" else []
    library = cpu_library(tmp_path, {"REAL": real, "LANES": lanes}, list(find_compiler().command), flags)
    dtype = np.dtype(real_type(real))
    eps = float(np.finfo(dtype).eps)
    lowest = -708.0 if real == "double" else -87.0
    rng = np.random.default_rng(7)
    values = np.concatenate([rng.uniform(lowest, 0, 8000), [lowest, -1e-30, -1.0, -1e4], rng.uniform(-1, 0, 1004)])
    values = np.concatenate([values, np.full(-len(values) % 16, -2.0)])
    memory = np.empty(len(values) + 1, dtype=dtype)
    x = memory[1:]  # not aligned to a vector
    x[:] = values
    out = np.empty((11, len(x)), dtype=dtype)
    library.words(ctypes.c_long(len(x)), ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data))

    wide = x.astype(np.longdouble)
    kept = x >= lowest
    for row in (0, 7):
        assert np.all(np.abs(out[row] / np.exp(wide) - 1)[kept] < 1.8 * eps)
        assert np.all(out[row][~kept] == 0)
    np.testing.assert_array_equal(out[1], np.sqrt(-x))
    np.testing.assert_array_equal(out[2], 1 / x)
    np.testing.assert_allclose(out[3], ((wide + 1) ** 2).astype(dtype), rtol=4 * eps, atol=4 * eps)
    np.testing.assert_array_equal(out[4], np.rint(x))
    np.testing.assert_array_equal(out[5], np.where(x < -10, 0, x))
    assert np.all(np.signbit(out[5]))
    far = (x < -100).reshape(-1, lanes).any(axis=1)
    np.testing.assert_array_equal(out[6], np.repeat(far, lanes))
    for row in (9, 10):
        assert np.all(np.abs(out[row] * np.sqrt(-wide) - 1) < 1.5 * eps)
    np.testing.assert_allclose(out[8], (np.sqrt(-wide) - 1 / wide + wide**2 + 1).astype(dtype), rtol=4 * eps)


def test_fast_math_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.cpp").write_text(template("prelude_cpu.h"))
    command = [*find_compiler().command, "-ffast-math", "-fsyntax-only", str(tmp_path / "text.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "-ffast-math" in done.stderr


# ---- the table ---------------------------------------------------------------------------------------------


def test_table_is_correctly_rounded() -> None:
    values = boys.boys_table()
    assert values.shape == (boys.T_MAX * boys.ROWS_PER_UNIT + 1, boys.COLUMNS)
    assert not values.flags.writeable
    np.testing.assert_array_equal(values[0], 1 / (2 * np.arange(boys.COLUMNS) + 1))
    for i in (1, 2, 17, 100, 333, 575, 576):
        expected = [float(value) for value in exact(i * boys.STEP)]
        np.testing.assert_array_equal(values[i, : HIGHEST + 1], expected)


def test_float_table() -> None:
    assert boys.table_float().dtype == np.float32
    np.testing.assert_array_equal(boys.table_float(), boys.boys_table().astype(np.float32))


def test_template_and_table_share_their_constants() -> None:
    constants = dict(re.findall(r"#define BOYS_(\w+) (\d+)", template("boys.h")))
    names = {"T_MAX", "ROWS_PER_UNIT", "COLUMNS", "MAX_ORDER"}
    assert constants == {name: str(getattr(boys, name)) for name in names}
    assert boys.MAX_ORDER + 7 <= boys.COLUMNS


# ---- NVRTC -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("real", ["double", "float"])
def test_nvrtc_compiles_the_text(real: str) -> None:
    cubin, log = compile_nvrtc(kernel_text("cuda", {"REAL": real}), "sm_90")
    assert cubin[:4] == b"\x7fELF"
    assert "error" not in log
    assert nvrtc_version() >= (12, 0)


def test_nvrtc_gives_ptx_for_a_virtual_architecture() -> None:
    ptx, _ = compile_nvrtc('extern "C" __global__ void nothing() {}', "compute_90", ["--fmad=false"])
    assert b".target sm_90" in ptx
    assert b".entry nothing" in ptx


def test_nvrtc_errors_show_the_log() -> None:
    with pytest.raises(CompilerError, match=r"sm_90.*\n.*line_that_is_wrong"):
        compile_nvrtc("__global__ void f() { line_that_is_wrong(); }")
