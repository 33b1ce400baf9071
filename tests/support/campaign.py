"""A fuzzer: damaged inputs for everything that reads user input. Every refusal must be an error of cuanto.

    python tests/support/campaign.py --count 50000

The inputs follow from seed and number, so that a failure is repeated with `--first NUMBER --count 1`. An input that
takes longer than LONGEST seconds counts as a failure as well.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import platform
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cuanto
from atom_inputs import CHROMIUM, LISTED, NITROGEN, OPTIMISE
from cuanto.atomic.configuration import parse_configuration
from cuanto.atomic.input import parse_input
from cuanto.atomic.job import parse_parameters, parse_ranges
from cuanto.basis import Shell
from cuanto.basis.formats import parse_basis
from cuanto.basis.library import element_tables, sources_by_element
from cuanto.cli.arguments import parse_options
from cuanto.cli.frequencies import parse_isotopes
from cuanto.cli.main import INTERNAL_ERROR, run
from cuanto.cli.run import read_job
from cuanto.errors import CuantoError
from cuanto.grid import GridSettings
from cuanto.interfaces.keywords import checked_keywords, option_value
from cuanto.interfaces.sources import Model, choose_model, safe_label, source_from_text
from cuanto.journal import JsonLines
from cuanto.methods.model import kind_of
from cuanto.methods.request import Request
from cuanto.motion.constraints import read_constraints
from cuanto.system.text import parse_size

LONGEST = 30
"""Seconds that an input may take."""
XYZ = "3\ncharge=0 mult=1 name=water\nO 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n"
GHOST = '3\nProperties=species:S:1:pos:R:3 charge="0"\nO 0 0 0.117\nGh-H 0 0.757 -0.469\n@H 0 -0.757 -0.469 0.1\n'
MOLDEN = """[Molden Format]\n[Atoms] AU\nO 1 8 0.0 0.0 0.2\nH 2 1 0.0 1.4 -0.9\nH 3 1 0.0 -1.4 -0.9\n[GTO]\n 1 0
 s 1 1.00\n 1.0D+00 1.0D+00\n[MO]\n Ene= -20.5\n Spin= Alpha\n Occup= 2.0\n 1 1.0\n"""
NWCHEM = """BASIS "ao basis" SPHERICAL PRINT
#BASIS SET: (4s) -> [2s]
H    S
  0.1873113696E+02   0.3349460434E-01
  0.2825394365E+01   0.2347269535E+00
H    SP
  0.1612777588E+00   1.0000000   0.5
Zn   D
  1.1   1.0
END
ECP
Zn nelec 10
Zn ul
2 1.0 0.0
Zn S
2 1.5 -3.0
END
"""
GAUSSIAN = """!  STO-3G
****
H     0
S   3   1.00
      3.42525091             0.15432897
      0.62391373             0.53532814
      0.16885540             0.44463454
****
C     0
SP   1   1.00
      2.9412494              -0.09996723             0.15591627
