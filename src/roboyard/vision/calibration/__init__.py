"""Calibration of cameras: intrinsics from images of a board, and the pose of a camera on or beside an arm."""
