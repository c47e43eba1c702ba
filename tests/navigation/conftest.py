"""Fixtures of the navigation room."""

from tests.harness.fixtures import harness

__all__ = ["harness"]
