"""The report of a run: one self-contained HTML page, made from the folder that the run left."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.scenarios.report.run_report import write_report

__all__ = ["write_report"]

__getattr__, __dir__ = lazy_exports(__name__, {"run_report": ("write_report",)})
