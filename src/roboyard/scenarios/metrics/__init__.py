"""What a run is judged by: collectors that listen to truth and odometry while it runs, and what they found."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.scenarios.metrics.collector import Collector, Value
    from roboyard.scenarios.metrics.contacts import Contacts
    from roboyard.scenarios.metrics.evaluation import Evaluation, RobotTopics, metric_names
    from roboyard.scenarios.metrics.mapping import MapQuality
    from roboyard.scenarios.metrics.motion import Motion
    from roboyard.scenarios.metrics.odometry import OdometryError

__all__ = [
    "Collector",
    "Contacts",
    "Evaluation",
    "MapQuality",
    "Motion",
    "OdometryError",
    "RobotTopics",
    "Value",
    "metric_names",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "collector": ("Collector", "Value"),
    "contacts": ("Contacts",),
    "evaluation": ("Evaluation", "RobotTopics", "metric_names"),
    "mapping": ("MapQuality",),
    "motion": ("Motion",),
    "odometry": ("OdometryError",),
})  # fmt: skip
