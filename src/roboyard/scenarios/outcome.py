"""What a run came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roboyard.scenarios.document import State, make_document
from roboyard.scenarios.run_folder import RunFolder

if TYPE_CHECKING:
    from roboyard.scenarios.run import Run


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one run of a scenario.

    Attributes:
        scenario: Its name.
        seed: That it ran with.
        state: "done", "interrupted" or "failed".
        success: Whether it ran to its end and every criterion held.
        error: What stopped it, if anything did.
        metrics: What metrics.json says.
        folder: Where everything lies; None if nothing was to be kept.
        files: What lies there, by kind: "report", "video", "recording", "metrics", "scenario", "error".
        notes: What else to tell, e.g. why there is no video.
    """

    scenario: str
    seed: int
    state: State
    success: bool
    error: str | None
    metrics: dict[str, Any]
    folder: Path | None = None
    files: dict[str, Path] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0: done and the criteria held; 1: not."""
        return 0 if self.success else 1

    @property
    def reason(self) -> str:
        """Why it is no success, in one line; "" if it is one."""
        if self.success:
            return ""
        if self.error:
            return self.error
        if self.state != "done":
            return self.state
        missed = [name for name, found in self.metrics["criteria"].items() if not found["passed"]]
        return "not held: " + ", ".join(f"{name} ({self.metrics['criteria'][name]['expression']})" for name in missed)


def write_script_report(run: Run, folder: RunFolder) -> Path:
    """Metrics and report of a run that was made from Python, not from a scenario."""
    from roboyard.scenarios.report import write_report

    folder.write_json(folder.metrics, make_document(run))
    return write_report(folder, world=run.simulation)
