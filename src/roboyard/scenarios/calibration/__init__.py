"""Calibration of drives: moves driven in simulation, a regression, its report."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.scenarios.calibration.drive import Calibrated, calibrate_drive
    from roboyard.scenarios.calibration.moves import Move, plan_moves

__all__ = ["Calibrated", "Move", "calibrate_drive", "plan_moves"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "drive": ("Calibrated", "calibrate_drive"),
    "moves": ("Move", "plan_moves"),
})  # fmt: skip
