"""Leaves of behavior trees for people."""
