"""Fixtures of the tests of scenarios."""

from tests.harness.workers import forked_workers

__all__ = ["forked_workers"]
