"""Local controllers: a controller computes velocity commands that follow a path among obstacles."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.controllers.controller import (
        Controller,
        GoalChecker,
        GoalTolerance,
        MotionLimits,
        SpeedLimit,
    )
    from roboyard.navigation.controllers.costmap_window import CostmapWindow
    from roboyard.navigation.controllers.dwa import DwaConfig, DwaController
    from roboyard.navigation.controllers.mppi import MppiConfig, MppiController, MppiCriticWeights
    from roboyard.navigation.controllers.path_follower import PathFollower, PathSegment
    from roboyard.navigation.controllers.regulated_pure_pursuit import (
        RegulatedPurePursuitConfig,
        RegulatedPurePursuitController,
    )

__all__ = [
    "Controller",
    "CostmapWindow",
    "DwaConfig",
    "DwaController",
    "GoalChecker",
    "GoalTolerance",
    "MotionLimits",
    "MppiConfig",
    "MppiController",
    "MppiCriticWeights",
    "PathFollower",
    "PathSegment",
    "RegulatedPurePursuitConfig",
    "RegulatedPurePursuitController",
    "SpeedLimit",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "controller": ("Controller", "GoalChecker", "GoalTolerance", "MotionLimits", "SpeedLimit"),
    "costmap_window": ("CostmapWindow",),
    "dwa": ("DwaConfig", "DwaController"),
    "mppi": ("MppiConfig", "MppiController", "MppiCriticWeights"),
    "path_follower": ("PathFollower", "PathSegment"),
    "regulated_pure_pursuit": ("RegulatedPurePursuitConfig", "RegulatedPurePursuitController"),
})  # fmt: skip
