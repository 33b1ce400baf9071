"""CUDA C++: a lane is a thread."""

from cuanto.kernels.emit.syntax import Syntax

CUDA = Syntax(
    prelude="prelude_cuda.cuh",
    uniform_type="REAL",
    lane_type="REAL",
    fma="vfma",
    broadcast="vset",
    functions={"rcp": "vrcp", "sqrt": "vsqrt", "rsqrt": "vrsqrt", "exp": "vexp"},
    boys="boys",
    table="__device__ static const",
    register_values=256,
)
