"""Where kernels run: cpu, cuda, simt (CUDA text on the CPU, for tests) and reference (NumPy, the oracle)."""

from cuanto.backends.base import Backend, Job, get_backend

__all__ = ["Backend", "Job", "get_backend"]
