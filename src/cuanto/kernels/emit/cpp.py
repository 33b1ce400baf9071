"""C++ with GCC/Clang vector extensions."""

from cuanto.kernels.emit.syntax import Syntax

CPP = Syntax(prelude="prelude_cpu.h", lane_type="VEC", table="static const", register_values=0)
