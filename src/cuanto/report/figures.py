"""Plots as inline SVG; the style sheet of the page sets their colours, for light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cuanto.arrays import Array, Flags
from cuanto.methods import Iteration
from cuanto.report.markup import Markup, join, number, tag
from cuanto.units import HARTREE_IN_EV

MIN_DRAWN = 1e-300
"""Smaller numbers are not drawn on a logarithmic axis."""
BELOW, ABOVE = 14.0, 7.0
"""Range below the HOMO and above the LUMO that is shown, eV."""
LEVEL_SPACING_EV = 0.32
"""eV within which levels are drawn side by side."""
MAX_ABREAST = 6


@dataclass(frozen=True)
class Levels:
    """Orbitals of one spin in order of energy: energies (Hartree), occupations, and which are occupied."""

    eps_m: Array
    n_m: Array
    occupied_m: Flags

    @property
    def homo(self) -> float | None:
        """Highest energy of an occupied orbital, eV."""
        return max((self.eps_m[self.occupied_m] * HARTREE_IN_EV).tolist(), default=None)

    @property
    def lumo(self) -> float | None:
        """Lowest energy of another orbital, eV."""
        return min((self.eps_m[~self.occupied_m] * HARTREE_IN_EV).tolist(), default=None)


@dataclass(frozen=True)
class Frame:
    """Coordinates of a plot: pixels of its area, and the values at its edges."""

    left: float
    right: float
    top: float
    bottom: float
    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        """Horizontal pixel of a value."""
        return self.left + (self.right - self.left) * (value - self.x_low) / ((self.x_high - self.x_low) or 1.0)

    def y(self, value: float) -> float:
        """Vertical pixel of a value; larger values are higher up."""
        return self.bottom - (self.bottom - self.top) * (value - self.y_low) / ((self.y_high - self.y_low) or 1.0)


def text_at(x: float, y: float, words: object, class_: str = "tick", anchor: str = "middle") -> Markup:
    """Words at a pixel."""
    return tag("text", words, x=float(x), y=float(y), class_=class_, text_anchor=anchor)


def plot(id_: str, label: str, parts: Sequence[Markup]) -> Markup:
    """A drawing of the size that all plots have."""
    return tag("svg", *parts, viewBox="0 0 560 346", role="img", aria_label=label, class_="plot", id=id_)


def line(x1: float, x2: float, y: float, class_: str, *children: Markup) -> Markup:
    """A horizontal line."""
    return tag("line", *children, x1=x1, x2=x2, y1=y, y2=y, class_=class_)


def tick_step(span: float, most: int) -> int:
    """Distance of ticks: 1, 2 or 5 times a power of ten, so that there are at most `most` in `span`."""
    power = 1
    while span / power > most * 5:
        power *= 10
    return next(k * power for k in (1, 2, 5) if span / (k * power) <= most)


def _superscript(n: int) -> str:
    return str(n).translate(
        str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
    )


def convergence(history: Sequence[Iteration], tolerances: tuple[float | None, float | None]) -> Markup | None:
    """Energy change and gradient by iteration, logarithmic; their `tolerances` are dashed lines."""
    changes = [(one, abs(one.energy_change)) for one in history if MIN_DRAWN < abs(one.energy_change) < math.inf]
    gradients = [(one, abs(one.gradient)) for one in history if MIN_DRAWN < abs(one.gradient) < math.inf]
    values = [math.log10(v) for _, v in (*changes, *gradients)]
    if not values:
        return None
    limits = [math.log10(t) for t in tolerances if t]
    low, high = math.floor(min(*values, *limits, 0) - 0.2), math.ceil(max(*values, 0))
    low = max(low, -16)
    last = max(one.iteration for one in history)
    frame = Frame(58, 548, 16, 304, 1 if last > 1 else 0, max(last, 2), low, high)
    parts = [*decades(frame), *_iterations(frame, last)]
    for kind, tolerance in zip(("change", "gradient"), tolerances, strict=True):
        if tolerance and low <= math.log10(tolerance) <= high:
            parts.append(line(frame.left, frame.right, frame.y(math.log10(tolerance)), f"limit {kind}"))
    parts += [_series(frame, changes, "change", "|\u0394E|"), _series(frame, gradients, "gradient", "gradient")]
    label = "Convergence of the energy and of the orbital gradient by iteration"
    return plot("plot-convergence", label, parts)


def rules(frame: Frame, ticks: Iterable[tuple[int, str]]) -> list[Markup]:
    """Horizontal lines with labels; the one at zero is emphasised."""
    parts = []
    for value, label in ticks:
        y = frame.y(value)
        parts.append(line(frame.left, frame.right, y, "rule zero" if label == "0" else "rule"))
        parts.append(text_at(frame.left - 8, y + 4, label, anchor="end"))
    return parts


def decades(frame: Frame) -> list[Markup]:
    """Lines at powers of ten, with labels."""
    step = 1 if frame.y_high - frame.y_low <= 7 else 2 if frame.y_high - frame.y_low <= 14 else 4
    powers = [n for n in range(int(frame.y_low), int(frame.y_high) + 1) if n % step == 0]
    return rules(frame, [(n, f"10{_superscript(n)}") for n in powers])


def _iterations(frame: Frame, last: int) -> list[Markup]:
    step = tick_step(last, 14)
    shown = [i for i in range(1, last + 1) if i == 1 or i % step == 0]
    parts = [text_at(frame.x(i), frame.bottom + 20, i) for i in shown]
    return [*parts, text_at((frame.left + frame.right) / 2, frame.bottom + 37, "iteration", "label")]


def _series(frame: Frame, points: Sequence[tuple[Iteration, float]], kind: str, name: str) -> Markup:
    at = [
        (frame.x(step.iteration), frame.y(max(math.log10(value), frame.y_low)), step, value) for step, value in points
    ]
    curve = tag("polyline", points=" ".join(f"{x:.2f},{y:.2f}" for x, y, _, _ in at), class_=f"series {kind}")
    dots = []
    for x, y, step, value in at:
        energy = number(step.energy, 9, "Eh")
        hint = f"iteration {step.iteration}{', ' + step.step if step.step else ''}: {name} {value:.2e}, E = {energy}"
        dots.append(tag("circle", tag("title", hint), cx=x, cy=y, r="3.4", class_=f"dot {kind}"))
    return tag("g", curve, *dots)


def level_diagram(levels: Sequence[Levels]) -> Markup | None:
    """Orbital energies near the frontier; one column for each spin."""
    known = [e for spin in levels for e in (spin.homo, spin.lumo) if e is not None]
    if not known:
        return None
    low, high = min(known) - BELOW, max(known) + ABOVE
    shown = [e for spin in levels for e in (spin.eps_m * HARTREE_IN_EV).tolist() if low <= e <= high]
    low, high = min(shown) - 1.0, max(shown) + 1.0
    frame = Frame(58, 548, 16, 330, 0, len(levels), low, high)
    parts = _energy_axis(frame)
    for s, spin in enumerate(levels):
        parts += _column(frame, s, len(levels), spin)
        parts += _gap(frame, s, spin.homo, spin.lumo)
    label = "Orbital energies near the frontier, electronvolt"
    return plot("plot-levels", label, parts)


def _energy_axis(frame: Frame) -> list[Markup]:
    step = tick_step(frame.y_high - frame.y_low, 9)
    values = [step * i for i in range(math.ceil(frame.y_low / step), math.floor(frame.y_high / step) + 1)]
    title = text_at(14, (frame.top + frame.bottom) / 2, "energy / eV", "label turned")
    return [title, *rules(frame, [(value, number(value, 0)) for value in values])]


def _column(frame: Frame, s: int, spins: int, levels: Levels) -> list[Markup]:
    """Levels of one spin; those close to each other are drawn side by side."""
    e_m = levels.eps_m * HARTREE_IN_EV
    groups: list[list[int]] = []
    for m in np.flatnonzero((frame.y_low <= e_m) & (e_m <= frame.y_high)).tolist():
        if groups and len(groups[-1]) < MAX_ABREAST and e_m[m] - e_m[groups[-1][0]] < LEVEL_SPACING_EV:
            groups[-1].append(m)
        else:
            groups.append([m])
    width = (frame.right - frame.left) / spins
    middle = frame.left + width * (s + (0.40 if spins == 1 else 0.28))
    reach = width * (0.46 if spins == 1 else 0.4)
    parts = []
    if spins == 2:
        parts.append(text_at(middle, frame.top - 3, "\u03b1" if s == 0 else "\u03b2", "label"))
    for group in groups:
        each = min(reach / len(group), width * 0.2)
        for i, m in enumerate(group):
            start = middle + each * (i - len(group) / 2)
            e, k = float(e_m[m]), float(levels.n_m[m])
            kind = "empty" if not levels.occupied_m[m] else "single" if spins == 1 and k < 1.5 else "filled"
            hint = tag("title", f"orbital {m + 1}: {number(e, 3)} eV, {k:g} electron{'' if k == 1 else 's'}")
            parts.append(line(start + 2, start + each - 2, frame.y(e), f"level {kind}", hint))
    return parts


def _gap(frame: Frame, s: int, homo: float | None, lumo: float | None) -> list[Markup]:
    """Labels of HOMO and LUMO, and the gap between them."""
    width = (frame.right - frame.left) / frame.x_high
    x = frame.left + width * (s + (0.67 if frame.x_high == 1 else 0.53))
    parts = []
    close = homo is not None and lumo is not None and abs(frame.y(homo) - frame.y(lumo)) < 34
    for value, name, shift in ((homo, "HOMO", 15 if close else 4), (lumo, "LUMO", -7 if close else 4)):
        if value is not None:
            words = f"{name} {number(value, 2)}"
            parts.append(text_at(x + 14, frame.y(value) + shift, words, "mark", "start"))
    if homo is not None and lumo is not None:
        top, bottom = frame.y(lumo), frame.y(homo)
        ends = "".join(f"M{x - 4:.1f},{y:.1f}h8" for y in (bottom, top))
        parts.append(tag("path", d=f"M{x:.1f},{bottom:.1f}V{top:.1f}{ends}", class_="gap"))
        if not close:
            words = f"gap {number(lumo - homo, 2)} eV"
            parts.append(text_at(x + 14, (top + bottom) / 2 + 4, words, "mark strong", "start"))
    return parts


def bars(rows: Sequence[tuple[str, float, str]], signed: bool, id_: str) -> Markup:
    """Rows of name, bar and value; signed bars begin in the middle."""
    largest = max((abs(value) for _, value, _ in rows), default=0.0) or 1.0
    lines = []
    for name, value, words in rows:
        share = 100 * abs(value) / largest * (0.5 if signed else 1.0)
        start = 50 - share if signed and value < 0 else 50 if signed else 0
        kind = "minus" if value < 0 else "plus"
        bar = tag("i", class_=kind, style=f"left:{start:.2f}%;width:{max(share, 0.4):.2f}%")
        track = tag("span", bar, class_="track signed" if signed else "track")
        lines.append(tag("li", tag("b", name), track, tag("span", words, class_="value")))
    return tag("ul", join(*lines), class_="bars", id=id_)
