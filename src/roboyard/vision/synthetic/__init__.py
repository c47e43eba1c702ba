"""Synthetic images with exact ground truth, generated from a seed, for tests and benchmarks of detectors."""
