"""Fixtures of the bus room."""

from tests.harness.fixtures import harness, private_runtime_folder

__all__ = ["harness", "private_runtime_folder"]
