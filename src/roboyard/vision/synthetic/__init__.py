"""Pictures made by seed, with exact truth: for tests and benchmarks of detectors."""
