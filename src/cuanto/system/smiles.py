"""A molecule from its SMILES: RDKit places the atoms (distance geometry, then a force field)."""

from typing import Any

from cuanto.errors import InputError, import_optional
from cuanto.system.structure import Structure
from cuanto.system.text import quote

LONGEST, MOST_ATOMS = 2000, 500
"""Characters of the longest SMILES, and atoms of the largest molecule, that RDKit places within a minute or so."""
SEED = 1
"""Seed of the embedding, so that a SMILES always gives the same geometry."""


def parse_smiles(smiles: str) -> Structure:
    """Make a structure with hydrogens added; charge and unpaired electrons follow from the SMILES."""
    chem, all_chem, base = _rdkit()
    if len(smiles) > LONGEST:
        raise InputError(f"a SMILES of {len(smiles)} characters is too long, {LONGEST} are possible: give an XYZ file")
    with base.BlockLogs():
        molecule = chem.MolFromSmiles(smiles) if smiles.strip() and smiles.isascii() else None
        if molecule is None or molecule.GetNumAtoms() == 0:
            raise InputError(f"{quote(smiles)} is not a valid SMILES; write smiles:CCO for ethanol, for example")
        molecule = chem.AddHs(molecule)
        if (count := molecule.GetNumAtoms()) > MOST_ATOMS:
            raise InputError(f"{quote(smiles)} has {count} atoms, RDKit places up to {MOST_ATOMS}: give an XYZ file")
        if all_chem.EmbedMolecule(molecule, randomSeed=SEED) != 0:
            raise InputError(f"RDKit found no geometry for {quote(smiles)}: give an XYZ file")
        if all_chem.MMFFHasAllMoleculeParams(molecule):
            all_chem.MMFFOptimizeMolecule(molecule, maxIters=2000)
        elif all_chem.UFFHasAllMoleculeParams(molecule):
            all_chem.UFFOptimizeMolecule(molecule, maxIters=2000)
        positions = molecule.GetConformer().GetPositions().tolist()
        atoms = list(molecule.GetAtoms())
        return Structure(
            symbols=tuple(atom.GetSymbol() for atom in atoms),
            coordinates=tuple((x, y, z) for x, y, z in positions),
            charge=chem.GetFormalCharge(molecule),
            multiplicity=1 + sum(atom.GetNumRadicalElectrons() for atom in atoms),
            name=smiles.strip(),
            angstrom=True,
        )


def _rdkit() -> tuple[Any, Any, Any]:
    message = "SMILES need RDKit: `pip install 'cuanto[smiles]'`, or give an XYZ file"
    chem, all_chem, base = (import_optional(f"rdkit.{name}", message) for name in ("Chem", "Chem.AllChem", "rdBase"))
    return chem, all_chem, base
