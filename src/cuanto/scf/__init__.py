"""Self-consistent field: a generator of states with exchangeable parts."""
