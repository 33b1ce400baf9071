"""Where kernels run: cpu, cuda, and simt (CUDA text on the CPU, for tests).

Names are resolved on first use, so that processes which only compile do not import NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuanto.backends.base import Backend, Job, get_backend

__all__ = ["Backend", "Job", "get_backend"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from cuanto.backends import base

        return getattr(base, name)
    raise AttributeError(f"module 'cuanto.backends' has no attribute {name!r}")
