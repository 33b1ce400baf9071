"""``cuanto doctor --warm-up``: kernels are compiled, a new process is timed, and mistakes are named."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cuanto.cli.main import app
from cuanto.cli.warm_up import SAMPLE_ATOMS, sample
from cuanto.workers import python_environment
from scf_cases import WATER


def test_the_chain_has_all_elements_at_sensible_distances() -> None:
    for elements in (["H"], ["h", "C", "26"], ["Cs", "O"], ["H", "C", "N", "O", "F", "P", "S", "Cl", "Br"]):
        chain = sample(elements)
        assert chain.multiplicity == 1 and sample(elements, unpaired=1).multiplicity == 2
        assert len(chain.symbols) == max(SAMPLE_ATOMS, len(elements))
        r_ab = np.linalg.norm(chain.R_ax[:, None] - chain.R_ax, axis=2) + 1e3 * np.eye(len(chain.symbols))
        assert r_ab.min() > 0.9 and r_ab.min(axis=1).max() < 12.0


def test_kernels_are_compiled_and_a_new_process_is_timed() -> None:
    arguments = ["doctor", "--warm-up", "hf", "sto-3g", "H", "--backend", "cpu"]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert "compiling for hf/sto-3g with H" in done.stdout
    assert re.search(r"an energy of a chain of 8 atoms, 2 iterations, takes \d+\.\d s now", done.stdout)


def test_a_method_without_a_basis_names_none() -> None:
    done = CliRunner().invoke(app, ["doctor", "--warm-up", "pm6", "--backend", "cpu"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "compiling for pm6 with H, C, N, O ..." in done.stdout and "a chain of 8 atoms, takes" in done.stdout


def test_the_next_calculations_compile_nothing(tmp_path: Path) -> None:
    """Energies with and without fitting, and a gradient, in new processes."""
    cache, water = tmp_path / "kernels", tmp_path / "water.xyz"
    cache.mkdir(mode=0o700)
    water.write_text(WATER)

    def files_after(*arguments: str) -> set[str]:
        command = [sys.executable, "-m", "cuanto", *arguments, "--backend", "cpu"]
        environment = python_environment() | {"CUANTO_CACHE": str(cache)}
        subprocess.run(command, env=environment, check=True, capture_output=True)
        return {path.name for path in cache.iterdir()}

    ready = files_after("doctor", "--warm-up", "b3lyp", "sto-3g", "H", "O")
    assert len(ready) > 50
    calculation = (str(water), "-m", "b3lyp", "-b", "sto-3g", "-q")
    assert files_after("energy", *calculation) == ready
    assert files_after("energy", *calculation, "--fitting", "none") == ready
    assert files_after("gradient", *calculation) == ready


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pbe"], "belong to --warm-up"),
        (["--warm-up", "hf", "sto-3g", "Xx"], "unknown element"),
        (["--warm-up", "hg"], "hg"),
    ],
)
def test_mistakes_are_named(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["doctor", *arguments])
    assert done.exit_code != 0 and message in str(done.exception)
