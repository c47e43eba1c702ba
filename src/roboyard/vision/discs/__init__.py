"""Marked discs: detection in images, pose estimation, tracking, and reference detectors."""
