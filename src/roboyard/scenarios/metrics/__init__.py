"""What a run is judged by: collectors that listen to truth and odometry while it runs, and what they found."""

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
