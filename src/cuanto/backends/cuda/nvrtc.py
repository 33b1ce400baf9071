"""NVRTC through ctypes: CUDA text to machine code with neither a GPU nor a driver, for tests and for CI.

The library comes from the `nvidia-cuda-nvrtc` wheel, from a CUDA toolkit, or from the loader's own search.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator, Sequence
from ctypes.util import find_library
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from cuanto.errors import CompilerError, MissingDependencyError

_SUCCESS = 0
_LIBRARY = re.compile(r"(libnvrtc\.so(\.\d+)*|nvrtc64_\d+_\d+\.dll)")


def _folders() -> Iterator[Path]:
    """Where a wheel (nvidia/cu13/lib, nvidia/cuda_nvrtc/lib) or a toolkit puts the library."""
    spec = find_spec("nvidia")
    for location in (spec.submodule_search_locations or []) if spec else []:
        for pattern in ("*/lib", "*/bin", "*/bin/x86_64"):
            yield from sorted(Path(location).glob(pattern), reverse=True)
    for variable in ("CUDA_PATH", "CUDA_HOME"):
        if root := os.environ.get(variable):
            yield from (Path(root) / "lib64", Path(root) / "bin")
    yield Path("/usr/local/cuda/lib64")


def _candidates() -> Iterator[str]:
    for folder in _folders():
        if folder.is_dir():
            yield from sorted((str(f) for f in folder.iterdir() if _LIBRARY.fullmatch(f.name)), reverse=True)
    if name := find_library("nvrtc"):
        yield name


@lru_cache(maxsize=1)
def _nvrtc() -> ctypes.CDLL:
    for name in _candidates():
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        return library
    raise MissingDependencyError(
        "NVRTC (only for GPUs) was not found: `pip install nvidia-cuda-nvrtc`, or set CUDA_PATH to a CUDA toolkit"
    )


def nvrtc_version() -> tuple[int, int]:
    """Major and minor version of the library in use."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_nvrtc().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "nvrtcVersion")
    return major.value, minor.value


def _check(status: int, call: str) -> None:
    if status != _SUCCESS:
        raise CompilerError(f"{call} failed: {_nvrtc().nvrtcGetErrorString(status).decode()}")


def _fetch(program: ctypes.c_void_p, what: str) -> bytes:
    """The program's log, PTX or CUBIN."""
    size = ctypes.c_size_t()
    _check(getattr(_nvrtc(), f"nvrtcGet{what}Size")(program, ctypes.byref(size)), f"nvrtcGet{what}Size")
    buffer = ctypes.create_string_buffer(size.value)
    _check(getattr(_nvrtc(), f"nvrtcGet{what}")(program, buffer), f"nvrtcGet{what}")
    return buffer.raw


def compile_nvrtc(text: str, arch: str = "sm_90", options: Sequence[str] = ()) -> tuple[bytes, str]:
    """Machine code (PTX for a virtual `arch` such as compute_90) and the log; a CompilerError has the log."""
    library = _nvrtc()
    program = ctypes.c_void_p()
    created = library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    _check(created, "nvrtcCreateProgram")
    try:
        flags = [f"--gpu-architecture={arch}", "--std=c++17", *options]
        status = library.nvrtcCompileProgram(
            program, len(flags), (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
        )
        log = _fetch(program, "ProgramLog").rstrip(b"\0").decode(errors="replace").strip()
        if status != _SUCCESS:
            reason = library.nvrtcGetErrorString(status).decode()
            raise CompilerError(f"NVRTC could not compile for {arch} ({reason}):\n{log}")
        return _fetch(program, "CUBIN" if arch.startswith("sm_") else "PTX"), log
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
