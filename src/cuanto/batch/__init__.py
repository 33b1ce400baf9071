"""Many molecules: entries, worker processes, a journal of finished results, and a table of all results."""

from cuanto.batch.run import energies
from cuanto.batch.table import Row

__all__ = ["Row", "energies"]
