"""Fixtures of the control room."""

from tests.harness.fixtures import harness

__all__ = ["harness"]
