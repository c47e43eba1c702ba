"""Batches: a scenario with many seeds and parameters, statistics, comparisons, suites and exports."""
