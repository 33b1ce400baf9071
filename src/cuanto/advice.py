"""Advice about options that cuanto does not have, under the names that they have in other programs.

Options in these texts are written as in Python and in job files, `multiplicity=3`; the command line prints them as
flags, `--multiplicity 3`.
"""

from __future__ import annotations

import re

_THREADS = (
    "give the number of threads with --threads 4 on the command line, elsewhere in the environment variable "
    "CUANTO_THREADS"
)
_JOBS = f"{_THREADS}; many molecules are computed in parallel with --out and --workers, in Python by cuanto.energies"
_SOLVENT = (
    "solvent models are not implemented; add molecules of the solvent to the file, or surround the molecule with point "
    "charges (e, and positions in Bohr): point_charges=[[-0.8, 0.4], [[0, 0, 5], [0, 1, 6]]]"
)
_MULTIPLICITY = "give the multiplicity 2S + 1, such as multiplicity=3 for two unpaired electrons"
_UNRESTRICTED = "put a u before the method, such as method='uhf' or method='ub3lyp'"
_ITERATIONS = "give the largest number of iterations as max_iterations=200, or of steps of a search as max_steps=200"
_CONVERGENCE = "give the thresholds of the SCF, such as energy_tolerance=1e-10 and gradient_tolerance=1e-7"
_MAX_STEPS = "the largest number of steps of an optimisation is max_steps=200 of cuanto.optimize and `cuanto optimize`"
_CRITERIA = (
    "write `cuanto optimize FILE --convergence tight`, or cuanto.optimize(..., convergence='tight') in Python; the "
    "levels are loose, normal, tight and verytight"
)
_CONSTRAINTS = (
    "write `cuanto optimize FILE --freeze 'distance 1 2'`, or cuanto.optimize(..., freeze='distance 1 2') in Python; "
    "set in place of freeze gives the coordinate another value, as in 'distance 1 2 1.5'"
)
_FITTED = "density fitting is the default; fitting='j' fits only J, fitting='none' nothing"
_EXCITED = (
    "excited states are not implemented; cuanto computes the lowest state of each multiplicity, for example the lowest "
    "triplet with multiplicity=3"
)
_SCAN = (
    "write `cuanto optimize FILE --scan 'distance 1 2 1.0 2.0 11'`, or "
    "cuanto.optimize(..., scan='distance 1 2 1.0 2.0 11') in Python"
)
_TS = "write `cuanto optimize FILE --ts`, or cuanto.optimize(..., ts=True) in Python"
_IRC = "write `cuanto optimize FILE --ts --irc`, or cuanto.optimize(..., ts=True, irc=True) in Python"
_NEB = (
    "nudged elastic bands are not implemented; scan a coordinate with `cuanto optimize FILE --scan ...`, then search "
    "for the transition state from its highest point with `cuanto optimize FILE --ts`"
)
_CHARGE = "give the charge as charge=-1"
_ECP = "core potentials come with the basis: choose one that has them, such as basis='def2-svp' or basis='lanl2dz'"
_FILES = (
    "results are written with --json, --molden, --report or --out on the command line, and by result.save('a.json') in "
    "Python"
)
_DISPERSION = "add -d3bj or -d4 to the method, such as method='b3lyp-d4'"
ONE_VALUE = "write the values of one option together, such as --field 0,0,0.01 or --freeze 'distance 1 2'"
"""Advice for the command line, about numbers that are no argument of a command."""
ADVICE = {
    **dict.fromkeys(("threads", "nthreads", "nprocs", "nproc", "ncores", "cores", "cpus", "ncpus"), _THREADS),
    **dict.fromkeys(("jobs", "njobs", "np"), _JOBS),
    **dict.fromkeys(("spin", "unpaired", "nopen", "uhfelectrons", "mult"), _MULTIPLICITY),
    **dict.fromkeys(("solvent", "solvation", "pcm", "cpcm", "smd", "alpb", "gbsa", "cosmo"), _SOLVENT),
    **dict.fromkeys(("unrestricted", "uhf", "uks"), _UNRESTRICTED),
    **dict.fromkeys(("functional", "xc", "theory"), "give the functional as the method, such as method='pbe0'"),
    **dict.fromkeys(("basisset", "bas"), "give the basis as basis='def2-svp'"),
    **dict.fromkeys(("memory", "mem"), "limit the memory, for example to 4 GB, with max_memory=4e9"),
    **dict.fromkeys(("gpu", "cuda", "device"), "choose the device with backend='cuda' or backend='cpu'"),
    **dict.fromkeys(
        ("gradient", "grad", "forces", "force", "engrad"), "use cuanto.gradient, on the command line `cuanto gradient`"
    ),
    **dict.fromkeys(("opt", "optimize"), "use cuanto.optimize, on the command line `cuanto optimize`"),
    **dict.fromkeys(
        ("freq", "frequencies", "hessian"), "use cuanto.frequencies, on the command line `cuanto frequencies`"
    ),
    **dict.fromkeys(("output", "outfile"), _FILES),
    **dict.fromkeys(("dispersion", "disp", "d3", "d3bj", "d4"), _DISPERSION),
    **dict.fromkeys(("maxiter", "maxcycle", "maxcycles", "maxiters"), _ITERATIONS),
    **dict.fromkeys(("maxsteps", "nsteps", "geommaxiter", "optmaxiter", "optmaxcycles", "geomaxcycles"), _MAX_STEPS),
    **dict.fromkeys(("conv", "convergence", "tol", "thresh", "scf", "scfconv", "scftol"), _CONVERGENCE),
    **dict.fromkeys(("convtol", "econv", "econvergence", "etol", "tole", "dconvergence", "convtolgrad"), _CONVERGENCE),
    **dict.fromkeys(("fmax", "gconvergence", "geomconv", "optconv", "geomtol"), _CRITERIA),
    **dict.fromkeys(("constraints", "constraint", "constrain", "fix", "fixed"), _CONSTRAINTS),
    "chrg": _CHARGE,
    **dict.fromkeys(("nosym", "symmetry"), "energies do not use symmetry: leave it out"),
    **dict.fromkeys(("ri", "rij", "rijk", "rijcosx", "df", "densityfit", "densityfitting"), _FITTED),
    **dict.fromkeys(("nori", "nodf"), "density fitting is switched off with fitting='none'"),
    "smiles": "give the SMILES in place of a file, with smiles: before it, such as smiles:CCO",
    **dict.fromkeys(("ecp", "pseudo", "pseudopotential"), _ECP),
    **dict.fromkeys(("nroots", "nstates", "roots", "td", "tddft", "tda", "cis", "excited", "uvvis"), _EXCITED),
    "scan": _SCAN,
    **dict.fromkeys(("ts", "optts"), _TS),
    "irc": _IRC,
    "neb": _NEB,
    "nmr": "magnetic properties are not implemented; `cuanto energy` and `cuanto frequencies` print what is",
}
"""Advice, by the name of an option or command in lower case without - and _."""
LETTERS = {"t": _THREADS, "n": _THREADS, "j": _JOBS, "c": _CHARGE}
"""Advice about flags of one letter; in Python, such names mean something else, T often the temperature."""
_ATOM = (
    "an atom has no multiplicity here, its energy is the mean over all states of a configuration; give the "
    "configuration with --config '[Ar] 3d5 4s1'"
)
ADVICE_FOR_ATOMS = {
    **dict.fromkeys(("spin", "mult", "multiplicity", "unpaired", "nopen", "uhf", "unrestricted"), _ATOM),
    **dict.fromkeys(("threads", "nthreads", "nprocs", "t"), "give the number of threads in CUANTO_THREADS"),
}
"""Advice about options that `cuanto atom` does not have; those of molecules do not help there."""
SYMBOLS = {"t": "temperature", "temp": "temperature", "p": "pressure"}
"""Names of quantities by other names in lower case, for those who have an option of that name."""


def advice_about(name: str) -> str | None:
    """Find advice about an option or command of another program; None if there is none."""
    return ADVICE.get(plain(name))


def advice_about_flag(flag: str, command: str) -> str | None:
    """Find advice about a flag that a command does not have; None if there is none."""
    if command == "atom":
        return ADVICE_FOR_ATOMS.get(plain(flag))
    return LETTERS.get(plain(flag)) or advice_about(flag)


def plain(name: str) -> str:
    """The name of an option in lower case without - and _."""
    return re.sub(r"[-_]", "", name.lower())
