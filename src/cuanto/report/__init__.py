"""A result as one HTML page that needs nothing else: turned, plotted, and with what reproduces it.

write_report("water.html", result)             # a result, its QCSchema dictionary, a JSON file or a checkpoint
"""

from cuanto.report.page import report_html, write_report
from cuanto.report.record import Record, read_record

__all__ = ["Record", "read_record", "report_html", "write_report"]
