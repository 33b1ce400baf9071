"""C++ with GCC/Clang vector extensions."""

from cuanto.kernels.emit.syntax import Syntax

CPP = Syntax(prelude="prelude_cpu.h", lane_type="VEC", register_values=0)
