"""The node that plans and executes tasks."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.task_planning.nodes.task_executor import StateObserver, TaskExecutorNode

__all__ = ["StateObserver", "TaskExecutorNode"]

__getattr__, __dir__ = lazy_exports(__name__, {"task_executor": ("StateObserver", "TaskExecutorNode")})
