"""The installed package: a fast import, lazy names, and a small, pure and complete wheel."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import cuanto
from paths import ROOT

DEVELOPMENT = ("docs", "test")
"""Extras for those who work on cuanto."""


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def loaded(statements: str) -> set[str]:
    """Modules that a fresh interpreter has afterwards; `benchmarks/first_call.py` times them."""
    return set(json.loads(run_python(f"{statements}; import json, sys; print(json.dumps(sorted(sys.modules)))")))


def test_the_extra_of_everything() -> None:
    """`all` has every extra for users but gpu and zig, as README.md says."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    names = everything.removeprefix("cuanto[").removesuffix("]").split(",")
    assert sorted(names) == sorted(set(extras) - {"all", "gpu", "zig", *DEVELOPMENT})
    assert "'.[all]': every extra for users but gpu and zig" in (ROOT / "README.md").read_text()


def test_import_is_light() -> None:
    assert not loaded("import cuanto") & {"numpy", "cupy", "basis_set_exchange", "pyscf"}


def test_help_loads_no_arrays() -> None:
    """`cuanto --help` appears at once: commands import what they need when they run."""
    assert not loaded("import cuanto.cli.main") & {"numpy", "scipy", "cuanto.system", "cuanto.methods"}


def test_whole_interface_loads_without_optional_packages() -> None:
    modules = loaded("import cuanto; cuanto.Molecule; cuanto.Basis; cuanto.integrals")
    assert not modules & {"cupy", "basis_set_exchange", "pyscf", "sympy"}


def test_lazy_names() -> None:
    assert set(cuanto.__all__) <= set(dir(cuanto))
    for name in cuanto.__all__:
        assert getattr(cuanto, name) is not None
    with pytest.raises(AttributeError, match="'energys'"):
        _ = cuanto.energys


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as ``make wheel`` builds it, with the build backend of the test environment."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_is_small_pure_and_complete(wheel: Path) -> None:
    assert wheel.name == f"cuanto-{cuanto.__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < 3_000_000
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("cuanto/")}
    sources = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "cuanto").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert packed == sources
    assert any(name.endswith((".h", ".cuh")) for name in packed)
    assert "cuanto/py.typed" in packed


def test_wheel_works_where_the_sources_are_not(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n"
        "import cuanto\nfrom importlib.resources import files\n"
        "path = files('cuanto') / 'data' / 'molecules' / 'water.xyz'\n"
        "molecule = cuanto.Molecule.from_xyz(path)\n"
        "S_pq = cuanto.integrals.overlap(cuanto.Basis('sto-3g', molecule))\n"
        "print(cuanto.__file__, S_pq.shape)"
    )
    assert run_python(code).split(maxsplit=1) == [str(tmp_path / "site/cuanto/__init__.py"), "(7, 7)\n"]
