"""What the page says, card by card; a card whose numbers the result lacks says so instead of vanishing."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cuanto.report import figures, reproduce
from cuanto.report.markup import Markup, join, number, seconds, tag
from cuanto.report.record import Record
from cuanto.report.surfaces import SMALLEST, Surface
from cuanto.units import HARTREE_IN_EV

DEFAULTS = {"energy_tolerance": 1e-9, "gradient_tolerance": 1e-5}
"""Of the SCF, where the result does not say otherwise."""
SHORTEST = 5e-4
"""Seconds: steps that took less are not worth a bar."""
MOST_ROWS = 400
"""Orbitals on each side of the frontier that the table has."""
LEVEL, SMALL_LEVEL = 0.03, 0.05
"""Bohr^-3/2: the surface that is shown first; tighter where orbitals are as large as the molecule."""
SMALL = 8
"""Atoms of such a molecule."""
STYLES = (("ball", "Ball & stick"), ("stick", "Sticks"), ("sphere", "Spheres"))


def body(record: Record, surfaces: list[Surface]) -> Markup:
    """Everything between the scripts."""
    cards = [
        _card("SCF convergence", _convergence(record), _legend(record)),
        _card("Orbital energies", *_orbitals(record)),
        _card("Atomic charges", *_charges(record)),
        _card("Where the time went", *_timings(record)),
        _card("Energy by term", _terms(record)),
        _card("Notes", *_notes(record)),
    ]
    main = tag(
        "main",
        tag("section", _stage(record, surfaces), _facts(record), class_="hero"),
        tag("section", *cards, class_="cards"),
        _card("Reproduce it", *_reproduce(record), class_="card wide"),
    )
    return join(_header(record), main, _footer(record))


def _card(title: str, *content: object, class_: str = "card") -> Markup:
    return tag("article", tag("h2", title), *content, class_=class_)


def _missing(words: str) -> Markup:
    return tag("p", words, class_="missing")


def hill_formula(record: Record) -> Markup:
    """Elements in Hill's order, and the charge."""
    parts = [join(element, tag("sub", n) if n > 1 else None) for element, n in record.molecule.composition.items()]
    charge = record.molecule.charge
    if charge:
        sign = "+" if charge > 0 else "\u2212"
        parts.append(tag("sup", f"{abs(charge) if abs(charge) > 1 else ''}{sign}"))
    return join(*parts)


def _header(record: Record) -> Markup:
    named = record.molecule.name not in ("", "molecule")
    name = record.molecule.name if named else hill_formula(record)
    badge = tag("span", "converged", class_="badge good")
    if not record.converged:
        badge = tag("span", "NOT converged", class_="badge bad", role="alert")
    level = join(record.method, f" / {record.basis}" if record.basis else None)
    formula = tag("span", hill_formula(record), class_="formula") if named else None
    words = tag("p", formula, tag("span", level, class_="level"), badge)
    theme = tag("button", "\u25d0", type="button", id="theme", title="Light or dark", aria_label="Light or dark")
    return tag("header", tag("div", tag("h1", name), words), theme)


def _stage(record: Record, surfaces: list[Surface]) -> Markup:
    """The molecule, and what is laid over it."""
    canvas = tag(
        "div",
        tag("p", "Drawing needs JavaScript and WebGL.", class_="missing"),
        id="viewer",
        role="img",
        aria_label=f"The molecule {record.molecule.name} in three dimensions; drag to turn it",
    )
    surface = [("none", "Molecule"), *((s.key, s.name) for s in surfaces)]
    controls: list[Markup] = []
    if surfaces:
        controls.append(_choice("surface", "Surface", surface, surfaces[0].key))
        slider = tag("input", type="range", id="isovalue", min="0", max="100", step="1", value=_slider(record))
        controls.append(
            tag("label", tag("span", "Isovalue"), slider, tag("output", id="isovalue-text"), class_="slide")
        )
    else:
        controls.append(_missing(record.no_orbitals))
    controls.append(_choice("style", "Atoms", STYLES, "ball"))
    labels = [("none", "No labels"), ("names", "Symbols")]
    if record.charges:
        labels.append(("charges", "Charges"))
    controls.append(_choice("labels", "Labels", labels, "none"))
    buttons = [tag("button", words, type="button", id=key) for key, words in
               (("spin", "Spin"), ("reset", "Reset view"), ("save", "Save picture"))]  # fmt: skip
    controls.append(tag("div", *buttons, class_="buttons"))
    hint = tag("p", "Drag to turn, click and scroll to zoom, Ctrl-drag to move.", class_="hint")
    return tag("div", canvas, tag("div", *controls, hint, class_="controls"), class_="stage card")


