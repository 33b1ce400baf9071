"""Coding rules of the project, checked in the source: no code outside `backends/` asks about the device, and so on."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from paths import ROOT

SOURCE = ROOT / "src" / "cuanto"
MAX_PARAMETERS = 8

QUESTIONS = {
    "which array module": r"\bxp is (not )?(np|numpy)\b|\bxp\.__name__|\bxp\.cuda\b",
    "which class of backend": r"\b(Cpu|Cuda|Simt)Backend\b",
    "what a backend has": r"\b(getattr|hasattr)\((self\.)?_?(backend|device)\b(?!, 'run')",
    "which backend by name": r"\b(backend|device)\.name (==|!=|in\b|not in\b)",
    "which language": r"\b(target|language) (==|!=|in|not in) ['(\[{]",
    "which name": r"(==|!=|\bin\b) [(\[{]?'(cpu|cuda|simt)'|'(cpu|cuda|simt)' (==|!=)|case '(cpu|cuda|simt)'",
    "which memory": r"\.unified_memory\b",
    "ctypes": r"\bimport ctypes\b|\bfrom ctypes\b|\.ctypes\b",
    "CuPy": r"\b(cupy|cupyx|cublas|cusolver)\b",
}
"""Patterns of code that asks about the device, as `ast.unparse` writes it. `hasattr(backend, 'run')` is allowed:
`integrals.resolve` uses it to check that it was given a backend."""

KNOWN_QUESTIONS: dict[str, set[str]] = {
    "batch/run.py": {"which memory"},
    "memory.py": {"which memory"},
    "scf/orthogonal.py": {"which memory"},
}
"""Files that still ask about the device, and how; the test fails if a listed file no longer does.

