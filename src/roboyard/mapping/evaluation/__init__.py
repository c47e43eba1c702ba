"""Evaluation of maps and trajectories against ground truth."""
