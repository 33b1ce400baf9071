"""Moving atoms: optimisation, frequencies, thermochemistry and dynamics on the surfaces of all methods."""