def _slider(record: Record) -> int:
    """Place on the slider, which is logarithmic from SMALLEST to its twentyfold, as in the script."""
    value = SMALL_LEVEL if record.molecule.natom <= SMALL else LEVEL
    return round(100 * math.log(value / SMALLEST) / math.log(20))


def _choice(name: str, title: str, options: object, chosen: str) -> Markup:
    """One of several, as a row of buttons."""
    rows = []
    for key, words in options:  # type: ignore[attr-defined]
        box = tag("input", type="radio", name=name, value=key, checked=key == chosen)
        rows.append(tag("label", box, tag("span", words)))
    return tag("fieldset", tag("legend", title), *rows, class_="choice", data_name=name)


def _facts(record: Record) -> Markup:
    """The numbers that are looked for first."""
    molecule = record.molecule
    facts: list[tuple[str, str, str]] = []
    if record.heat_of_formation is not None:
        facts.append(("Heat of formation", number(record.heat_of_formation, 3), "kcal/mol"))
    gaps = [number(gap, 2) for gap in (_gap(eps, n) for eps, n in record.levels) if gap is not None]
    if gaps:
        facts.append(("HOMO\u2013LUMO gap" + (", \u03b1 and \u03b2" if len(gaps) == 2 else ""), "; ".join(gaps), "eV"))
    if record.dipole is not None:
        about = ", about the centre of mass" if molecule.charge else ""
        facts.append((f"Dipole moment{about}", number(math.hypot(*record.dipole), 3), "Debye"))
    facts.append(
        ("Charge, multiplicity", f"{molecule.charge:+d}".replace("+0", "0") + f", {molecule.multiplicity}", "")
    )
    if len(record.levels) == 2 and record.s_squared is not None:
        facts.append(("\u27e8S\u00b2\u27e9", number(record.s_squared, 4), ""))
    ghosts = int(molecule.nuclei.ghosts.sum())
    counted = ((molecule.natom - ghosts, "atom"), (ghosts, "ghost"), (molecule.nelectron, "electron"))
    size = ", ".join(f"{n} {what}{'' if n == 1 else 's'}" for n, what in counted if n)
    facts.append(("Size", size, ""))
    if record.functions is not None:
        facts.append(("Basis functions" if record.basis else "Atomic orbitals", str(record.functions), ""))
    if record.iterations is not None:
        facts.append(("Iterations", str(record.iterations), ""))
    if record.timings:
        where = f"on {record.backend}" if record.backend else ""
        facts.append(("Time", seconds(sum(record.timings.values())), where))
    total = "Total energy" if record.converged else "Last energy, NOT converged"
    tiles = [_fact(total, number(record.energy, 8), "Hartree", "fact big")]
    return tag("div", *tiles, *(_fact(*fact) for fact in facts), class_="facts")


def _fact(name: str, value: str, unit: str, class_: str = "fact") -> Markup:
    return tag("div", tag("span", name), tag("strong", value, tag("small", unit) if unit else None), class_=class_)


def _gap(eps: tuple[float, ...], n: tuple[float, ...]) -> float | None:
    filled = [e for e, k in zip(eps, n, strict=True) if k > figures.EMPTY]
    empty = [e for e, k in zip(eps, n, strict=True) if k <= figures.EMPTY]
    return (min(empty) - max(filled)) * HARTREE_IN_EV if filled and empty else None


def _tolerances(record: Record) -> tuple[float | None, float | None]:
    """Of energy and gradient; another program's are not known."""
    if not record.program.startswith("cuanto"):
        return None, None
    given = []
    for name, default in DEFAULTS.items():
        value = record.keywords.get(name, default)
        given.append(float(value) if isinstance(value, (int, float)) and 0 < value < 1e6 else None)
    return given[0], given[1]


def _convergence(record: Record) -> Markup:
    drawn = figures.convergence(record.history, _tolerances(record))
    return drawn if drawn is not None else _missing("The iterations are not in this result.")


def _legend(record: Record) -> Markup | None:
    if not record.history:
        return None
    change = tag("span", "change of the energy / Hartree", class_="key change")
    return tag("p", change, tag("span", "orbital gradient", class_="key gradient"),
               tag("span", "dashed: tolerances", class_="key plain"), class_="legend")  # fmt: skip


