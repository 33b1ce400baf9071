"""What an SCF asks of a builder of Coulomb and exchange matrices, and direct builders in that form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from cuanto.coulomb.direct import DirectJK
from cuanto.errors import InputError


class JKBuilder(Protocol):
    """J_spq and K_spq of densities D_spq, None where not wanted.

    `C_spi`, where it is known: D_spq = sum_i C_spi C_sqi, occupied orbitals times the roots of their occupations,
    columns of zeros where a spin has fewer. Builders that fit the exchange need it, direct ones do not.
    """

    def __call__(self, D_spq: Any, C_spi: Any | None, want_j: bool, want_k: bool) -> tuple[Any, Any]:
        """Arrays on the device of the builder."""

    def notes(self) -> Sequence[str]:
        """What a reader of the result should know of the integrals."""
        return ()

    def in_double(self) -> JKBuilder | None:
        """The same in double precision; None where it is so already."""
        return None


class DirectBuilder(JKBuilder):
    """Direct J and K of a sequence of densities: only what changed since the last call is made, unless it is stored.

    What screening leaves out adds up, so all is made anew after `restart` calls. J and K are remembered apart, because
    terms ask for them one at a time and J is asked for the sum of the spins.
    """

    def __init__(self, direct: DirectJK, restart: int = 8) -> None:
        if restart < 1:
            raise InputError(f"restart is {restart}; give the number of calls after which all is made anew")
        self.direct, self.restart = direct, restart
        self._last: dict[str, tuple[int, Any, Any]] = {}

    def __call__(self, D_spq: Any, C_spi: Any | None, want_j: bool, want_k: bool) -> tuple[Any, Any]:
        """J and K; `C_spi` is not used."""
        if self.direct.stored or (want_j and want_k and self.direct.one_pass):
            return self.direct(D_spq, want_j=want_j, want_k=want_k)
        return (self._matrix("J", D_spq) if want_j else None), (self._matrix("K", D_spq) if want_k else None)

    def notes(self) -> Sequence[str]:
        """Whether integrals are stored, and how precise they are; of the usual operator, as others are alike."""
        direct, found = self.direct, []
        if direct.omega is None and direct.plan is not None:
            found.append(f"exchange: {direct.plan}")
        if direct.omega is None and direct.precision != "double":
            done = direct.statistics.quartets
            error = f", about {done.error:.0e} Hartree in an element of K" if done is not None else ""
            found.append(f"{direct.precision} precision of direct J and K{error}")
        return found

    def in_double(self) -> DirectBuilder | None:
        """Without stored integrals, for one density."""
        direct = self.direct
        if direct.precision == "double":
            return None
        more: dict[str, Any] = {"threshold": direct.threshold, "omega": direct.omega}
        return DirectBuilder(DirectJK(direct.basis, backend=direct.backend, **more))

    def _matrix(self, name: str, D_spq: Any) -> Any:
        make = self.direct.j if name == "J" else self.direct.k
        age, last_D, last_M = self._last.get(name, (self.restart, None, None))
        if age >= self.restart or last_D.shape != D_spq.shape:
            age, M_spq = 1, make(D_spq)
        else:
            age, M_spq = age + 1, last_M + make(D_spq - last_D)
        self._last[name] = (age, D_spq, M_spq)
        return M_spq


__all__ = ["DirectBuilder", "JKBuilder"]
