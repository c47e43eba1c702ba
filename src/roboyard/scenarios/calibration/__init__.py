"""Calibration of drives: moves driven in simulation, a regression, its report."""

from roboyard.scenarios.calibration.drive import Calibrated, calibrate_drive
from roboyard.scenarios.calibration.moves import Move, plan_moves

__all__ = ["Calibrated", "Move", "calibrate_drive", "plan_moves"]
