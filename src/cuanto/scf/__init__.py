"""Self-consistent field: iterations as a generator of states, built from exchangeable parts."""
