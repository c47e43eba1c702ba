"""The complete state of a run in a file: saved between two instants, and gone on from, byte for byte."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.scenarios.state.run_state import restore_run, save_run

__all__ = ["restore_run", "save_run"]

__getattr__, __dir__ = lazy_exports(__name__, {"run_state": ("restore_run", "save_run")})
