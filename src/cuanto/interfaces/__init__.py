"""File formats and interfaces of other programs."""
