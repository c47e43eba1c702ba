"""Fixtures of the vision room."""

from tests.harness.fixtures import harness

__all__ = ["harness"]
