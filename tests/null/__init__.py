"""Fingerprints of generated kernels."""
