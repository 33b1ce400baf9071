"""Straight-line kernels whose texts are generated in the background, unless they are on the disk.

Counting the operations of a class and generating its text takes up to a tenth of a second, for dozens of classes. A
calculation uses a general kernel instead, unless the class is worth waiting for (`tiers.py`). With texts and kernels
in the cache everything is decided at once, so that the same input gives the same bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any
from weakref import WeakKeyDictionary

from cuanto.backends.background import LATER, Background, ready
from cuanto.backends.base import Backend, Program
from cuanto.backends.programs import cost_is_known, load_or_make_source, load_source
from cuanto.kernels.spec import KernelSpec

Request = Future[Program | None]
_background = Background(1, "cuanto-text", finish_running=False)
_requests: WeakKeyDictionary[Any, dict[KernelSpec, Request]] = WeakKeyDictionary()


def _begin_again() -> None:
    """Forget requests in a forked process, which has none of the threads that would answer them."""
    global _background
    _background = Background(1, "cuanto-text", finish_running=False)
    _requests.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)


def request_kernel(backend: Backend, spec: KernelSpec, worthwhile: Callable[[], bool], later: bool = True) -> Request:
    """Compile a kernel in the background, if `later` at low priority; the result is None if it is not `worthwhile`.

    That function is called in the background as well, because it may have to count the operations of the class.
    """
    known = _requests.setdefault(backend, {})
    if spec in known and (not ready(known[spec]) or known[spec].result() is not None):
        return known[spec]

    def make() -> Program | None:
        return backend.compile(load_or_make_source(spec), later) if worthwhile() else None

    if cost_is_known(spec.operator, spec.bra, spec.ket, spec.algorithm):
        if not worthwhile():
            return _done(None)
        if load_source(spec) is not None:
            return known.setdefault(spec, _done(make()))
    known[spec] = _background.submit(make, LATER)
    return known[spec]


def _done(program: Program | None) -> Request:
    future: Request = Future()
    future.set_result(program)
    return future


def finish_texts(backend: Backend) -> None:
    """Wait for the texts of all kernels that were requested."""
    for future in list(_requests.get(backend, {}).values()):
        future.exception()
