"""What a package contributes to runs: metric collectors, report sections and keys of scenario files.

`RunPlugin` is what a package registers; the other names are what its collectors, sections and keys are made of.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.evaluation.collector import (
        GroundTruthProvider,
        MessageHandler,
        Metric,
        MetricCollector,
        MetricValue,
        RobotContext,
        TimelineEvent,
    )
    from roboyard.evaluation.plugin import PageSection, RunPlugin
    from roboyard.evaluation.scenario_key import RobotSetup, RunBuilder, ScenarioKey
    from roboyard.evaluation.section import ReportSection, ReportTable, SectionContext

__all__ = [
    "GroundTruthProvider",
    "MessageHandler",
    "Metric",
    "MetricCollector",
    "MetricValue",
    "PageSection",
    "ReportSection",
    "ReportTable",
    "RobotContext",
    "RobotSetup",
    "RunBuilder",
    "RunPlugin",
    "ScenarioKey",
    "SectionContext",
    "TimelineEvent",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "collector": (
        "GroundTruthProvider", "MessageHandler", "Metric", "MetricCollector", "MetricValue", "RobotContext",
        "TimelineEvent",
    ),
    "plugin": ("PageSection", "RunPlugin"),
    "scenario_key": ("RobotSetup", "RunBuilder", "ScenarioKey"),
    "section": ("ReportSection", "ReportTable", "SectionContext"),
})  # fmt: skip