****
"""
EXCHANGE: dict[str, Any] = {
    "molssi_bse_schema": {"schema_type": "complete", "schema_version": "0.1"},
    "name": "tiny",
    "elements": {
        "1": {
            "electron_shells": [
                {
                    "function_type": "gto_spherical",
                    "angular_momentum": [0],
                    "exponents": ["3.4", "0.6"],
                    "coefficients": [["0.15", "0.53"]],
                }
            ]
        }
    },
}
MOLECULE: dict[str, Any] = {
    "schema_name": "qcschema_molecule",
    "schema_version": 2,
    "symbols": ["H", "H"],
    "geometry": [0.0, 0.0, 0.0, 0.0, 0.0, 1.4],
    "real": [True, True],
    "masses": [1.00782503223, 2.01410177812],
    "mass_numbers": [1, 2],
    "fragments": [[0], [1]],
    "fragment_charges": [0, 0],
    "fragment_multiplicities": [2, 2],
    "molecular_charge": 0.0,
    "molecular_multiplicity": 1,
    "name": "h2",
}
INPUT: dict[str, Any] = {
    "schema_name": "qcschema_input",
    "schema_version": 1,
    "molecule": MOLECULE,
    "driver": "energy",
    "model": {"method": "hf", "basis": "sto-3g"},
    "keywords": {"backend": "cpu", "fitting": "none", "max_iterations": 20, "field": [0.0, 0.0, 0.001]},
    "protocols": {"wavefunction": "none"},
    "extras": {},
}
SECOND: dict[str, Any] = {
    "schema_name": "qcschema_atomic_input",
    "schema_version": 2,
    "molecule": {**MOLECULE, "schema_version": 3},
    "specification": {key: INPUT[key] for key in ("driver", "model", "keywords", "protocols", "extras")},
}
JOB = """molecule = "h2.xyz"
method = "b3lyp"
basis = "def2-svp"
charge = 0
multiplicity = 1
fitting = "jk"
max_memory = "4GB"
grid = [50, 194]
field = [0.0, 0.0, 0.001]
point_charges = [[0.5], [[0.0, 0.0, 6.0]]]
[options]
max_iterations = 50
level_shift = 0.1
[output]
json = "{name}.json"
"""
OPTIONS = ["max_iterations=50", "level_shift=0.3", "field=0,0,0.001", "stability=check", "smearing=1e-3", "seed=7"]
SIZES, GRIDS = ["4GB", "500 MiB", "1e9", "2000"], ["fine", "99,590", "coarse"]
METHODS = ["hf", "b3lyp-d3bj", "ub3lyp", "pm6", "rohf", "pbe0-d4", "wb97x"]
BASES = ["def2-svp", "6-31G(d,p)", "cc-pVDZ", "O=def2-tzvp,H=def2-svp", "6-311++g**", "sto-3g"]
CONSTRAINTS = ["distance 1 2 0.9", "angle 2 1 3 = 100", "dihedral 1 2 3 1 10", "atom 1", "distance 1 2 0.8 1.2 5"]
ISOTOPES = ["1=D", "2=13C,3=2.014", "H=D"]
CONFIGURATIONS = ["[Ar] 3d5 4s1", "1s2 2s2 2p6", "[Xe] 4f7 5d1 6s2"]
SMILES = ["CCO", "c1ccccc1", "[NH4+]", "O.O", "[O][O]", "C1CC1C(=O)O"]
ARGUMENTS = [
    ["energy", "h2.xyz", "-m", "pm6", "-q"],
    ["energy", "h2.xyz", "-m", "hf", "-b", "sto-3g", "--fitting", "none", "--backend", "cpu", "-o", "seed=3"],
    ["energy", "h2.xyz", "-m", "am1", "--charge", "1", "--multiplicity", "2", "--json", "a.json"],
    ["gradient", "h2.xyz", "-m", "rm1", "--max-memory", "4GB"],
    ["run", "h2.toml", "--quiet"],
    ["functionals", "b3lyp"],
    ["kernel", "overlap", "s", "s"],
    ["report", "h2.json"],
    ["atom", "--element", "H", "--nucleus", "point"],
    ["optimize", "h2.xyz", "-m", "hf", "-b", "sto-3g", "--max-steps", "9", "-q"],
    ["frequencies", "h2.xyz", "-m", "hf", "-b", "sto-3g", "--scale", "0.9", "-q"],
    ["md", "h2.xyz", "-m", "pm3", "--steps", "2", "--timestep", "0.5", "-q"],
    ["energy", "h2.xyz", "h2.xyz", "-m", "mndo", "--out", "table.csv"],
    ["energy", "h2.xyz", "-m", "hf", "-b", "sto-3g", "--counterpoise", "1,1", "--multiplicity", "1"],
    ["cube", "h2.json", "--orbital", "density", "--spacing", "1"],
]

NUMBERS = ["nan", "-inf", "1e999", "1e308", "1e-308", "0", "-1", "-0.0", "9" * 25, "1D+00", "٣", "1e400", "0x10"]
WORDS = ["H", "Xx", "@", "charge=9", "mult=", "BASIS", "END", "ECP", "SP", "null", "=", "-", "--", "~", "..", "/", "é"]
MARKS = ["", "\n", " ", "\t", "\0", "****", "{", "}", "[", "]", '"', "'", "\x0b", "#", ",", "\x85", "\ud800", "a" * 300]
VALUES: list[Any] = [
    None, True, False, 0, 5, -1, 1e308, 1e-308, 10**30, "", "x", "nan", [], {}, [[]], [None], [1e308] * 3, {"a": 1},
    ["H"], [0, 0], "a" * 300, "\0", float("inf"), [[0.1], [[0, 0, 1e9]]],
]  # fmt: skip


def damage(text: str, random: random.Random) -> str:
    """A text with one to four pieces cut out, doubled, moved or replaced."""
    for _ in range(random.randint(1, 4)):
        start = random.randint(0, len(text))
        end = min(len(text), start + random.choice((0, 1, 3, 12, 80)))
        kind = random.random()
        if kind < 0.5:
            middle = random.choice(random.choice((NUMBERS, WORDS, MARKS)))
        elif kind < 0.7:
            middle = text[start:end] * random.choice((2, 3, 50))
        elif kind < 0.85:
            middle = chr(random.choice((random.randint(0, 255), random.randint(256, 0xFFFF))))
        else:
            middle = text[random.randint(0, len(text)) :][:20]
        text = text[:start] + middle + text[end:]
    return text


def damage_words(words: list[str], random: random.Random) -> list[str]:
    """A command line with words left out, doubled, swapped or damaged."""
    words = list(words)
    for _ in range(random.randint(1, 3)):
        k = random.randrange(len(words)) if words else 0
        kind = random.random()
        if kind < 0.5 and words:
            words[k] = damage(words[k], random)[:200]
        elif kind < 0.65 and words:
            del words[k]
        elif kind < 0.8:
            words.insert(k, random.choice([*WORDS, *NUMBERS, "--json", "-v", "-o", "--threads", "--spin", "--help"]))
        elif words:
            words[k], words[0] = words[0], words[k]
    return [word.replace("\0", "") for word in words]


def damage_data(data: Any, random: random.Random) -> Any:
    """Plain data with one to three values replaced, removed or added."""
    data = json.loads(json.dumps(data))
    for _ in range(random.randint(1, 3)):
        targets = list(_containers_and_keys(data))
        holder, key = random.choice(targets)
        if random.random() < 0.2 and isinstance(holder, dict):
            del holder[key]
        elif random.random() < 0.1 and isinstance(holder, dict):
            holder[damage(str(key), random)] = copy.deepcopy(random.choice(VALUES))
        elif isinstance(holder[key], str) and random.random() < 0.5:
            holder[key] = damage(holder[key], random)
        else:
            holder[key] = copy.deepcopy(random.choice(VALUES))
    return data


def _containers_and_keys(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every value of nested data, as its container and its key there; the data must not be empty."""
    for key in list(data) if isinstance(data, dict) else range(len(data)):
        yield data, key
        if isinstance(data[key], dict | list) and data[key]:
            yield from _containers_and_keys(data[key])


