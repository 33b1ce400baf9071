"""NVIDIA GPUs: kernels compiled by NVRTC, launched through CuPy."""
