"""CUDA C++: a lane is a thread."""

from cuanto.kernels.emit.syntax import Syntax

CUDA = Syntax(prelude="prelude_cuda.cuh", lane_type="REAL", register_values=256)
