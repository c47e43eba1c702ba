"""The report of a run: one self-contained HTML page, made from the folder that the run left."""

from roboyard.scenarios.report.write import write_report

__all__ = ["write_report"]
