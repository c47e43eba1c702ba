"""Checks of the package's structure, read from syntax trees: nothing of the package is imported."""
