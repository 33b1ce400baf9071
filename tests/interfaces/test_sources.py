"""Molecules from every format, from SMILES and from standard input."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuanto import Molecule
from cuanto.errors import InputError, MissingDependencyError
from cuanto.interfaces.compute import _message, compute
from cuanto.interfaces.qcschema import molecule_schema
from cuanto.interfaces.sources import read_source, safe_label
from cuanto.interfaces.versions import is_version_2
from fuzz import damaged, only_input_errors

H2 = "2\nname=h2\nH 0 0 0\nH 0 0 0.74\n"
SCHEMA = {
    "schema_name": "qcschema_input",
    "schema_version": 1,
    "molecule": {"symbols": ["H", "H"], "geometry": [0.0, 0.0, 0.0, 0.0, 0.0, 1.4], "molecular_charge": 0.0},
    "driver": "energy",
    "model": {"method": "hf", "basis": "sto-3g"},
    "keywords": {"max_iterations": 7, "grid": [50, 194]},
}
MOLDEN = """[Molden Format]
[Title]
 nothing
[Atoms] Angs
O1 1 8  0.0  0.0  0.117
Hx 2 1  0.0  0.757 -0.469
H  3 1  0.0 -0.757 -0.469
[GTO]
  1 0
 s 1 1.00
  1.0D+00 1.0D+00
[MO]
 Sym= A
 Ene= -20.5
 Spin= Alpha
 Occup= 2.0
 1 1.0
 Ene= -1.3
 Spin= Alpha
 Occup= 2.00000
 Spin= Alpha
 Occup= 2.0
 Spin= Alpha
 Occup= 2.0
 Spin= Alpha
 Occup= 1.0
