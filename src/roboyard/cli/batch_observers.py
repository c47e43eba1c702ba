"""Shows batches on the terminal while they run."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from roboyard.cli.run_display import BatchDisplay
from roboyard.scenarios.batch.runner import BatchObserver
from roboyard.scenarios.batch.suite import SuiteObserver
from roboyard.scenarios.batch.worker import TrialResult


class DisplayedBatch(BatchObserver):
    """Passes what happens in a batch on to a display."""

    def __init__(self, display: BatchDisplay) -> None:
        self._display = display

    def on_opened(self, folder: Path, runs: int) -> None:
        """Show the number of runs."""
        self._display.set_folder(folder, runs)

    def on_stage(self, text: str) -> None:
        """Show what is done before the first run."""
        self._display.show_phase(text)

    def on_result(self, result: TrialResult, finished: int, total: int) -> None:
        """Show the number of finished runs."""
        self._display.add_result(result, finished, total)


class DisplayedBatches(SuiteObserver):
    """Opens a display for each batch of a suite or comparison, after closing that of the batch before.

    Args:
        runs: Number of runs of each batch.
        stack: Stack that closes the last display.
        quiet: Whether nothing is shown.
    """

    def __init__(self, runs: int, stack: ExitStack, *, quiet: bool) -> None:
        self._runs, self._stack, self._quiet = runs, stack, quiet

    def create_batch_observer(self, scenario: str) -> BatchObserver:
        """Return the observer of the next batch."""
        self._stack.close()
        return DisplayedBatch(self._stack.enter_context(BatchDisplay(scenario, self._runs, quiet=self._quiet)))
