"""Simulator plugins and ros2_control controllers of descriptions, mapped onto nodes."""
