"""Scenarios: world, robots, events and success criteria of a run; execution, evaluation, report and batches.

`Run` builds a run from Python; `load_scenario` and `run_scenario` do it from a file; `run_batch_and_report` does it
many times, `compare_and_report` in several variants, and both write a page about it.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.scenarios.assembly import CheckReport, build_run, check_scenario
    from roboyard.scenarios.batch.comparison import VariantComparison, compare_variants
    from roboyard.scenarios.batch.options import BatchOptions
    from roboyard.scenarios.batch.page_writer import compare_and_report, run_batch_and_report, run_suite_and_report
    from roboyard.scenarios.batch.runner import BatchObserver, BatchResult, run_batch
    from roboyard.scenarios.execution import run_scenario
    from roboyard.scenarios.loading import LoadedScenario, load_scenario, scenario_from_config
    from roboyard.scenarios.report_regeneration import regenerate_report
    from roboyard.scenarios.resolve import ResolvedScenario, resolve_scenario
    from roboyard.scenarios.result import RunResult
    from roboyard.scenarios.robot_handle import RobotHandle
    from roboyard.scenarios.run import Run
    from roboyard.scenarios.run_control import RunControl
    from roboyard.scenarios.run_options import RunObserver, RunOptions, RunProgress, SnapshotRequest
    from roboyard.scenarios.schema import RecordConfig, ScenarioConfig

__all__ = [
    "BatchObserver",
    "BatchOptions",
    "BatchResult",
    "CheckReport",
    "LoadedScenario",
    "RecordConfig",
    "ResolvedScenario",
    "RobotHandle",
    "Run",
    "RunControl",
    "RunObserver",
    "RunOptions",
    "RunProgress",
    "RunResult",
    "ScenarioConfig",
    "SnapshotRequest",
    "VariantComparison",
    "build_run",
    "check_scenario",
    "compare_and_report",
    "compare_variants",
    "load_scenario",
    "regenerate_report",
    "resolve_scenario",
    "run_batch",
    "run_batch_and_report",
    "run_scenario",
    "run_suite_and_report",
    "scenario_from_config",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "batch.options": ("BatchOptions",),
    "batch.page_writer": ("compare_and_report", "run_batch_and_report", "run_suite_and_report"),
    "batch.runner": ("BatchObserver", "BatchResult", "run_batch"),
    "assembly": ("CheckReport", "build_run", "check_scenario"),
    "execution": ("run_scenario",),
    "batch.comparison": ("VariantComparison", "compare_variants"),
    "run_control": ("RunControl",),
    "run_options": ("RunObserver", "RunOptions", "RunProgress", "SnapshotRequest"),
    "resolve": ("ResolvedScenario", "resolve_scenario"),
    "result": ("RunResult",),
    "report_regeneration": ("regenerate_report",),
    "robot_handle": ("RobotHandle",),
    "run": ("Run",),
    "schema": ("RecordConfig", "ScenarioConfig"),
    "loading": ("LoadedScenario", "load_scenario", "scenario_from_config"),
})  # fmt: skip
