"""What connects mapping to recordings and topics."""

from roboyard.mapping.nodes.log_topics import LogTopics
from roboyard.mapping.nodes.logs import ScanLog, read_log

__all__ = ["LogTopics", "ScanLog", "read_log"]