"""


def schema_with(**changes: Any) -> str:
    return json.dumps({**SCHEMA, "molecule": {**SCHEMA["molecule"], **changes}})  # type: ignore[dict-item]


def test_qcschema_keeps_every_digit() -> None:
    water = Molecule.from_string("3\ncharge=1 mult=2\nO 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n")
    again = Molecule.from_text(json.dumps(molecule_schema(water)))
    assert np.array_equal(again.R_ax, water.R_ax) and again.symbols == water.symbols
    assert (again.charge, again.multiplicity) == (1, 2)
    assert Molecule.from_text(schema_with(geometry=[[0, 0, 0], [0, 0, 1.4]])).R_ax[1, 2] == 1.4


def test_qcelemental_writes_what_is_read() -> None:
    from qcelemental.models import Molecule as Theirs

    theirs = Theirs(symbols=["O", "H"], geometry=[0, 0, 0, 0, 0, 1.8], molecular_charge=-1, molecular_multiplicity=1)
    ours = Molecule.from_text(theirs.json())
    assert ours.symbols == ("O", "H") and (ours.charge, ours.multiplicity) == (-1, 1)
    np.testing.assert_allclose(ours.R_ax, theirs.geometry, atol=1e-12)


def test_molden_files_give_charge_and_spin() -> None:
    cation = Molecule.from_text(MOLDEN)
    assert cation.symbols == ("O", "H", "H") and (cation.charge, cation.multiplicity) == (1, 2)
    by_xyz = Molecule.from_string("3\n\nO 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n")
    np.testing.assert_allclose(cation.R_ax, by_xyz.R_ax, atol=1e-14)
    assert Molecule.from_text(MOLDEN.split("[MO]")[0]).charge == 0
    anion = Molecule.from_text(MOLDEN.split("[MO]")[0], charge=-1)
    assert (anion.charge, anion.multiplicity) == (-1, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("{", "is not valid JSON"),
        ("{}", "JSON without symbols and geometry"),
        (schema_with(geometry=[0, 0, 1.0]), "2 atoms need 6 coordinates"),
        (schema_with(geometry=["a"] * 6), "geometry must be numbers"),
        (schema_with(symbols=["H", 1]), "symbols must be a list of strings"),
        (schema_with(molecular_charge=0.5), "molecular_charge must be a whole number"),
        (schema_with(real=[True]), "real must be true or false for each of the 2 atoms"),
        (schema_with(geometry=[0, 0, 0, 0, 0, 1e999]), "not valid JSON"),
        ("[Molden Format]\n[GTO]\n", "without a section [Atoms]"),
        ("[Molden Format]\n[Atoms] nm\nH 1 1 0 0 0\n", "write [Atoms] AU or [Atoms] Angs"),
        ("[Molden Format]\n[Atoms] AU\nH 1 1 0 0\n", "expected 'element number atomic-number x y z'"),
        ("[Molden Format]\n[Atoms] AU\nQ 1 0 0 0 0\n", "ghost"),
    ],
)
def test_input_errors_are_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        Molecule.from_text(text, source="a.file")
    assert message in str(refused.value) and str(refused.value).startswith("a.file") and "\n" not in str(refused.value)


@given(damaged([json.dumps(SCHEMA), MOLDEN]))
@settings(max_examples=200)
def test_damaged_files(text: str) -> None:
    only_input_errors(lambda: Molecule.from_text(text))


def test_smiles() -> None:
    ethanol = Molecule.from_smiles("CCO")
    assert sorted(ethanol.symbols) == ["C"] * 2 + ["H"] * 6 + ["O"] and ethanol.name == "CCO"
    distance = np.linalg.norm(ethanol.R_ax[0] - ethanol.R_ax[1])
    assert distance == pytest.approx(1.52 / 0.529177, abs=0.06)
    assert np.array_equal(Molecule.from_smiles("CCO").R_ax, ethanol.R_ax)
    methyl, formate = Molecule.from_smiles("[CH3]"), Molecule.from_smiles("C(=O)[O-]")
    assert (methyl.multiplicity, formate.charge) == (2, -1)
    for nonsense in ("", "C(", "water"):
        with pytest.raises(InputError, match="not a valid SMILES"):
            Molecule.from_smiles(nonsense)
    with pytest.raises(InputError, match="'CC O' has a space: a SMILES has none, and a dot between molecules"):
        Molecule.from_smiles("CC O")


def test_smiles_without_rdkit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdkit.Chem", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'cuanto\[smiles\]'"):
        Molecule.from_smiles("CCO")


def test_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.xyz").write_text("2\n\nH 0 0 0\nH 0 0 0.74\n")
    (tmp_path / "two.json").write_text(json.dumps(SCHEMA))
    one, two = (read_source(str(tmp_path / name)) for name in ("one.xyz", "two.json"))
    assert (one.label, one.molecule.name, one.model.method) == ("one", "one", None)
    keywords = {"max_iterations": 7, "grid": (50, 194)}
    assert (two.model.method, two.model.basis, two.model.keywords) == ("hf", "sto-3g", keywords)
    assert read_source("smiles:[H][H]").label == "_H_H_"
    monkeypatch.setattr(sys, "stdin", io.StringIO(H2))
    assert read_source("-").molecule.name == "h2" and read_source.__doc__
    with pytest.raises(InputError, match="does not exist"):
        read_source(str(tmp_path / "nowhere.xyz"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keywords": {"max_iter": 3}}, "did you mean 'max_iterations'?"),
        ({"model": {"basis": "sto-3g"}}, "has no method"),
        ({"model": {"method": "hf", "basis": {"name": "x"}}}, "must be a name"),
        ({"model": "hf"}, "must be objects"),
        ({"keywords": {"fitting": 3}}, "fitting must be text"),
        ({"keywords": {"max_memory": "lots"}}, "give a size such as"),
        ({"keywords": {"point_charges": [[1, 2]]}}, "point_charges must be two lists"),
        ({"keywords": {"guess": ""}}, "guess is empty"),
    ],
)
def test_wrong_schemas(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**SCHEMA, **changes}))
    with pytest.raises(InputError) as refused:
        read_source(str(path))
    assert message in str(refused.value)


@given(st.text())
def test_labels_are_safe(text: str) -> None:
    label = safe_label(text)
    assert label and "/" not in label and "\\" not in label and not label.startswith(".") and "\0" not in label
    assert Path(label).name == label


def test_inputs_of_compute_that_are_no_schema() -> None:
    """Anything but a mapping or a model is refused."""
    with pytest.raises(InputError, match="takes an AtomicInput or a dictionary, not int"):
        compute(3, raise_error=True)
    assert not is_version_2([1, 2])
    assert _message(ZeroDivisionError("by zero")).endswith("ZeroDivisionError: by zero\n")


def test_standard_input_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="pipe a file into it"):
        read_source("-")
