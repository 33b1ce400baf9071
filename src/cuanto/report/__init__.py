"""A result as one self-contained HTML page: molecule, orbitals, plots, and the input that reproduces it.

write_report("water.html", result)             # a result, its QCSchema dictionary, a JSON file or a checkpoint
"""

from cuanto.report.page import report_html, write_report

__all__ = ["report_html", "write_report"]
