"""Scenarios: who drives where, what happens, and what must hold; run, judged, reported, and repeated in batches.

`Run` puts a run together from Python; `load_spec` and `run_scenario` do it from a file; `run_batch` does it many times,
`compare_scenario` in several ways.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_HOMES = {
    "BatchResult": "batch",
    "CheckReport": "check",
    "Comparison": "compare",
    "Control": "control",
    "Outcome": "outcome",
    "Progress": "clock",
    "RobotHandle": "robot_handle",
    "Run": "run",
    "Scenario": "schema",
    "Spec": "spec",
    "check_scenario": "check",
    "compare_scenario": "compare",
    "load_spec": "spec",
    "rewrite_report": "rewrite",
    "run_batch": "batch",
    "run_scenario": "runner",
    "spec_of": "spec",
}

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
