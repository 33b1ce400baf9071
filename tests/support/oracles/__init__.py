"""Oracles: slow, simple versions of the kernels, written from the papers. They share nothing with the generator."""
