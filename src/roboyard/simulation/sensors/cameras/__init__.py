"""Cameras: colour, depth, infrared, stereo pairs, and what goes wrong in each."""
