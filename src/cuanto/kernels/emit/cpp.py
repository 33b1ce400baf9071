"""C++ with GCC/Clang vector extensions."""

from cuanto.kernels.emit.syntax import Syntax

CPP = Syntax(
    prelude="prelude_cpu.h",
    uniform_type="REAL",
    lane_type="VEC",
    fma="vfma",
    broadcast="vset",
    functions={"rcp": "vrcp", "sqrt": "vsqrt", "rsqrt": "vrsqrt", "exp": "vexp"},
    boys="boys",
    table="static const",
    register_values=0,
)
