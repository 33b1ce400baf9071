"""Optimisations as QCSchema."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import cuanto
from cuanto.cli.main import run
from cuanto.errors import InputError
from cuanto.interfaces.optimization import optimization_text
from cuanto.methods import GaussianResult

WATER = cuanto.Molecule.from_string("3\n\nO 0 0 0\nH 0.9 0 0.1\nH -0.3 0.95 0\n")


@pytest.mark.parametrize("max_steps", [50, 2])
def test_qcelemental_accepts_it(max_steps: int) -> None:
    found = cuanto.optimize(WATER, "pm6", max_steps=max_steps)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schema = json.loads(optimization_text(found))
    assert schema["success"] is (max_steps == 50) and ("error" in schema) is (max_steps == 2)
    assert len(schema["trajectory"]) == len(schema["energies"]) == found.iterations
    assert schema["energies"][-1] == found.energy
    assert schema["final_molecule"]["geometry"] == found.molecule.R_ax.reshape(-1).tolist()
    assert schema["trajectory"][0]["molecule"]["geometry"] == WATER.R_ax.reshape(-1).tolist()
    steps = schema["extras"]["cuanto"]["steps"]
    assert steps[0]["change"] is None and len(steps[-1]["met"]) == 4
    assert found.to_qcschema()["keywords"]["max_steps"] == max_steps


def test_other_commands_take_the_optimised_molecule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    found = cuanto.optimize(WATER, "hf", "sto-3g", backend="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Path("opt.json").write_text(optimization_text(found))
    again = cuanto.read("opt.json")
    assert isinstance(again, GaussianResult) and again.energy == found.energy
    np.testing.assert_array_equal(again.gradient, found.gradient)
    np.testing.assert_allclose(again.dipole, found.result.dipole, atol=1e-9)
    assert np.array_equal(cuanto.Molecule.from_file("opt.json").R_ax, found.molecule.R_ax)
    for command in ("cube opt.json --spacing 1", "energy opt.json -q", "freq opt.json -q", "report opt.json"):
        with pytest.raises(SystemExit) as stopped:
            run(tuple(command.split()))
        assert stopped.value.code in (0, None), command
    assert f"opt {found.energy:.7f}" in capsys.readouterr().out


def test_an_optimisation_without_steps_is_refused() -> None:
    with pytest.raises(InputError, match="an optimisation without the results of its steps"):
        cuanto.read({"schema_name": "qcschema_optimization_output", "trajectory": []})
