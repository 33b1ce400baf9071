"""``cuanto doctor --warm-up``: kernels are compiled, a new process is timed, and mistakes are named."""

from __future__ import annotations

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from cuanto.cli.main import app
from cuanto.cli.warm_up import SAMPLE_ATOMS, sample


def test_the_chain_has_all_elements_at_sensible_distances() -> None:
    for elements in (["H"], ["h", "C", "26"], ["Cs", "O"], ["H", "C", "N", "O", "F", "P", "S", "Cl", "Br"]):
        chain = sample(elements)
        assert len(chain.symbols) == max(SAMPLE_ATOMS, len(elements))
        r_ab = np.linalg.norm(chain.R_ax[:, None] - chain.R_ax, axis=2) + 1e3 * np.eye(len(chain.symbols))
        assert r_ab.min() > 0.9 and r_ab.min(axis=1).max() < 12.0


def test_kernels_are_compiled_and_a_new_process_is_timed() -> None:
    arguments = ["doctor", "--warm-up", "hf", "sto-3g", "H", "--backend", "cpu"]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert "compiling for hf/sto-3g with H" in done.stdout
    found = re.search(r"a first calculation takes (\d+\.\d) s in a new process now", done.stdout)
    assert found is not None and float(found[1]) < 120


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
