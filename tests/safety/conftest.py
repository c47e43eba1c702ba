"""Fixtures of the safety room."""

from tests.harness.fixtures import harness

__all__ = ["harness"]
