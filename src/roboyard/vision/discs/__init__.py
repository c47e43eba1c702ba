"""Marked discs: found in pictures, measured, placed in space."""
