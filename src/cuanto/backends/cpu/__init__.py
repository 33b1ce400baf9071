"""The CPU: kernels compiled by the system's C++ compiler, called through ctypes from a pool of threads."""
