"""Optimisations as QCSchema."""

from __future__ import annotations

import json
import warnings

import pytest

import cuanto
from cuanto.interfaces.optimization import optimization_text

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
