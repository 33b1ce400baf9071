"""Contents of the page, card by card; a card says so if the result lacks its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cuanto.arrays import Array
from cuanto.methods import GaussianResult, Result
from cuanto.methods.summary import charge_columns, error_warnings, moment_lines, property_or_none
from cuanto.report import figures, reproduce
from cuanto.report.markup import Markup, headed_table, join, number, seconds, tag
from cuanto.report.motion import Motion
from cuanto.report.surfaces import MIN_ISOVALUE, Surface
from cuanto.scf.occupations import occupied
from cuanto.units import HARTREE_IN_EV
from cuanto.wording import count, format_charge

MIN_BAR_SECONDS = 5e-4
"""Seconds; steps that took less have no bar."""
MAX_ROWS = 400
"""Orbitals in the table on each side of the gap."""
LEVEL, SMALL_LEVEL = 0.03, 0.05
"""Isovalues shown first, Bohr^-3/2; the larger one for small molecules, whose orbitals extend beyond them."""
UNCONVERGED = "This calculation did not converge: its energy and everything below belong to the last iteration."
SMALL_MOLECULE_ATOMS = 8
"""Largest number of atoms of a small molecule."""
SMALLEST_DIPOLE = 0.05
"""Debye; smaller moments have no arrow."""
STYLES = (("ball", "Ball & stick"), ("stick", "Sticks"), ("sphere", "Spheres"))


def atomic_charges(result: Result) -> dict[str, Array]:
    """Charges of the atoms by the name of the analysis."""
    names = {"Loewdin": "L\u00f6wdin", "spin": "spin populations"}
    return {names.get(kind, kind): values for kind, values in charge_columns(result).items()}


def orbital_levels(result: Result) -> list[figures.Levels]:
    """Orbitals of each spin in order of energy; empty if a file has no energies."""
    if result.state.eps_sm is None:
        return []
    found = []
    for (eps_m, n_m), occupied_m in zip(result.levels(), occupied(result.occupations), strict=True):
        order = np.argsort(eps_m)
        found.append(figures.Levels(eps_m[order], n_m[order], occupied_m[order]))
    return found


def body(result: Result, surfaces: list[Surface], reason: str, motion: Motion) -> Markup:
    """Everything between the scripts; `reason`: why there are no surfaces."""
    cards = [
        *(_card(title, *content) for title, content in motion.cards()),
        _card("SCF convergence", *_convergence(result)),
        _card("Orbital energies", *_orbitals(result)),
        _card("Atomic charges", *_charges(result)),
        _card("Timings", *_timings(result)),
        _card("Energy by term", _terms(result)),
        _card("Estimated errors", *_errors(result)),
        _card("Notes", *_notes(result, motion)),
    ]
    main = tag(
        "main",
        tag("section", _stage(result, surfaces, reason, motion), _facts(result), class_="hero"),
        tag("section", *cards, class_="cards"),
        _card("Reproduce this result", *_reproduce(result, motion.command), class_="card wide"),
    )
    viewer = "Drawn by 3Dmol.js (N. Rego, D. Koes, doi:10.1093/bioinformatics/btu829)."
    footer = tag("footer", f"Computed by {result.program}. {viewer} This file makes no network requests.")
    return join(_header(result, motion.problem), main, footer)


def _card(title: str, *content: object, class_: str = "card") -> Markup:
    return tag("article", tag("h2", title), *content, class_=class_)


def _missing(what: str) -> Markup:
    return tag("p", f"{what} are not in this result.", class_="missing")


def hill_formula(result: Result) -> Markup:
    """Chemical formula in Hill order, with the charge."""
    parts = [join(element, tag("sub", n) if n > 1 else None) for element, n in result.molecule.composition.items()]
    charge = result.molecule.charge
    if charge:
        sign = "+" if charge > 0 else "\u2212"
        parts.append(tag("sup", f"{abs(charge) if abs(charge) > 1 else ''}{sign}"))
    return join(*parts)


def _header(result: Result, problem: str) -> Markup:
    named = result.molecule.name not in ("", "molecule")
    name = result.molecule.name if named else hill_formula(result)
    badge = tag("span", "converged", class_="badge good")
    banner = None
    if not result.converged:
        badge = tag("span", "NOT converged", class_="badge bad")
        banner = tag("p", UNCONVERGED, class_="banner", role="alert")
    level = join(result.method, f" / {result.basis_name}" if result.basis_name else None)
    formula = tag("span", hill_formula(result), class_="formula") if named else None
    warning = tag("span", problem, class_="badge bad", role="alert") if problem else None
    words = tag("p", formula, tag("span", level, class_="level"), badge, warning)
    theme = tag("button", "\u25d0", type="button", id="theme", title="Light or dark", aria_label="Light or dark")
    return tag("header", tag("div", tag("h1", name), words, banner), theme)


def _stage(result: Result, surfaces: list[Surface], reason: str, motion: Motion) -> Markup:
    """The viewer and its controls."""
    canvas = tag(
        "div",
        tag("p", "Drawing needs JavaScript and WebGL.", class_="missing"),
        id="viewer",
        role="img",
        aria_label=f"The molecule {result.molecule.name} in three dimensions; drag to rotate it",
    )
    controls: list[Markup] = motion.controls()
    if surfaces:
        controls += _surface_choices(surfaces)
        slider = tag("input", type="range", id="isovalue", min="0", max="100", step="1", value=_slider(result))
        controls.append(
            tag("label", tag("span", "Isovalue"), slider, tag("output", id="isovalue-text"), class_="slide")
        )
    else:
        controls.append(tag("p", reason, class_="missing"))
    controls.append(_choice("style", "Atoms", STYLES, "ball"))
    labels = [("none", "No labels"), ("names", "Symbols")]
    if atomic_charges(result):
        labels.append(("charges", "Charges"))
    controls.append(_choice("labels", "Labels", labels, "none"))
    words = {"spin": "Spin", "reset": "Reset view", "save": "Save picture"}
    if dipole_vector(result) is not None:
        words = {"arrow": "Dipole arrow", **words}
    buttons = [tag("button", text, type="button", id=key) for key, text in words.items()]
    controls.append(tag("div", *buttons, class_="buttons"))
    hint = tag("p", "Drag to rotate, click and scroll to zoom, Ctrl-drag to move.", class_="hint")
    return tag("div", canvas, tag("div", *controls, hint, class_="controls"), class_="stage card")


def _surface_choices(surfaces: Sequence[Surface]) -> list[Markup]:
    """Rows of buttons: the molecule alone and its spin density, then the orbitals of each spin."""
    rows: dict[str, list[tuple[str, str]]] = {"Surface": [("none", "Molecule")]}
    for surface in surfaces:
        rows.setdefault(surface.group or "Surface", []).append((surface.key, surface.name))
    chosen = next((s.key for s in surfaces if s.key.startswith("homo") and s.name == "HOMO"), surfaces[0].key)
    return [_choice("surface", title, options, chosen) for title, options in rows.items()]


def dipole_vector(result: Result) -> Array | None:
    """Dipole moment in Debye, if there is one that can be drawn."""
    found = property_or_none(result, "dipole_debye")
    return found if found is not None and SMALLEST_DIPOLE < math.hypot(*found) < math.inf else None


def _slider(result: Result) -> int:
    """Position on the slider, which is logarithmic from MIN_ISOVALUE to 20 times that, as in the script."""
    value = SMALL_LEVEL if result.molecule.natom <= SMALL_MOLECULE_ATOMS else LEVEL
    return round(100 * math.log(value / MIN_ISOVALUE) / math.log(20))


def _choice(name: str, title: str, options: Sequence[tuple[str, str]], chosen: str) -> Markup:
    """Row of buttons of which one is chosen."""
    rows = []
    for key, words in options:
        box = tag("input", type="radio", name=name, value=key, checked=key == chosen)
        rows.append(tag("label", box, tag("span", words)))
    return tag("fieldset", tag("legend", title), *rows, class_="choice", data_name=name)


def _facts(result: Result) -> Markup:
    """The most important numbers."""
    molecule, levels = result.molecule, orbital_levels(result)
    facts: list[tuple[str, str, str]] = []
    if (heat := property_or_none(result, "heat_of_formation")) is not None:
        facts.append(("Heat of formation", number(heat, 3), "kcal/mol"))
    gaps = [number(s.lumo - s.homo, 2) for s in levels if s.lumo is not None and s.homo is not None]
    if gaps:
        facts.append(("HOMO\u2013LUMO gap" + (", \u03b1 and \u03b2" if len(gaps) == 2 else ""), "; ".join(gaps), "eV"))
    if (dipole := property_or_none(result, "dipole_debye")) is not None:
        about = ", about the centre of mass" if molecule.charge else ""
        facts.append((f"Dipole moment{about}", number(math.hypot(*dipole), 3), "Debye"))
    facts.append(("Charge, multiplicity", f"{format_charge(molecule.charge)}, {molecule.multiplicity}", ""))
    if len(levels) == 2 and (s_squared := property_or_none(result, "s_squared")) is not None:
        facts.append(("\u27e8S\u00b2\u27e9", number(s_squared, 4), f"ideal {number(result.ideal_s_squared, 2)}"))
    ghosts = int(molecule.nuclei.ghosts.sum())
    counted = ((molecule.natom - ghosts, "atom"), (ghosts, "ghost"), (molecule.nelectron, "electron"))
    size = ", ".join(count(n, what) for n, what in counted if n)
    facts.append(("Size", size, ""))
    if isinstance(result, GaussianResult):
        facts.append(("Basis functions", str(result.basis.nbf), ""))
        if cores := int(result.basis.core_electrons.sum()):
            facts.append(("Electrons in core potentials", str(cores), ""))
    elif levels:
        facts.append(("Molecular orbitals", str(len(levels[0].eps_m)), ""))
    if result.iterations:
        facts.append(("Iterations", str(result.iterations), ""))
    if result.timings.seconds:
        where = f"on {result.backend_name}" if result.backend_name else ""
        facts.append(("Time", seconds(result.timings.total), where))
    total = "Total energy" if result.converged else "Last energy, NOT converged"
    kind = "fact big" if result.converged else "fact big unconverged"
    tiles = [_fact(total, number(result.energy, 8), "Hartree", kind)]
    if result.errors:
        facts.insert(0, ("Estimated error", f"{result.error:.0e}", "Hartree"))
    return tag("div", *tiles, *(_fact(*fact) for fact in facts), class_="facts")


def _fact(name: str, value: str, unit: str, class_: str = "fact") -> Markup:
    return tag("div", tag("span", name), tag("strong", value, tag("small", unit) if unit else None), class_=class_)


def _convergence(result: Result) -> tuple[Markup, ...]:
    ours = result.program.startswith("cuanto")  # the tolerances of other programs are unknown
    tolerances = (result.options.energy_tolerance, result.options.gradient_tolerance) if ours else (None, None)
    drawn = figures.convergence(result.history, tolerances)
    if drawn is None:
        return (_missing("The iterations"),)
    texts = ("energy change / Hartree", "orbital gradient", "dashed: tolerances")
    return drawn, _keys(*zip(texts, ("change", "gradient", "plain"), strict=True))


def _keys(*entries: tuple[str, str]) -> Markup:
    """Legend of a plot: words and style classes."""
    return tag("p", *(tag("span", words, class_=f"key {kind}") for words, kind in entries), class_="legend")


def _orbitals(result: Result) -> tuple[Markup, ...]:
    levels = orbital_levels(result)
    drawn = figures.level_diagram(levels)
    if drawn is None:
        return (_missing("Orbital energies"),)
    keys = _keys(("occupied", "filled"), ("empty", "empty"))
    rows = []
    for s, one in enumerate(levels):
        spin = ("\u03b1", "\u03b2")[s] if len(levels) == 2 else ""
        last = int(one.occupied_m.sum())
        for m, (e, k, full) in enumerate(zip(one.eps_m, one.n_m, one.occupied_m, strict=True), 1):
            if abs(m - last) > MAX_ROWS:
                continue
            cells = (spin, m, number(k, 3), number(e, 6), number(e * HARTREE_IN_EV, 4))
            rows.append(tag("tr", *(tag("td", cell) for cell in cells), class_="filled" if full else None))
    whole = all(len(one.eps_m) <= MAX_ROWS for one in levels)
    words = "All orbital energies" if whole else f"{MAX_ROWS} orbital energies on each side of the gap"
    table = headed_table(("spin", "orbital", "electrons", "Hartree", "eV"), rows)
    return drawn, keys, tag("details", tag("summary", words), tag("div", table, class_="scroll"))


def _charges(result: Result) -> tuple[Markup, ...]:
    by_analysis = atomic_charges(result)
    if not by_analysis:
        return (_missing("Atomic charges"),)
    tabs = []
    for i, (name, charges) in enumerate(by_analysis.items()):
        rows = [
            (f"{symbol}{a}", q, number(q, 3).replace("\u22120.000", "0.000"))
            for a, (symbol, q) in enumerate(zip(result.molecule.symbols, charges, strict=True), 1)
        ]
        drawn = figures.bars(rows, True, f"plot-charges-{i}")
        tabs.append(tag("div", drawn, class_="pane scroll", data_pane=name, hidden=i > 0))
    names = [(name, name) for name in by_analysis]
    if len(names) == 1:
        return tag("p", f"{names[0][0].capitalize()} charges / e", class_="hint"), *tabs
    return _choice("charges", "Charges / e", names, names[0][0]), *tabs


def _timings(result: Result) -> tuple[Markup, ...]:
    rows = [(name, t, seconds(t)) for name, t in result.timings.seconds.items() if t >= MIN_BAR_SECONDS]
    if not rows:
        return (_missing("Timings"),)
    rows.sort(key=lambda row: -row[1])
    where = f", on {result.backend_name}" if result.backend_name else ""
    return figures.bars(rows, False, "plot-timings"), tag("p", f"Wall-clock time by step{where}.", class_="hint")


def _terms(result: Result) -> Markup:
    if not result.energies:
        return _missing("The terms of the energy")
    rows = [tag("tr", tag("th", name), tag("td", number(value, 8))) for name, value in result.energies.items()]
    name = "total / Hartree" if result.converged else "last total / Hartree, NOT converged"
    rows.append(tag("tr", tag("th", name), tag("td", number(result.energy, 8)), class_="total"))
    return tag("table", tag("tbody", *rows), class_="terms")


def _errors(result: Result) -> tuple[Markup, ...]:
    if not result.errors:
        return (_missing("Error estimates"),)
    rows = [tag("tr", tag("th", name), tag("td", f"{value:+.1e}")) for name, value in result.errors.items()]
    rows.append(tag("tr", tag("th", "together / Hartree"), tag("td", f"{result.error:.1e}"), class_="total"))
    words = "Energy minus that without the approximation; errors of method and basis are not included."
    return tag("table", tag("tbody", *rows), class_="terms"), tag("p", words, class_="hint")


def _notes(result: Result, motion: Motion) -> tuple[Markup, ...]:
    lines = [*result.notes, *error_warnings(result), *(() if motion.vibrations is None else motion.vibrations.notes)]
    if (dipole := property_or_none(result, "dipole_debye")) is not None:
        x, y, z = (number(value, 4) for value in dipole)
        about = ", about the centre of mass" if result.molecule.charge else ""
        lines.append(f"Dipole moment / Debye{about}: x {x}, y {y}, z {z}; the arrow points from minus to plus.")
    lines += [f"{line[0].upper()}{line[1:]}.".replace("-", "\u2212") for line in moment_lines(result)]
    given = {name: str(value)[:60] for name, value in result.keywords.items() if value is not None}
    settings = ", ".join(f"{name} = {value}" for name, value in given.items())
    if settings:
        lines.append(f"Settings: {settings}.")
    lines.append("Energies are in Hartree (Eh), orbital surfaces in Bohr^-3/2, the spin density in Bohr^-3.")
    return (tag("ul", *(tag("li", line) for line in lines), class_="notes"),)


def _reproduce(result: Result, command: str) -> tuple[Markup, ...]:
    texts = (
        ("Command line", "command", reproduce.command_line(result, command)),
        ("Python", "python", reproduce.python_text(result, command)),
        (f"{reproduce.file_name(result)} / Angstrom", "geometry", result.to_xyz()),
    )
    blocks = []
    for title, key, text in texts:
        copy = tag("button", "Copy", type="button", class_="copy", data_copy=key)
        save = tag("button", "Save", type="button", class_="store", data_copy=key,
                   data_file=reproduce.file_name(result)) if key == "geometry" else None  # fmt: skip
        head = tag("div", tag("h3", title), tag("span", copy, save), class_="head")
        blocks.append(tag("div", head, tag("pre", tag("code", text, id=f"text-{key}")), class_=f"block {key}"))
    return (tag("div", *blocks, class_="blocks"),)
