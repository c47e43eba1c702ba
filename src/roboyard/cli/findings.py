"""What readers of descriptions did not understand or had to guess, shortened for the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from roboyard.cli.terminal import count

if TYPE_CHECKING:
    from roboyard.scenarios import Run

_PLACED = re.compile(r"(?P<file>[^:\n]+):(?P<line>\d+)(, [^:\n]+)?: (?P<what>.*)", re.DOTALL)


def findings_of(run: Run) -> list[str]:
    """Findings about a run's world and robots; guesses about robots first."""
    guessed = [f"{robot.name}: {finding}" for robot in run.robots.values() for finding in robot.package.findings]
    models = [str(finding) for robot in run.robots.values() for finding in robot.model.warnings]
    return [*guessed, *models, *map(str, run.world.warnings), *run.simulation.notes]


def shortened(findings: Iterable[str]) -> list[str]:
    """The same thing said about several lines of one file becomes one sentence."""
    first: dict[tuple[str, str], str] = {}
    more: dict[tuple[str, str], int] = {}
    for finding in dict.fromkeys(findings):
        match = _PLACED.fullmatch(finding)
        key = (match["file"], match["what"]) if match else ("", finding)
        if key in first:
            more[key] = more.get(key, 0) + 1
        else:
            first[key] = finding
    return [
        text + (f" (and at {count(more[key], 'more place')})" if key in more else "") for key, text in first.items()
    ]