# ------------------------------------------------------------------------------------------------------- targets


def read_molecule(text: str) -> None:
    source = source_from_text(text, "in.txt", "in", None, None)
    choose_model(source, Model())
    safe_label(text)


def read_basis(text: str) -> None:
    for table in parse_basis(text).values():
        for shell in table.shells:
            Shell.from_table(0, shell.l, shell.exponents, shell.coefficients, True)


def read_result(schema: Any) -> None:
    found = cuanto.read(schema)
    repr(found)
    with contextlib.suppress(CuantoError):
        json.dumps(found.to_qcschema())


def calculate(given: Any) -> None:
    """Run the calculation of a QCSchema input."""
    cuanto.compute(given, raise_error=True)


def read_options(text: str) -> None:
    given = parse_options([text])
    checked_keywords(given, "-o")


def request(given: Any) -> None:
    """Check a whole request; an AtomicInput has molecule, model and keywords."""
    text = json.dumps(given)
    source = source_from_text(text, "in.json", "in", None, None)
    model = choose_model(source, Model())
    assert model.method is not None
    Request.of(source.molecule, model.method, model.basis, **model.keywords)


def read_name_of_basis(name: str) -> None:
    for symbol, source in sources_by_element(name, ["H", "O"]).items():
        element_tables(source, [symbol])


def constrain(text: str) -> None:
    water = cuanto.Molecule.from_string(XYZ)
    for kind in ("freeze", "set", "scan"):
        with contextlib.suppress(CuantoError):
            read_constraints(water, **{kind: [text]})


def read_atom(text: str) -> None:
    parse_input(text).atom()


