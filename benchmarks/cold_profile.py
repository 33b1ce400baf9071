"""A profile of one process: what its main thread does, by samples of its stack, and every compilation."""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
import threading
import time
from collections import Counter, defaultdict
from types import FrameType
from typing import Any

INTERVAL = 0.01
STEPS = {
    "start": "interpreter and benchmark",
    "import": "imports",
    "cupy compile": "CuPy's own kernels: NVRTC",
    "cupy load": "CuPy's own kernels: text and loading",
    "wait": "waiting for NVRTC or a compiler",
    "compile": "compiling in the main thread",
    "load": "loading kernels",
    "context": "device and its context",
    "tables": "index tables and costs of classes",
    "text": "texts of kernels",
    "functional": "derivatives of functionals",
    "libraries": "products, factorisations, eigenvalues (with the loading of their libraries)",
    "device": "waiting for the device",
    "calculation": "everything else",
}
RULES = (
    ("import", ("<frozen importlib",)),
    (
        "cupy compile",
        ("operation_compiler.py:", "cupy/cuda/compiler.py:compile", "cupy/cuda/compiler.py:_compile_using"),
    ),
    ("cupy load", ("cupy/cuda/compiler.py:",)),
    ("compile", ("nvrtc.py:compile_nvrtc", "compiler.py:compile_text")),
    ("wait", ("concurrent/futures/_base.py:result", "background.py:result")),
    ("load", ("cuda/backend.py:_function", "cuda/compilers.py:binary")),
    ("context", ("cuda/backend.py:__init__", "why_no_gpu")),
    ("tables", ("backends/programs.py:", "backends/kinds.py:")),
    ("functional", ("functionals/functional.py:", "functionals/registry.py:", "functionals/density.py:")),
    ("text", ("cuanto/kernels/",)),
    (
        "libraries",
        (
            "backends/linalg.py:",
            "host_linalg.py:",
            "device_linalg.py:",
            "cuda/library.py:",
            "cupy/linalg/",
            "cupyx/",
            "cupy/cublas",
        ),
    ),
    ("device", ("cuda/backend.py:synchronize", "cuda/backend.py:download", "cuda/backend.py:to_host")),
)
"""Steps, and parts of `file:function`; the first rule that matches any frame of the stack counts."""


def _names(frame: FrameType | None) -> list[str]:
    names = []
    while frame is not None:
        names.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}")
        frame = frame.f_back
    return names


def step_of(names: list[str]) -> str:
    """The step that a stack belongs to."""
    if names and "cold_profile.py" in names[0]:
        return "start"
    for step, parts in RULES:
        if any(part in name for name in names for part in parts):
            return step
    return "calculation"


def own_call(names: list[str]) -> str:
    """The innermost function of cuanto in a stack."""
    for name in names:
        if "/cuanto/" in name:
            return name.split("/cuanto/")[-1]
    return "elsewhere"


def own_line(frame: FrameType | None) -> str:
    """File and line of the innermost call from cuanto, without the profile."""
    while frame is not None:
        name = frame.f_code.co_filename
        if "/cuanto/" in name and "/backends/cuda/" not in name:
            return f"{name.split('/cuanto/')[-1]}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


class Profile:
    """Context that samples the main thread and records compilations; `started`: time.time() when the process began."""

    def __init__(self, started: float, sampled: bool) -> None:
        self._started, self._sampled = started, sampled
        self._offset = time.time() - started - time.perf_counter()
        self._main = threading.main_thread().ident
        self._over = threading.Event()
        self.compilations: list[dict[str, Any]] = []
        self.sources: dict[str, dict[str, Any]] = {}
        self._steps: Counter[str] = Counter({"start": time.time() - started})
        self._calls: Counter[str] = Counter()
        self._where: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Profile:
        if self._sampled:
            self._thread.start()
            sys.meta_path.insert(0, _Hook(self))
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._sampled:
            self._thread.join()

    def now(self) -> float:
        """Seconds since the process began."""
        return time.perf_counter() + self._offset

    def record(self) -> dict[str, Any]:
        """Seconds of the main thread by step and by function, and compilations."""
        where = {step: dict(calls.most_common(25)) for step, calls in self._where.items()}
        compilations = sorted(self.compilations, key=lambda c: float(c["at"]))
        steps = dict(self._steps)
        calls = dict(self._calls.most_common(40))
        return {"main_thread": steps, "calls": calls, "where": where, "compilations": compilations}

    def _sample(self) -> None:
        last = time.perf_counter()
        while not self._over.wait(INTERVAL):
            names = _names(sys._current_frames().get(self._main or 0))
            now = time.perf_counter()
            step, call = step_of(names), own_call(names)
            self._steps[step] += now - last
            self._calls[call] += now - last
            self._where[step][call] += now - last
            last = now

    def time_call(self, module: Any, function: str, kind: str) -> None:
        """Record every call of a function that compiles its first argument."""
        call = getattr(module, function)

        def timed(text: str, *args: Any, **options: Any) -> Any:
            begin, cpu = self.now(), time.thread_time()
            try:
                return call(text, *args, **options)
            finally:
                entry = re.findall(r"void\s+(\w+)\s*\(|#define ENTRY (\w+)", text)
                name = next((a or b for a, b in entry[::-1] if kind == "cupy" or b), "unknown")
                record = {"kind": kind, "name": name, "at": begin, "seconds": self.now() - begin}
                record |= {"cpu": time.thread_time() - cpu, "thread": threading.current_thread().name}
                record["line"] = own_line(sys._getframe())
                self.compilations.append(record)
                self.sources[f"{kind} {name} {hash(text)}"] = {
                    "kind": kind,
                    "name": name,
                    "text": text,
                    "options": [str(x) for x in (args[0] if kind == "cupy" and args else options.get("options", ()))],
                }

        setattr(module, function, timed)


class _Hook:
    """Wraps the compiling functions as soon as their modules have been imported, without importing them earlier."""

    WATCHED = {  # noqa: RUF012
        "cuanto.backends.cuda.compilers": ("compile_nvrtc", "nvrtc"),
        "cuanto.backends.cpu.compiler": ("compile_text", "compiler"),
        "cupy.cuda.compiler": ("_compile_using_nvrtc_no_warning", "cupy"),
    }

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._busy: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Let the other finders find it, and wrap the function once the module has run."""
        if name not in self.WATCHED or name in self._busy:
            return None
        self._busy.add(name)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        run, (function, kind), profile = spec.loader.exec_module, self.WATCHED[name], self._profile

        def exec_module(module: Any) -> None:
            run(module)
            with contextlib.suppress(AttributeError):
                profile.time_call(module, function, kind)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
