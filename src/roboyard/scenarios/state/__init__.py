"""The complete state of a run in a file: saved between two instants, and gone on from, byte for byte."""

from roboyard.scenarios.state.run_state import restore_run, save_run

__all__ = ["restore_run", "save_run"]
