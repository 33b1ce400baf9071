"""CUDA text compiled as C++ and run thread by thread: the logic of GPU kernels is tested without a GPU."""
