"""Scenarios: who drives where, what happens, and what must hold; run, judged, reported, and repeated in batches.

`Run` puts a run together from Python; `load_spec` and `run_scenario` do it from a file; `run_batch` does it many times,
`compare_scenario` in several ways.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.scenarios.batch import BatchResult, run_batch
    from roboyard.scenarios.check import CheckReport, check_scenario
    from roboyard.scenarios.clock import Progress
    from roboyard.scenarios.compare import Comparison, compare_scenario
    from roboyard.scenarios.control import Control
    from roboyard.scenarios.outcome import Outcome
    from roboyard.scenarios.rewrite import rewrite_report
    from roboyard.scenarios.robot_handle import RobotHandle
    from roboyard.scenarios.run import Run
    from roboyard.scenarios.runner import run_scenario
    from roboyard.scenarios.schema import Scenario
    from roboyard.scenarios.spec import Spec, load_spec, spec_of

__all__ = [
    "BatchResult",
    "CheckReport",
    "Comparison",
    "Control",
    "Outcome",
    "Progress",
    "RobotHandle",
    "Run",
    "Scenario",
    "Spec",
    "check_scenario",
    "compare_scenario",
    "load_spec",
    "rewrite_report",
    "run_batch",
    "run_scenario",
    "spec_of",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "batch": ("BatchResult", "run_batch"),
    "check": ("CheckReport", "check_scenario"),
    "clock": ("Progress",),
    "compare": ("Comparison", "compare_scenario"),
    "control": ("Control",),
    "outcome": ("Outcome",),
    "rewrite": ("rewrite_report",),
    "robot_handle": ("RobotHandle",),
    "run": ("Run",),
    "runner": ("run_scenario",),
    "schema": ("Scenario",),
    "spec": ("Spec", "load_spec", "spec_of"),
})  # fmt: skip
