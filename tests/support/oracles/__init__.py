"""Slow, obvious twins of kernels, written from the papers: they share nothing with the generator."""
