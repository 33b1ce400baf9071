"""One shell of contracted Gaussians and its normalisation.

Radial function of contraction q: R_q(r) = r^l sum_k c_kq exp(-a_k r^2), scaled so that int R_q^2 r^2 dr = 1.
Tables give coefficients of *normalised* primitives; here they multiply bare exponentials.
"""

from dataclasses import dataclass
from math import gamma

import numpy as np
from numpy.typing import ArrayLike

from cuanto.arrays import Array
from cuanto.basis.solid_harmonics import n_cartesian
from cuanto.errors import InputError

ANGULAR_LETTERS = "spdfghiklmnoqrtuvwxyz"
"""Letters of l = 0, 1, 2, ...; j is left out by convention, as in the Basis Set Exchange."""


@dataclass(frozen=True, eq=False, slots=True)
class Shell:
    """A (generally contracted) shell on one atom: `coefficients[k, q]` multiplies exp(-exponents[k] r^2)."""

    atom: int
    l: int
    exponents: Array
    coefficients: Array
    pure: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "exponents", _read_only(self.exponents))
        object.__setattr__(self, "coefficients", _read_only(self.coefficients))
        _check_shapes(self.exponents, self.coefficients)

    @classmethod
    def from_table(cls, atom: int, l: int, exponents: ArrayLike, coefficients: ArrayLike, pure: bool) -> "Shell":
        """Shell from tabulated numbers, whose coefficients (nprim, ncol) refer to normalised primitives.

        Primitives and columns that are zero throughout are dropped.
        """
        a_k = np.asarray(exponents, dtype=float)
        c_kq = np.asarray(coefficients, dtype=float)
        _check_shapes(a_k, c_kq)
        used = c_kq.any(axis=1)
        a_k, c_kq = a_k[used], c_kq[used]
        return cls(atom, l, a_k, normalised_coefficients(l, a_k, c_kq[:, c_kq.any(axis=0)]), pure)

    def on(self, atom: int) -> "Shell":
        """The same functions on another atom, without checking them again."""
        shell = object.__new__(type(self))
        for name in self.__slots__:
            object.__setattr__(shell, name, getattr(self, name))
        object.__setattr__(shell, "atom", atom)
        return shell

    @property
    def key(self) -> tuple[int, bool, bytes, bytes]:
        """Plain data that two shells share if they have the same functions, whatever their atoms."""
        return self.l, self.pure, self.exponents.tobytes(), self.coefficients.tobytes()

    @property
    def nprim(self) -> int:
        """Number of primitives."""
        return len(self.exponents)

    @property
    def ncol(self) -> int:
        """Number of contractions that share the primitives."""
        return int(self.coefficients.shape[1])

    @property
    def ncomp(self) -> int:
        """Number of components of one contraction: 2l+1 or (l+1)(l+2)/2."""
        return 2 * self.l + 1 if self.pure else n_cartesian(self.l)

    @property
    def nbf(self) -> int:
        """Number of basis functions: contraction outer, component inner."""
        return self.ncol * self.ncomp

    @property
    def letter(self) -> str:
        """s, p, d, ..."""
        return ANGULAR_LETTERS[self.l]


def _check_shapes(a_k: Array, c_kq: Array) -> None:
    if a_k.ndim != 1 or c_kq.ndim != 2 or len(c_kq) != len(a_k) or not c_kq.any():
        raise InputError(
            f"a shell needs exponents (nprim,) and coefficients (nprim, ncol) that are not all zero, "
            f"found shapes {a_k.shape} and {c_kq.shape}"
        )


def _read_only(values: Array) -> Array:
    """Make an array read-only; one that is read-only already is not copied, so that equal atoms share it."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64 and not values.flags.writeable:
        return values
    copy = np.array(values, dtype=float)
    copy.setflags(write=False)
    return copy


def normalised_coefficients(l: int, exponents: Array, coefficients: Array) -> Array:
    """Coefficients (nprim, ncol) of bare exponentials from tabulated ones; every column has unit norm."""
    a_k = np.asarray(exponents, dtype=float)
    c_kq = np.asarray(coefficients, dtype=float)
    if not (np.isfinite(a_k).all() and np.isfinite(c_kq).all() and (a_k > 0).all()):
        raise InputError("exponents must be positive and finite, coefficients finite")
    with np.errstate(all="ignore"):  # overflow is detected below
        c_kq = c_kq / np.abs(c_kq).max(axis=0, initial=0.0)
        # Overlap of normalised primitives: (2 sqrt(ab)/(a+b))^(l+3/2)
        ratio_kj = 2 * np.sqrt(a_k[:, None]) * np.sqrt(a_k) / (a_k[:, None] + a_k)
        norm_q = np.einsum("kq,kj,jq->q", c_kq, ratio_kj ** (l + 1.5), c_kq)
        primitive_k = _primitive_norms(l, a_k)
        scaled_kq = primitive_k[:, None] * c_kq / np.sqrt(norm_q)
    if not (norm_q > 1e-14).all():
        raise InputError(f"a contraction of l = {l} vanishes: its primitives cancel")
    if not (np.isfinite(scaled_kq).all() and (primitive_k > 0).all()):
        raise InputError(
            f"exponents from {a_k.min():.3g} to {a_k.max():.3g} exceed the range of floating-point numbers"
        )
    return np.asarray(scaled_kq)


def tabulated_coefficients(shell: Shell) -> Array:
    """Coefficients (nprim, ncol) of a shell for normalised primitives, as tables give them."""
    return np.asarray(shell.coefficients / _primitive_norms(shell.l, shell.exponents)[:, None])


def _primitive_norms(l: int, a_k: Array) -> Array:
    # int r^(2l+2) exp(-2 a r^2) dr = Gamma(l+3/2) / (2 (2a)^(l+3/2))
    return np.asarray(np.sqrt(2 / gamma(l + 1.5)) * (2 * a_k) ** (l / 2 + 0.75))
