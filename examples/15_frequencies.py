"""Vibrations of water and heavy water, and ammonia followed from its planar transition state to the minimum.

    python examples/15_frequencies.py [METHOD]

Following an imaginary mode needs geomeTRIC (`pip install 'cuanto[motion]'`). On the command line:
`cuanto frequencies water.xyz -m pm6`.
"""

from __future__ import annotations

import argparse

import cuanto

WATER = "3\nwater\nO 0 0 0.12\nH 0 0.76 -0.48\nH 0 -0.76 -0.48\n"
PLANAR = "4\nplanar ammonia\nN 0 0 0\nH 0 0.981 0\nH 0.8496 -0.4905 0\nH -0.8496 -0.4905 0\n"
KJ_PER_MOL = 2625.4996


def main(method: str = "pm6") -> tuple[float, float]:
    """Ratio of the lowest wavenumbers of D2O and H2O, and the barrier of the inversion of ammonia in kJ/mol."""
    water = cuanto.optimize(cuanto.Molecule.from_string(WATER), method, convergence="tight")
    print(f"water: {'converged' if water.converged else 'NOT converged'} in {water.iterations} steps")
    light = cuanto.frequencies(water.molecule, method)
    heavy = light.with_isotopes({"H": "D"})  # the same Hessian, no further gradients
    for name, found in (("H2O", light), ("D2O", heavy)):
        lines = zip(found.wavenumbers, found.intensities, strict=True)
        print(f"{name}: " + ", ".join(f"{nu:.1f} cm^-1 ({intensity:.0f} km/mol)" for nu, intensity in lines))
    for temperature in (298.15, 500.0):
        thermal = light.thermochemistry_at(temperature=temperature)
        print(
            f"{temperature:g} K: H {thermal.enthalpy:.6f}, TS {thermal.entropy_term:.6f}, G {thermal.gibbs_energy:.6f}"
        )

    planar = cuanto.frequencies(cuanto.Molecule.from_string(PLANAR), method)
    print(f"planar ammonia ({planar.symmetry[0]}): {planar.imaginary[0]:.1f} cm^-1 is imaginary")
    minimum = cuanto.frequencies(planar.molecule, method, follow_imaginary=True)
    barrier = (planar.energy - minimum.energy) * KJ_PER_MOL
    print(
        f"minimum ({minimum.symmetry[0]}): lowest mode {minimum.wavenumbers[0]:.1f} cm^-1, barrier {barrier:.1f} kJ/mol"
    )
    return float(heavy.wavenumbers[0] / light.wavenumbers[0]), barrier


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", nargs="?", default="pm6")
    main(**vars(parser.parse_args()))
