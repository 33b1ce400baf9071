"""The CPU: kernels compiled by the system's C++ compiler, run by a pool of native threads."""
