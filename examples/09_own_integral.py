"""An integral of your own: second moments <p|x x|q>, <p|y y|q>, <p|z z|q>, and from them a quadrupole moment.

    python examples/09_own_integral.py [MOLECULE.xyz]

cuanto itself is not changed. One formula for two primitives of any angular momentum gives C++ kernels (compiled and run
here) and CUDA kernels (printed here, used with a GPU), with contraction, solid harmonics and loops over the basis.
docs/develop/kernels.md explains it step by step.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.resources import as_file, files

import numpy as np

import cuanto
from cuanto.basis.solid_harmonics import cartesian_powers, shell_matrix
from cuanto.kernels.build import source_of
from cuanto.kernels.ir import Graph
from cuanto.kernels.recurrences.components import Powers
from cuanto.kernels.recurrences.one_electron import OPERATORS, PairGeometry, product
from cuanto.kernels.spec import KernelSpec, Shells
from cuanto.units import BOHR_IN_ANGSTROM, DIPOLE_IN_DEBYE

# --- 1. The formula. x = (x - B) + B, so x x gives terms with the power of b raised by two, one and zero.


def second_moment(g: Graph, geo: PairGeometry) -> list[Callable[[Powers, Powers], int]]:
    """<a|x x|b>, <a|y y|b>, <a|z z|b>: one function per component."""

    def component(axis: int) -> Callable[[Powers, Powers], int]:
        def element(a: Powers, b: Powers) -> int:
            S, B = geo.S[axis], geo.B[axis]
            factors = [geo.S[i](a[i], b[i]) for i in range(3)]
            i, j = a[axis], b[axis]
            factors[axis] = g.sum(((1.0, g.one, S(i, j + 2)), (2.0, B, S(i, j + 1)), (1.0, g.mul(B, B), S(i, j))))
            return product(g, geo, factors)

        return element

    return [component(axis) for axis in range(3)]


OPERATORS["second_moment"] = second_moment

# --- 2. The call: all shells of a basis against all others, three components.


def second_moments(basis: cuanto.Basis, backend: str = "auto") -> np.ndarray:
    """M_xpq, on the device of the backend."""
    return cuanto.integrals.one_electron(basis, "second_moment", 3, backend=backend)


# --- 3. The test: a slow reference that shares nothing with the code above.


def reference(basis: cuanto.Basis, p: int, q: int, axis: int) -> float:
    """One element by Gauss-Hermite quadrature, which is exact for a polynomial times a Gaussian."""
    points, weights = np.polynomial.hermite.hermgauss(12)
    total = 0.0
    for A, za, ca, a_powers in _monomials(basis, p):
        for B, zb, cb, b_powers in _monomials(basis, q):
            zeta = za + zb
            P = (za * A + zb * B) / zeta
            x = P[:, None] + points / np.sqrt(zeta)
            lines = [(x[i] - A[i]) ** a_powers[i] * (x[i] - B[i]) ** b_powers[i] for i in range(3)]
            lines[axis] = lines[axis] * x[axis] ** 2
            size = ca * cb * np.exp(-za * zb / zeta * np.sum((A - B) ** 2)) * zeta**-1.5
            total += size * np.prod([weights @ line for line in lines])
    return total


def _monomials(basis: cuanto.Basis, p: int) -> list[tuple[np.ndarray, float, float, Powers]]:
    """Function p as a sum of monomials times Gaussians: centre, exponent, coefficient, powers."""
    place = int(np.searchsorted(basis.offsets, p, side="right")) - 1
    shell, (column, row) = basis.shells[place], divmod(p - basis.offsets[place], basis.shells[place].ncomp)
    angular = shell_matrix(shell.l, shell.pure)[row]
    return [
        (basis.R_ax[shell.atom], float(z), float(c * factor), powers)
        for z, c in zip(shell.exponents, shell.coefficients[:, column], strict=True)
        for factor, powers in zip(angular, cartesian_powers(shell.l), strict=True)
        if factor
    ]


def main(xyz: str | None = None) -> tuple[np.ndarray, float]:
    """The quadrupole moment in Debye Angstrom, and the largest difference between kernel and reference."""
    with as_file(files("cuanto") / "data" / "molecules" / "benzene.xyz") as shipped:
        molecule = cuanto.Molecule.from_xyz(xyz or shipped)
    basis = cuanto.Basis("def2-svp", molecule)
    M_xpq = second_moments(basis, "cpu")

    rng = np.random.default_rng(0)
    sample = [(*sorted(rng.integers(basis.nbf, size=2)), int(rng.integers(3))) for _ in range(40)]
    worst = max(abs(M_xpq[x, p, q] - reference(basis, int(p), int(q), x)) for p, q, x in sample)
    print(f"{M_xpq.size} second moments; 40 of them differ from the reference by at most {worst:.0e}")

    result = cuanto.energy(molecule, "hf", basis, backend="cpu")
    print(f"Hartree-Fock: {result.energy:.8f} Hartree, {'converged' if result.converged else 'NOT converged'}")
    # Nuclei positive, electrons negative; Theta = (3 xx - rr)/2 does not change when a sphere of charge is added.
    D_pq = result.density.sum(axis=0)  # over spins; closed shells have one
    second_x = molecule.nuclei.charges @ molecule.R_ax**2 - np.einsum("pq,xpq->x", D_pq, M_xpq)
    theta_x = (3.0 * second_x - second_x.sum()) / 2.0 * DIPOLE_IN_DEBYE * BOHR_IN_ANGSTROM
    print("quadrupole moment about the origin, xx yy zz: " + ", ".join(f"{t:.3f}" for t in theta_x) + " Debye Angstrom")

    spec = KernelSpec("second_moment", Shells((2,)), Shells((1,)), "os", "thread")
    cuda = source_of(spec).text
    print(f"its CUDA kernel for d and p functions, {spec.name}: {len(cuda.splitlines())} lines")
    return theta_x, worst


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Second moments: an integral of your own.")
    parser.add_argument("xyz", nargs="?", metavar="MOLECULE.xyz", help="geometry in Angstrom (default: benzene)")
    try:
        main(parser.parse_args().xyz)
    except cuanto.errors.CuantoError as error:
        parser.exit(2, f"{error}\n")
