"""Fixtures of the localization room."""

from tests.harness.fixtures import harness

__all__ = ["harness"]
