"""Many molecules: entries to compute, workers to compute them, a journal of what is known, a table of results."""

from cuanto.batch.run import energies
from cuanto.batch.table import Row

__all__ = ["Row", "energies"]