def _orbitals(record: Record) -> tuple[Markup, ...]:
    drawn = figures.level_diagram(record.levels)
    if drawn is None:
        return (_missing("Orbital energies are not in this result."),)
    keys = tag(
        "p", tag("span", "occupied", class_="key filled"), tag("span", "empty", class_="key empty"), class_="legend"
    )
    rows = []
    for s, (eps, n) in enumerate(record.levels):
        spin = ("\u03b1", "\u03b2")[s] if len(record.levels) == 2 else ""
        last = sum(k > figures.EMPTY for k in n)
        for m, (e, k) in enumerate(zip(eps, n, strict=True), 1):
            if abs(m - last) > MOST_ROWS:
                continue
            cells = (spin, m, number(k, 3), number(e, 6), number(e * HARTREE_IN_EV, 4))
            rows.append(tag("tr", *(tag("td", cell) for cell in cells), class_="filled" if k > figures.EMPTY else None))
    whole = all(len(eps) <= MOST_ROWS for eps, _ in record.levels)
    words = "All orbital energies" if whole else f"{MOST_ROWS} orbital energies on each side of the gap"
    heads = (tag("th", head) for head in ("spin", "orbital", "electrons", "Hartree", "eV"))
    table = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows))
    return drawn, keys, tag("details", tag("summary", words), tag("div", table, class_="scroll"))


def _charges(record: Record) -> tuple[Markup, ...]:
    if not record.charges:
        return (_missing("Atomic charges are not in this result."),)
    tabs = []
    for i, (name, charges) in enumerate(record.charges.items()):
        rows = [
            (f"{symbol}{a}", q, number(q, 3).replace("\u22120.000", "0.000"))
            for a, (symbol, q) in enumerate(zip(record.molecule.symbols, charges, strict=True), 1)
        ]
        drawn = figures.bars(rows, True, f"plot-charges-{i}")
        tabs.append(tag("div", drawn, class_="pane scroll", data_pane=name, hidden=i > 0))
    names = [(name, name) for name in record.charges]
    if len(names) == 1:
        return tag("p", f"{names[0][0].capitalize()} charges / e", class_="hint"), *tabs
    return _choice("charges", "Charges / e", names, names[0][0]), *tabs


def _timings(record: Record) -> tuple[Markup, ...]:
    rows = [(name, t, seconds(t)) for name, t in record.timings.items() if t >= SHORTEST]
    if not rows:
        return (_missing("Timings are not in this result."),)
    rows.sort(key=lambda row: -row[1])
    where = f"Wall-clock time by step, on {record.backend}." if record.backend else "Wall-clock time by step."
    return figures.bars(rows, False, "plot-timings"), tag("p", where, class_="hint")


def _terms(record: Record) -> Markup:
    if not record.energies:
        return _missing("The terms of the energy are not in this result.")
    rows = [tag("tr", tag("th", name), tag("td", number(value, 8))) for name, value in record.energies.items()]
    name = "total / Hartree" if record.converged else "last total / Hartree, NOT converged"
    rows.append(tag("tr", tag("th", name), tag("td", number(record.energy, 8)), class_="total"))
    return tag("table", tag("tbody", *rows), class_="terms")


def _notes(record: Record) -> tuple[Markup, ...]:
    lines = list(record.notes)
    if record.dipole is not None:
        x, y, z = (number(value, 4) for value in record.dipole)
        about = ", about the centre of mass" if record.molecule.charge else ""
        lines.append(f"Dipole moment / Debye{about}: x {x}, y {y}, z {z}.")
    settings = ", ".join(f"{name} = {value}" for name, value in _short(record.keywords).items())
    if settings:
        lines.append(f"Settings: {settings}.")
    lines.append("Energies are in Hartree (Eh), orbital surfaces in Bohr^-3/2.")
    return (tag("ul", *(tag("li", line) for line in lines), class_="notes"),)


def _short(keywords: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value)[:60] for name, value in keywords.items() if value is not None}


def _reproduce(record: Record) -> tuple[Markup, ...]:
    texts = (
        ("Command line", "command", reproduce.command_line(record)),
        ("Python", "python", reproduce.python_text(record)),
        (f"{reproduce.file_name(record)} / Angstrom", "geometry", reproduce.xyz_text(record)),
    )
    blocks = []
    for title, key, text in texts:
        copy = tag("button", "Copy", type="button", class_="copy", data_copy=key)
        save = tag("button", "Save", type="button", class_="store", data_copy=key,
                   data_file=reproduce.file_name(record)) if key == "geometry" else None  # fmt: skip
        head = tag("div", tag("h3", title), tag("span", copy, save), class_="head")
        blocks.append(tag("div", head, tag("pre", tag("code", text, id=f"text-{key}")), class_=f"block {key}"))
    return (tag("div", *blocks, class_="blocks"),)


def _footer(record: Record) -> Markup:
    viewer = "Drawn by 3Dmol.js (N. Rego, D. Koes, doi:10.1093/bioinformatics/btu829)."
    return tag("footer", f"Computed by {record.program}. {viewer} This file asks nothing of the network.")
