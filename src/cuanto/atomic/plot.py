"""Plots of radial densities of spinors and of the convergence of an optimisation. Needs matplotlib."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.atomic.atom import AtomResult, Spinor
from cuanto.atomic.one_electron import large_norms, small_functions
from cuanto.atomic.optimise import Evaluation
from cuanto.atomic.species import SPECIES
from cuanto.errors import import_optional, require
from cuanto.files import replacing

FORMATS = (".png", ".pdf", ".svg")
POINTS = 600


def figure(width: float = 7.0, height: float = 4.5) -> Any:
    """A figure that needs no window system."""
    module = import_optional("matplotlib.figure", "plots need the package matplotlib (pip install matplotlib)")
    return module.Figure(figsize=(width, height), layout="constrained")


def require_picture(path: str | os.PathLike[str]) -> None:
    """Check that a plot can be written, before the calculation starts."""
    require(Path(path).suffix.lower() in FORMATS, f"{os.fspath(path)}: a picture ends in {', '.join(FORMATS)}")
    figure()


def radial_functions(spinor: Spinor, z_p: Array, r_g: Array) -> tuple[Array, Array]:
    """P(r) and Q(r) on a grid; the norm of P^2 + Q^2 is 1. Q is zero without relativity."""
    species, r = spinor.species, r_g[:, None]
    norm_p, v_p = small_functions(species, z_p)
    gauss_gp = np.exp(-z_p * r**2)
    P_g = (large_norms(species, z_p) * r ** (species.l + 1) * gauss_gp) @ spinor.P_p
    if not len(spinor.Q_p):
        return np.asarray(P_g), np.zeros_like(P_g)
    return np.asarray(P_g), np.asarray((norm_p * r ** (species.lbar + 1) * (1 - v_p * r**2) * gauss_gp) @ spinor.Q_p)


def plot_spinors(path: str | os.PathLike[str], result: AtomResult, title: str = "") -> None:
    """Radial densities: P^2 above, Q^2 below, one line per shell, over the square root of r."""
    r_g = 4 * max(s.r for s in result.spinors) * np.linspace(1e-4, 1, POINTS) ** 3
    relativistic = result.settings.relativistic
    picture = figure(7.0, 6.0 if relativistic else 4.0)
    axes = picture.subplots(2 if relativistic else 1, 1, sharex=True, squeeze=False)[:, 0]
    for s in result.spinors:
        functions = radial_functions(s, result.atom.basis.exponents[SPECIES.index(s.species)], r_g)
        style = "--" if s.species.kappa > 0 else "-"  # the two components of a fine-structure pair may coincide
        for axis, f_g in zip(axes, functions, strict=False):
            axis.plot(np.sqrt(r_g), f_g**2, style, label=s.label, linewidth=1.2)
    for axis, name in zip(axes, ("large: $P^2$", "small: $Q^2$"), strict=False):
        axis.set_ylabel(f"{name} / Bohr$^{{-1}}$")
    axes[-1].set_xlabel(r"$\sqrt{r}$ / Bohr$^{1/2}$")
    axes[0].legend(ncols=4, fontsize="small", frameon=False)
    axes[0].set_title(title)
    save(picture, path)


def plot_convergence(path: str | os.PathLike[str], evaluations: Sequence[Evaluation], title: str = "") -> None:
    """Plot the relative difference of every energy from the best one, and the best so far."""
    energies = np.array([np.nan if e.energy is None else e.energy for e in evaluations])
    require(np.isfinite(energies).any(), "an optimisation without a single energy cannot be plotted")
    number, lowest = np.arange(1, len(energies) + 1), np.nanmin(energies)
    error = (energies - lowest) / abs(lowest) + 1e-15
    picture = figure()
    axis = picture.subplots()
    axis.semilogy(number, error, ".", markersize=4, label="evaluations")
    axis.semilogy(number, np.fmin.accumulate(error), label="best so far")
    refused = number[~np.isfinite(energies)]
    if len(refused):
        axis.plot(refused, np.full(len(refused), np.nanmax(error)), "x", markersize=4, label="refused")
    axis.set_xlabel("evaluation")
    axis.set_ylabel(r"$(E - E_{best}) / |E_{best}|$")
    axis.set_title(title)
    axis.legend(frameon=False)
    save(picture, path)


def save(picture: Any, path: str | os.PathLike[str]) -> None:
    """Write the plot completely or not at all."""
    with replacing(path) as draft:
        picture.savefig(draft, dpi=150, format=Path(path).suffix[1:].lower())
