"""Simulated cameras: color, depth, infrared and stereo images, with models of their errors."""
