"""A run in a process of its own, for tests that stop it from outside."""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection
from pathlib import Path

from roboyard.scenarios import Control, load_spec, run_scenario
from roboyard.scenarios.clock import Progress


def run_in_real_time(scenario: Path, out: Path, connection: Connection) -> None:
    """Run a scenario at the pace of the wall clock; send "running" after a second and its state in the end.

    Ends the process with the exit code of the outcome.
    """
    reported = False

    def report(progress: Progress) -> None:
        nonlocal reported
        if progress.time >= 1.0 and not reported:
            reported = True
            connection.send("running")

    outcome = run_scenario(load_spec(scenario), out=out, serve=False, control=Control(pace=1.0), progress=report)
    connection.send(outcome.state)
    sys.exit(outcome.exit_code)
