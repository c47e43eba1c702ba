"""A run in a process of its own, for tests that stop it from outside."""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection
from pathlib import Path

from roboyard.scenarios import RunControl, load_scenario, run_scenario
from roboyard.scenarios.run_options import RunObserver, RunOptions, RunProgress


def run_in_real_time(scenario: Path, out: Path, connection: Connection) -> None:
    """Run a scenario at the pace of the wall clock; send "running" after a second and its state in the end.

    Ends the process with the exit code of the outcome.
    """
    reported = False

    def report(progress: RunProgress) -> None:
        nonlocal reported
        if progress.time >= 1.0 and not reported:
            reported = True
            connection.send("running")

    outcome = run_scenario(
        load_scenario(scenario),
        RunOptions(out=out, serve=False),
        control=RunControl(real_time_factor=1.0),
        observer=RunObserver(on_progress=report),
    )
    connection.send(outcome.state)
    sys.exit(outcome.exit_code)
