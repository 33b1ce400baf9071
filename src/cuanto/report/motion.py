"""Cards of moving atoms: the steps of an optimisation, the infrared spectrum with its modes, thermochemistry."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.motion.optimize import OptimizationResult
from cuanto.motion.thermochemistry import Thermochemistry
from cuanto.motion.vibrations import Vibrations
from cuanto.report import figures
from cuanto.report.markup import Markup, headed_table, number, tag
from cuanto.system import Molecule
from cuanto.units import BOHR_IN_ANGSTROM, HARTREE_IN_KJ_PER_MOL

WIDTH = 20.0
"""Full width at half maximum of the bands shown first, cm^-1."""
WIDEST = 100
WAVENUMBER_MARGIN = 300.0
"""Shown beyond the highest wavenumber, cm^-1."""
MIN_ENERGY = 1e-9
"""Hartree: smaller differences of energies are drawn at this height."""
POINTS = 700


@dataclass(frozen=True, eq=False)
class Geometry:
    """One geometry of an optimisation: energy (Hartree) and largest component of the gradient (Hartree/Bohr)."""

    number: int
    molecule: Molecule
    energy: float
    gradient: float


@dataclass(frozen=True, eq=False)
class Motion:
    """What a page shows in addition to a single result."""

    vibrations: Vibrations | None = None
    geometries: tuple[Geometry, ...] = ()
    command: str = "energy"
    """Name of the command that computes it."""
    problem: str = ""
    """Why the result should not be used as it is."""

    @classmethod
    def of_vibrations(cls, vibrations: Vibrations) -> Motion:
        """Spectrum, modes and thermochemistry."""
        n = len(vibrations.imaginary)
        problem = "" if n == 0 else "1 imaginary mode" if n == 1 else f"{n} imaginary modes"
        return cls(vibrations=vibrations, command="frequencies", problem=problem)

    @classmethod
    def of_geometries(cls, geometries: tuple[Geometry, ...], converged: bool) -> Motion:
        """Steps of an optimisation."""
        return cls(geometries=geometries, command="optimize", problem="" if converged else "NOT optimised")

    def data(self) -> dict[str, Any]:
        """What the script animates; lengths in Angstrom."""
        found: dict[str, Any] = {}
        if self.vibrations is not None and len(self.vibrations.wavenumbers):
            found["vibrations"] = _spectrum_data(self.vibrations)
        if len(self.geometries) > 1:
            frame = _steps_frame(self.geometries)
            found["path"] = {
                "frames": [_positions(one.molecule) for one in self.geometries],
                "words": [_step_words(one) for one in self.geometries],
                "places": [round(frame.x(k), 2) for k in range(1, len(self.geometries) + 1)],
            }
        return found

    def cards(self) -> list[tuple[str, tuple[object, ...]]]:
        """Titles and contents."""
        found: list[tuple[str, tuple[object, ...]]] = []
        if len(self.geometries) > 1:
            found.append(("Optimisation", optimisation_card(self.geometries)))
        if self.vibrations is not None:
            if len(self.vibrations.wavenumbers):
                found.append(("Infrared spectrum", spectrum_card(self.vibrations)))
                found.append(("Normal modes", (modes_table(self.vibrations),)))
            group = self.vibrations.symmetry[0]
            found.append(("Thermochemistry", thermochemistry_card(self.vibrations.thermochemistry, group)))
        return found

    def controls(self) -> list[Markup]:
        """Controls below the viewer."""
        if len(self.geometries) < 2:
            return []
        last = len(self.geometries) - 1
        slider = tag("input", type="range", id="geometry", min="0", max=str(last), step="1", value=str(last))
        words = tag("output", _step_words(self.geometries[-1]), id="geometry-text")
        return [tag("label", tag("span", "Step"), slider, words, class_="slide")]


def geometries_of(result: OptimizationResult) -> tuple[Geometry, ...]:
    """Accepted geometries of an optimisation; of a scan or path its points."""
    accepted = [step for step in result.steps if step.accepted and step.stage in ("", result.steps[-1].stage)]
    chosen: Sequence[Any] = result.points or accepted
    return tuple(
        Geometry(k, one.molecule, one.energy, float(np.abs(one.gradient).max()))
        for k, one in enumerate(chosen, start=1)
    )


def geometries_in(trajectory: Sequence[Mapping[str, Any]], molecules: Sequence[Molecule]) -> tuple[Geometry, ...]:
    """Geometries of a QCSchema OptimizationResult, whose trajectory has an AtomicResult for each of them."""
    return tuple(
        Geometry(k, molecule, float(row["properties"]["return_energy"]), float(np.abs(row["return_result"]).max()))
        for k, (row, molecule) in enumerate(zip(trajectory, molecules, strict=True), start=1)
    )


def _positions(molecule: Molecule) -> list[list[float]]:
    return [[round(float(x), 5) for x in R_x] for R_x in molecule.R_ax * BOHR_IN_ANGSTROM]


def _step_words(geometry: Geometry) -> str:
    return f"{geometry.number}: {number(geometry.energy, 6)} Eh, gradient {geometry.gradient:.1e}"


# ------------------------------------------------------------------------------------------------ optimisation


def _steps_frame(geometries: Sequence[Geometry]) -> figures.Frame:
    lowest = min(one.energy for one in geometries)
    values = [max(one.energy - lowest, MIN_ENERGY) for one in geometries] + [one.gradient for one in geometries]
    powers = [math.log10(max(value, MIN_ENERGY)) for value in values]
    low, high = math.floor(min(powers)), math.ceil(max(*powers, 0.0))
    return figures.Frame(58, 548, 16, 304, 1, max(len(geometries), 2), low, high)


def optimisation_card(geometries: Sequence[Geometry]) -> tuple[object, ...]:
    """Energy above the lowest one and largest gradient by step, logarithmic."""
    frame, lowest = _steps_frame(geometries), min(one.energy for one in geometries)
    parts = figures.decades(frame)
    step = figures.tick_step(len(geometries), 14)
    shown = [k for k in range(1, len(geometries) + 1) if k == 1 or k % step == 0]
    parts += [figures.text_at(frame.x(k), frame.bottom + 20, k) for k in shown]
    parts.append(figures.text_at((frame.left + frame.right) / 2, frame.bottom + 37, "step", "label"))
    for kind, name in (("change", "E \u2212 lowest E"), ("gradient", "largest gradient")):
        dots, corners = [], []
        for k, one in enumerate(geometries, start=1):
            value = one.energy - lowest if kind == "change" else one.gradient
            x, y = frame.x(k), frame.y(math.log10(max(value, MIN_ENERGY)))
            corners.append(f"{x:.2f},{y:.2f}")
            hint = tag("title", f"step {_step_words(one)}; {name} {value:.2e}")
            dots.append(tag("circle", hint, cx=x, cy=y, r="3.4", class_=f"dot {kind}", data_step=str(k - 1)))
        parts.append(tag("g", tag("polyline", points=" ".join(corners), class_=f"series {kind}"), *dots))
    x = frame.x(len(geometries))
    parts.append(tag("line", x1=x, x2=x, y1=frame.top, y2=frame.bottom, class_="marker", id="step-marker"))
    drawn = figures.plot("plot-optimisation", "Energy and gradient of the optimisation by step", parts)
    keys = tag(
        "p",
        tag("span", "energy above the lowest / Hartree", class_="key change"),
        tag("span", "largest gradient / (Hartree/Bohr)", class_="key gradient"),
        class_="legend",
    )
    hint = tag("p", "Click a point, or move the slider below the molecule, to see its geometry.", class_="hint")
    return drawn, keys, hint


# ------------------------------------------------------------------------------------------------ spectrum


def band_heights(wavenumbers: Array, intensities: Array, at: Array, width: float) -> Array:
    """Sum of Lorentzian bands whose height is the intensity of their mode; imaginary modes have none."""
    real = wavenumbers > 0
    half = 0.5 * width
    shape = half**2 / ((at[:, None] - wavenumbers[real]) ** 2 + half**2)
    return np.asarray(shape @ intensities[real])


def _spectrum_frame(vibrations: Vibrations) -> figures.Frame:
    """High wavenumbers are on the left."""
    high = max(500.0, 100.0 * math.ceil((float(vibrations.scaled_wavenumbers.max()) + WAVENUMBER_MARGIN) / 100))
    top = 1.08 * max(float(vibrations.intensities.max()), 1.0)
    return figures.Frame(58, 548, 16, 304, high, 0.0, 0.0, top)


def _spectrum_data(vibrations: Vibrations) -> dict[str, Any]:
    frame = _spectrum_frame(vibrations)
    return {
        "wavenumbers": [round(float(nu), 2) for nu in vibrations.scaled_wavenumbers],
        "intensities": [round(float(value), 3) for value in vibrations.intensities],
        "modes": [[[round(float(x), 4) for x in row] for row in mode] for mode in vibrations.modes],
        "frame": {name: float(value) for name, value in vars(frame).items()},
        "points": POINTS,
    }


def spectrum_card(vibrations: Vibrations) -> tuple[object, ...]:
    """Bands and lines of the infrared spectrum; a click on a line animates its mode."""
    frame = _spectrum_frame(vibrations)
    parts = _spectrum_axes(frame, vibrations.conditions.scale)
    at = np.linspace(frame.x_high, frame.x_low, POINTS)
    heights = band_heights(vibrations.scaled_wavenumbers, vibrations.intensities, at, WIDTH)
    points = " ".join(
        f"{frame.x(nu):.2f},{frame.y(min(h, frame.y_high)):.2f}" for nu, h in zip(at, heights, strict=True)
    )
    parts.append(tag("polyline", points=points, class_="series change", id="spectrum-curve"))
    for k, (nu, intensity) in enumerate(zip(vibrations.scaled_wavenumbers, vibrations.intensities, strict=True)):
        if nu < 0:
            continue
        x, hint = (
            frame.x(nu),
            tag("title", f"mode {k + 1}: {number(nu, 1)} cm\u207b\u00b9, {number(intensity, 1)} km/mol"),
        )
        y = min(frame.y(intensity), frame.bottom - 3)
        parts.append(tag("line", x1=x, x2=x, y1=frame.bottom, y2=y, class_="stick", data_mode=str(k)))
        parts.append(tag("line", hint, x1=x, x2=x, y1=frame.bottom, y2=frame.top, class_="hit", data_mode=str(k)))
    slider = tag("input", type="range", id="broadening", min="2", max=str(WIDEST), step="1", value=f"{WIDTH:.0f}")
    text = tag("output", f"{WIDTH:.0f} cm\u207b\u00b9", id="broadening-text")
    controls = tag("p", tag("label", tag("span", "Width at half height"), slider, text, class_="slide"))
    hint = tag("p", "Click a line to animate its mode; click again to stop.", class_="hint")
    return figures.plot("plot-spectrum", "Infrared spectrum", parts), controls, hint


def _spectrum_axes(frame: figures.Frame, scale: float) -> list[Markup]:
    step = figures.tick_step(frame.x_low, 10)
    parts = [figures.text_at(frame.x(nu), frame.bottom + 20, nu) for nu in range(0, int(frame.x_low) + 1, step)]
    label = "wavenumber / cm\u207b\u00b9" + ("" if scale == 1 else f", times {scale:g}")
    parts.append(figures.text_at((frame.left + frame.right) / 2, frame.bottom + 37, label, "label"))
    parts.append(figures.text_at(14, (frame.top + frame.bottom) / 2, "intensity / (km/mol)", "label turned"))
    height = figures.tick_step(frame.y_high, 7)
    return parts + figures.rules(frame, [(v, str(v)) for v in range(0, int(frame.y_high) + 1, height)])


def modes_table(vibrations: Vibrations) -> Markup:
    """All modes; a button animates each."""
    rows = []
    columns = (vibrations.scaled_wavenumbers, vibrations.intensities, vibrations.reduced_masses)
    for k, (nu, intensity, mass) in enumerate(zip(*columns, strict=True)):
        play = tag(
            "button", str(k + 1), type="button", data_mode=str(k), title="Animate", aria_label=f"Animate mode {k + 1}"
        )
        cells = (play, number(nu, 2), number(intensity, 2), number(mass, 3))
        rows.append(tag("tr", *(tag("td", cell) for cell in cells), class_="imaginary" if nu < 0 else None))
    scale = vibrations.conditions.scale
    unit = "cm\u207b\u00b9" if scale == 1 else f"cm\u207b\u00b9, times {scale:g}"
    table = headed_table(("mode", unit, "km/mol", "reduced mass / u"), rows, id="modes")
    return tag("div", table, class_="scroll")


# ------------------------------------------------------------------------------------------------ thermochemistry


def thermochemistry_card(thermochemistry: Thermochemistry, group: str) -> tuple[object, ...]:
    """Energies and entropies at the conditions."""
    *rows, last = thermochemistry.rows()
    lines = [*(_thermal_row(*row) for row in rows), _thermal_row(*last, "total")]
    table = headed_table(("", "Hartree", "kJ/mol"), lines, class_="terms", id="thermochemistry")
    molar = ", ".join(f"{name} {number(value, 2)}" for name, value in thermochemistry.molar_rows())
    conditions = thermochemistry.conditions
    scale = "" if conditions.scale == 1 else f", wavenumbers times {conditions.scale:g}"
    words = f"{conditions.temperature:g} K, {conditions.pressure:g} atm, {conditions.entropy}; {group}, "
    words += f"symmetry number {conditions.symmetry_number}, "
    return table, tag(
        "p",
        f"{words}degeneracy {conditions.degeneracy}{scale}. kJ/mol: without the electronic energy. {molar} J/(mol K).",
        class_="hint",
    )


def _thermal_row(name: str, value: float, thermal: float | None, class_: str | None = None) -> Markup:
    more = "" if thermal is None else number(thermal * HARTREE_IN_KJ_PER_MOL, 2)
    return tag("tr", tag("th", name), tag("td", number(value, 6)), tag("td", more), class_=class_)
