"""The choice between the general kernel and the specialised kernel of a class of integrals.

Specialised kernels are compiled in the background. They round differently, so a calculation chooses once for each
class, when it first needs it: the specialised kernel if it is compiled by then, or if the class has so much work that
waiting for the compiler is faster than the general kernel. Otherwise the general kernel is used to the end, and the
specialised one only by later calculations. With all kernels in the cache the same input gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from cuanto import tuning
from cuanto.backends.base import Backend, Program

T = TypeVar("T")

ITERATIONS = 10
"""Typical number of iterations of an SCF, each of which repeats the work of direct J and K."""
FIXED_OPERATIONS = 300
"""Operations of a text that take as long to compile as everything else in a kernel."""
_choices: ContextVar[dict[Hashable, Any] | None] = ContextVar("choices", default=None)


@contextmanager
def fixed_kernels() -> Iterator[None]:
    """Context of a calculation, which keeps its choices of kernels; an inner calculation shares those of the outer."""
    if _choices.get() is not None:
        yield
        return
    token = _choices.set({})
    try:
        yield
    finally:
        _choices.reset(token)


def choose_once(key: Hashable, choose: Callable[[], T]) -> T:
    """Return the choice that the calculation made at the first call with this key; outside of one, choose anew."""
    choices = _choices.get()
    if choices is None:
        return choose()
    if key not in choices:
        choices.setdefault(key, choose())
    kept: T = choices[key]
    return kept


def uses_special(program: Program, worth_waiting: bool) -> bool:
    """Whether the calculation uses a specialised kernel, which it may have to wait for, instead of the general one."""
    chosen = choose_once(program.source.hash, lambda: program.ready or worth_waiting)
    return chosen and not program.failed


def finish(program: Program) -> None:
    """Wait until the compilation of a kernel has ended; after an error the general kernel is used."""
    with suppress(Exception):
        program.wait()


def is_worth_waiting(backend: Backend, name: str, work: float, text: float) -> bool:
    """Whether waiting for a specialised kernel with `text` operations in its text saves time in all `work` of a class.

    `name` of the limit in the tuning table, which also defines the unit of `work`.
    """
    limit = tuning.number(backend.traits.language, name)
    return work > limit * (text + FIXED_OPERATIONS) * backend.traits.waiting_factor


def divide(items: Sequence[T], condition: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """The items that meet a condition, and the others; each is tested once, since kernels become ready meanwhile."""
    met, others = list[T](), list[T]()
    for item in items:
        (met if condition(item) else others).append(item)
    return met, others
