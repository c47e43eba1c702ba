"""What a package contributes to the evaluation of a run: metric collectors and report sections.

`RunPlugin` is what a package registers; the other names are what its collectors and sections are made of.
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
    "RunPlugin",
    "SectionContext",
    "TimelineEvent",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "collector": (
        "GroundTruthProvider", "MessageHandler", "Metric", "MetricCollector", "MetricValue", "RobotContext",
        "TimelineEvent",
    ),
    "plugin": ("PageSection", "RunPlugin"),
    "section": ("ReportSection", "ReportTable", "SectionContext"),
})  # fmt: skip