def read_job_file(text: str) -> None:
    Path("job.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
    read_job(Path("job.toml"))


def read_journal(text: str) -> None:
    Path("a.journal").write_bytes(text.encode("utf-8", "surrogatepass"))
    list(JsonLines("a.journal").read())


def command(arguments: list[str]) -> int:
    """Run a command in this process, and return its status; only 70 is an internal error."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            run([word.encode("utf-8", "replace").decode() for word in arguments])
        except SystemExit as leaving:
            if leaving.code == INTERNAL_ERROR:
                raise AssertionError(out.getvalue()) from None
            return int(leaving.code or 0)
    return 0


@dataclass(frozen=True)
class Target:
    """Something that reads inputs, valid examples, how they are damaged, and its `share` of all inputs."""

    act: Callable[[Any], object]
    examples: list[Any]
    damage: Callable[[Any, random.Random], Any] = damage
    share: float = 1.0


def _texts(*given: Any) -> list[str]:
    return [one if isinstance(one, str) else json.dumps(one) for one in given]


TARGETS: dict[str, Target] = {
    "molecules": Target(read_molecule, _texts(XYZ, GHOST, MOLDEN, MOLECULE, INPUT, SECOND), share=4),
    "QCSchema": Target(read_molecule, [json.dumps(one) for one in (MOLECULE, INPUT, SECOND)], share=1),
    "requests": Target(request, [INPUT, SECOND], damage_data, share=3),
    "basis sets": Target(read_basis, _texts(NWCHEM, GAUSSIAN, EXCHANGE), share=4),
    "BSE JSON": Target(lambda data: read_basis(json.dumps(data)), [EXCHANGE], damage_data, share=2),
    "jobs": Target(read_job_file, [JOB], share=2),
    "atoms": Target(read_atom, [NITROGEN, CHROMIUM, LISTED, OPTIMISE], share=2),
    "options": Target(read_options, OPTIONS, share=2),
    "sizes": Target(lambda text: parse_size(text, "size"), SIZES, share=0.5),
    "grids": Target(lambda text: GridSettings.of(option_value(text)), GRIDS, share=0.5),
    "methods": Target(kind_of, METHODS, share=1),
    "names of sets": Target(read_name_of_basis, BASES, share=1),
    "constraints": Target(constrain, CONSTRAINTS, share=1),
    "isotopes": Target(parse_isotopes, ISOTOPES, share=0.5),
    "configurations": Target(parse_configuration, CONFIGURATIONS, share=0.5),
    "tempered sets": Target(parse_parameters, ["0.1 2.5 1.0 2.0"], share=0.2),
    "ranges of exponents": Target(parse_ranges, ["s(1:5)p(2:4)"], share=0.3),
    "journals": Target(read_journal, ['{"key": "a", "row": {}}\n{"key": "b"}\n'], share=0.5),
    "SMILES": Target(cuanto.Molecule.from_smiles, SMILES, lambda text, r: damage(text, r)[:30], share=0.2),
    "results": Target(read_result, [], damage_data, share=2),
    "calculations": Target(calculate, [INPUT, SECOND], damage_data, share=0.5),
    "commands": Target(command, ARGUMENTS, damage_words, share=0.5),
}


@dataclass
class Campaign:
    """Inputs that were tried, by target, and those that ended in anything but a result or an error of cuanto."""

    seed: int = 1
    tried: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def run(self, count: int, first: int = 0) -> None:
        """Try `count` inputs; files are written to the working folder."""
        prepare()
        for number in range(first, first + count):
            self.attempt(number)

    def attempt(self, number: int) -> None:
        """Try one input."""
        rng = random.Random(f"{self.seed} {number}")
        name = rng.choices(list(TARGETS), [target.share for target in TARGETS.values()])[0]
        target = TARGETS[name]
        given = target.damage(rng.choice(target.examples), rng)
        self.tried[name] += 1
        try:
            with time_limit(LONGEST), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                target.act(given)
        except CuantoError:
            pass
        except Exception:
            self.failures.append(f"input {number}, {name}: {given!r:.2000}\n{traceback.format_exc()}")
            print(self.failures[-1], flush=True)


def prepare() -> None:
    """Write the files that commands name, and compute results to be damaged."""
    h2 = "2\n\nH 0 0 0\nH 0 0 0.74\n"
    Path("h2.xyz").write_text(h2)
    molecule = cuanto.Molecule.from_string(h2)
    results = [cuanto.energy(molecule, "pm6", backend="cpu")]
    results.append(cuanto.energy(molecule, "hf", "sto-3g", fitting="none", backend="cpu"))
    if "results" in TARGETS:
        TARGETS["results"].examples[:] = [result.to_qcschema() for result in results]
    Path("h2.json").write_text(json.dumps(results[1].to_qcschema()))
    job = JOB.replace("b3lyp", "hf").replace("def2-svp", "sto-3g").replace("grid = [50, 194]\n", "")
    Path("h2.toml").write_text(job)


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise a TimeoutError in the main thread after this time."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def main() -> int:
    """Run a campaign in an empty folder and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="record of the campaign")
    given = parser.parse_args()
    record = given.json and given.json.resolve()
    campaign, begin = Campaign(given.seed), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        campaign.run(given.count, given.first)
    seconds = time.perf_counter() - begin
    counts = ", ".join(f"{name} {number}" for name, number in sorted(campaign.tried.items()))
    print(f"{campaign.tried.total()} inputs, {len(campaign.failures)} internal errors, {seconds:.0f} s ({counts})")
    if record:
        found: dict[str, Any] = {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "python": platform.python_version()}
        found |= {"cuanto": cuanto.__version__, "seed": given.seed, "first": given.first}
        found |= {"inputs": campaign.tried.total(), "seconds": round(seconds)}
        found |= {"internal_errors": len(campaign.failures), "targets": dict(sorted(campaign.tried.items()))}
        record.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
