"""Molecules from SMILES: RDKit places the atoms by distance geometry, then with a force field."""

import re
from collections.abc import Sequence
from typing import Any

from cuanto.errors import InputError, import_optional
from cuanto.system.masses import isotope_mass
from cuanto.system.structure import Structure
from cuanto.system.text import quote

MAX_CHARACTERS, MAX_ATOMS = 2000, 500
"""Length of the longest SMILES and size of the largest molecule that RDKit handles within about a minute."""
GAP = 3.0
"""Angstrom between the molecules of one SMILES: close, without overlap."""
SEED = 1
"""Seed of the embedding, so that a SMILES always gives the same geometry."""
_SYMBOLS = re.compile(r"(?:Cl|Br|[BCNOPSFIbcnops]|\[[^\]\s]+\]|[-=#$:/\\().%@+0-9])+")
_ATOM = re.compile(r"[BCNOPSFIbcnops\[]")


def looks_like_smiles(text: str) -> bool:
    """Whether a text consists of the symbols of a SMILES, with at least one atom."""
    short = len(text) <= MAX_CHARACTERS and text.isprintable()
    return short and _SYMBOLS.fullmatch(text) is not None and _ATOM.search(text) is not None


def parse_smiles(smiles: str) -> Structure:
    """Build a structure with hydrogens added; charge and unpaired electrons follow from the SMILES."""
    chem, all_chem, base = _rdkit()
    if len(smiles) > MAX_CHARACTERS:
        raise InputError(
            f"a SMILES of {len(smiles)} characters is too long, the limit is {MAX_CHARACTERS}: give an XYZ file"
        )
    if len(smiles.split()) > 1:
        raise InputError(f"{quote(smiles)} has a space: a SMILES has none, and a dot between molecules")
    with base.BlockLogs():
        molecule = chem.MolFromSmiles(smiles) if smiles.strip() and smiles.isascii() else None
        if molecule is None or molecule.GetNumAtoms() == 0:
            raise InputError(f"{quote(smiles)} is not a valid SMILES; write smiles:CCO for ethanol, for example")
        if any(one.GetAtomicNum() == 0 for one in molecule.GetAtoms()):
            raise InputError(f"{quote(smiles)} has an atom of any element (*): write the element")
        molecule = chem.AddHs(molecule)
        if (count := molecule.GetNumAtoms()) > MAX_ATOMS:
            raise InputError(f"{quote(smiles)} has {count} atoms, RDKit places up to {MAX_ATOMS}: give an XYZ file")
        positions = _positions(chem, all_chem, molecule, smiles)
        atoms = list(molecule.GetAtoms())
        return Structure(
            symbols=tuple(atom.GetSymbol() for atom in atoms),
            coordinates=tuple((x, y, z) for x, y, z in positions),
            charge=chem.GetFormalCharge(molecule),
            multiplicity=1 + sum(atom.GetNumRadicalElectrons() for atom in atoms),
            name=smiles.strip(),
            angstrom=True,
            masses=_masses(atoms),
        )


def _masses(atoms: Sequence[Any]) -> tuple[float | None, ...]:
    """Masses of atoms whose isotope is given, as in [2H]; empty if there are none."""
    isotopes = [(atom.GetSymbol(), atom.GetIsotope()) for atom in atoms]
    if not any(number for _, number in isotopes):
        return ()
    return tuple(isotope_mass(symbol, number) if number else None for symbol, number in isotopes)


def _positions(chem: Any, all_chem: Any, molecule: Any, smiles: str) -> list[list[float]]:
    """Positions of all atoms, Angstrom; several molecules are placed side by side, GAP apart."""
    positions = [[0.0, 0.0, 0.0]] * molecule.GetNumAtoms()
    indices: list[tuple[int, ...]] = []
    right = -GAP
    for one, own in zip(chem.GetMolFrags(molecule, asMols=True, fragsMolAtomMapping=indices), indices, strict=True):
        if not _embed(all_chem, one):
            raise InputError(f"RDKit found no geometry for {quote(smiles)}: give an XYZ file")
        if all_chem.MMFFHasAllMoleculeParams(one):
            all_chem.MMFFOptimizeMolecule(one, maxIters=2000)
        elif all_chem.UFFHasAllMoleculeParams(one):
            all_chem.UFFOptimizeMolecule(one, maxIters=2000)
        placed = one.GetConformer().GetPositions()
        if len(own) < len(positions):
            placed[:, 0] += right + GAP - placed[:, 0].min()
            right = placed[:, 0].max()
        for index, position in zip(own, placed.tolist(), strict=True):
            positions[index] = position
    return positions


def _embed(all_chem: Any, molecule: Any) -> bool:
    """Whether RDKit could place the atoms."""
    try:
        return bool(all_chem.EmbedMolecule(molecule, randomSeed=SEED) == 0)
    except RuntimeError:  # RDKit reports violated invariants this way
        return False


def _rdkit() -> tuple[Any, Any, Any]:
    message = "SMILES need RDKit: `pip install 'cuanto[smiles]'`, or give an XYZ file"
    chem, all_chem, base = (import_optional(f"rdkit.{name}", message) for name in ("Chem", "Chem.AllChem", "rdBase"))
    return chem, all_chem, base