`unified_memory` would tell a CPU from a GPU, so it is allowed only where memory itself is meant: whether limits of main
memory apply (`batch/run.py`, `memory.py`), and whether small matrices must be copied to the host (`scf/orthogonal.py`).
"""

LARGE_CLASSES: set[str] = set()
"""Classes that still have too many parameters; the test fails if a listed class no longer does."""


def modules() -> list[Path]:
    """All modules of the package except the backends."""
    return [path for path in sorted(SOURCE.rglob("*.py")) if path.relative_to(SOURCE).parts[0] != "backends"]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def code_of(path: Path) -> str:
    """The module without comments and free-standing strings."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                kept = [line for line in body if not (isinstance(line, ast.Expr) and _is_text(line.value))]
                setattr(node, field, kept or ([ast.Pass()] if field == "body" else []))
    return ast.unparse(tree)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def untyped_backends(tree: ast.Module) -> Iterator[int]:
    """Line numbers of parameters and attributes named backend or device with the type Any."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            name, kind = node.arg, node.annotation
        elif isinstance(node, ast.AnnAssign):
            name, kind = ast.unparse(node.target).removeprefix("self."), node.annotation
        else:
            continue
        if name.strip("_") in ("backend", "device") and kind is not None and ast.unparse(kind) == "Any":
            yield node.lineno


def questions_in(path: Path) -> set[str]:
    code = code_of(path)
    found = {question for question, pattern in QUESTIONS.items() if re.search(pattern, code)}
    return found | ({"Any"} if any(untyped_backends(tree_of(path))) else set())


def test_nothing_asks_which_device_it_is_on() -> None:
    found = {str(path.relative_to(SOURCE)): questions_in(path) for path in modules()}
    assert {name: questions for name, questions in found.items() if questions} == KNOWN_QUESTIONS


@pytest.mark.parametrize(
    ("line", "question"),
    [
        ("host = xp is np", "which array module"),
        ("import_module(f'{self.xp.__name__}.cublas')", "which array module"),
        ("with xp.cuda.Stream(): pass", "which array module"),
        ("isinstance(device, CpuBackend)", "which class of backend"),
        ("from cuanto.backends.cuda.backend import CudaBackend", "which class of backend"),
        ("threads = getattr(self.backend, 'threads', 1)", "what a backend has"),
        ("size = MOLECULES[backend.name == 'cuda']", "which backend by name"),
        ("syntax = CPP if target == 'cpu' else CUDA", "which language"),
        ("if backend.traits.language in ('cuda',): pass", "which language"),
        ("workers = 0 if device == 'cuda' else 4", "which name"),
        ("share = None if get_backend(given).name in ('cuda', 'simt') else 1", "which name"),
        ("host = 'cpu' == name", "which name"),
        ("match name:\n    case 'cuda': pass", "which name"),
        ("threads = 4 if backend.traits.unified_memory else 1", "which memory"),
        ("import ctypes", "ctypes"),
        ("address = array.ctypes.data", "ctypes"),
        ("from cupyx.scipy.linalg import solve_triangular", "CuPy"),
        ("def f(backend: Any): pass", "Any"),
        ("self.device: Any = None", "Any"),
    ],
)
def test_questions_are_recognised(line: str, question: str, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(f'"""Not a question: xp is np."""\n{line}  # nor this: import ctypes\n')
    assert question in questions_in(path)


@pytest.mark.parametrize(
    "line",
    [
        "'xp is np'",
        "size = SIZES[backend.traits.language]",
        "threads = backend.traits.workers if backend.traits.parallel_calculations else 1",
        "if not hasattr(backend, 'run'): pass",
        "def f(backend: Backend): pass",
        "label = result.backend.name",
    ],
)
def test_other_code_is_allowed(line: str, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(line)
    assert questions_in(path) == set()


def parameters(node: ast.ClassDef) -> int:
    """Number of parameters of the constructor; data classes without their own count as zero."""
    constructors = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"]
    return sum(len(f.args.posonlyargs) + len(f.args.args) - 1 + len(f.args.kwonlyargs) for f in constructors)


def test_no_class_takes_more_than_eight_parameters() -> None:
    classes = [node for path in sorted(SOURCE.rglob("*.py")) for node in ast.walk(tree_of(path))]
    large = {node.name for node in classes if isinstance(node, ast.ClassDef) and parameters(node) > MAX_PARAMETERS}
    assert large == LARGE_CLASSES


# ---- what exists twice -------------------------------------------------------------------------------------


def names_in_table_of_twins() -> list[str]:
    """Files that the architecture page names as existing once for each device; some with asterisks."""
    page = (ROOT / "docs" / "develop" / "architecture.md").read_text()
    rows = re.findall(
        r"^\| (.*`.*) \| .* \|$", page.partition("## What exists twice")[2].partition("\nModules")[0], re.M
    )
    return [name for row in rows for name in re.findall(r"`([^`]+\.\w+)`", row)]


def for_one_device() -> list[Path]:
    """Files whose name says that they are for one kind of device."""
    return [
        path
        for path in sorted(SOURCE.rglob("*"))
        if path.suffix == ".cuh" or path.name.endswith(("_cpu.h", "_cpu.py", "_cuda.py"))
        if path.relative_to(SOURCE).parts[0] != "backends"
    ]


def test_the_list_of_what_exists_twice_is_complete() -> None:
    names = names_in_table_of_twins()
    missing = [path.name for path in for_one_device() if not any(path.match(name) for name in names)]
    assert len(for_one_device()) > 40 and missing == []
    paths = list(SOURCE.rglob("*"))
    assert [name for name in names if not any(path.match(name) for path in paths)] == []


# ---- contracts of imports ----------------------------------------------------------------------------------


def contracts() -> list[dict[str, object]]:
    found: list[dict[str, object]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    return found


def test_cupy_is_forbidden_in_every_package_but_the_backends() -> None:
    (contract,) = [one for one in contracts() if "cupy" in one.get("forbidden_modules", ())]  # type: ignore[operator]
    tops = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in modules()} - {"__init__", "__main__"}
    assert set(contract["source_modules"]) == {f"cuanto.{name}" for name in tops}  # type: ignore[call-overload]


def test_the_only_exception_of_contracts_is_type_checking() -> None:
    exceptions = [line for one in contracts() for line in one.get("ignore_imports", ())]  # type: ignore[attr-defined]
    assert exceptions == ["cuanto -> cuanto.batch"]
