"""Costmaps: what it costs a robot to be at a place, put together from layers."""

from roboyard.navigation.costmap.grid import FREE, INSCRIBED, LETHAL, UNKNOWN, Costmap

__all__ = ["FREE", "INSCRIBED", "LETHAL", "UNKNOWN", "Costmap"]
