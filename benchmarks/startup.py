"""How long commands take that only look something up, and how long it takes until a run makes its first steps.

Each command is a process of its own, with caches that an earlier call has filled: compiled kernels, compiled Python and
parsed definitions.  Times are processor time of the process, user and system, the least of several; so that other
programs on the machine count little.  The peer is the limit of what such a command can do: a Python that imports numpy,
numba and MuJoCo, where the command needs them, and nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from roboyard.errors import RunError
from roboyard.grids import FREE, OCCUPIED, GridGeometry, OccupancyGrid
from roboyard.mapping import save_map

REPEATS, NIGHTLY = 3, 10
PLAIN = "import typer, pydantic"
"""What every command needs: it reads its options."""
HEAVY = "import typer, pydantic, numba, mujoco, scipy.linalg, scipy.ndimage"
"""What physics, kernels and planners need."""
PLAN_STEPS = (
    "plan", "steps", "stones", "--fraction", "0.12", "--cell-size", "0.06", "--height-range", "0.3",
    "--origin", "0.34,-0.6", "--size", "0.4,1.2", "--goal", "0.3,0", "--max-events", "2000",
)  # fmt: skip
"""A search so short that the time is that of the command."""
FIRST_STEPS = """
import os, sys
from roboyard.cli.run_display import RunDisplay
from roboyard.cli.main import main
RunDisplay.tick = lambda display: os._exit(0)  # called when 0.1 s of the run are simulated
sys.argv = ["roboyard", "run", sys.argv[1], "--quiet", "--out", sys.argv[2]]
main()
"""


def verbs(folder: Path) -> list[tuple[str, str, float]]:
    """Command lines, the imports that are their limit, and how many seconds each may take."""
    library = Path(str(resources.files("roboyard.scenarios"))) / "library"
    return [
        ("list", PLAIN, 1.0),
        ("list nodes", PLAIN, 1.0),
        ("interface list", PLAIN, 1.0),
        (f"bag info {folder / 'run'}", PLAIN, 1.0),
        (f"check tree {library / 'missions' / 'homing.xml'}", PLAIN, 1.0),
        (f"check movement {library / 'movements' / 'greeting.xml'} --robot akrobat", HEAVY, 1.0),
        ("check world arena", HEAVY, 1.0),
        ("check robot rover", HEAVY, 1.0),
        ("check robot akrobat", HEAVY, 1.0),
        ("check scenario rover-homing", HEAVY, 1.0),
        ("check scenario cell-collaboration", HEAVY, 1.0),
        (f"check step-plan {folder / 'steps.json'}", HEAVY, 1.0),
        (f"plan path {folder / 'walls.yaml'} --start 0.5,4 --goal 9.5,1 --robot rover", HEAVY, 1.0),
        ("plan arm scitos_arm --goal ahead", HEAVY, 1.0),
        (f"plan tasks {library / 'missions' / 'scitos_tasks.yaml'}", PLAIN, 1.0),
        (" ".join(PLAN_STEPS), HEAVY, 1.0),
    ]


def make_files(folder: Path) -> None:
    """A map with two walls, a plan of steps, and a short run's folder."""
    cells = np.full((100, 200), FREE, dtype=np.int8)
    cells[30:, 60] = cells[:70, 140] = OCCUPIED
    save_map(folder / "walls.yaml", OccupancyGrid(cells, GridGeometry(0.05, cells.shape)))
    measured(["-m", "roboyard", *PLAN_STEPS, "--out", str(folder / "steps.json")], folder)
    measured(["-m", "roboyard", "run", "rover-drive", "--smoke", "--quiet", "--out", str(folder / "run")], folder)


def measured(arguments: Sequence[str], folder: Path) -> tuple[float, float]:
    """Processor time and time of a call of Python [s]."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *arguments], stdout=said, stderr=said, cwd=folder, env=environment
        )  # fmt: skip
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise RunError(
                f"exit code {process.returncode}: {said.read()[-500:].decode()}", location=" ".join(arguments)
            )
    return used.ru_utime + used.ru_stime, wall


def run(nightly: bool, runs: int | None = None) -> dict[str, Any]:
    """Commands as processes, from their start to their end."""
    repeats = runs if runs is not None else NIGHTLY if nightly else REPEATS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_files(folder)
        calls = {
            short(verb): (["-m", "roboyard", *verb.split()], limit, target) for verb, limit, target in verbs(folder)
        }
        for scenario in ("rover-homing", "rover-drive"):
            calls[f"run {scenario}, to its first steps"] = (["-c", FIRST_STEPS, scenario], HEAVY, 2.0)
        commands = {label: arguments for label, (arguments, _, _) in calls.items()}
        commands |= {limit: ["-c", limit] for limit in (PLAIN, HEAVY)}
        best: dict[str, tuple[float, float]] = {}
        for number in range(repeats + 1):
            for label, arguments in commands.items():
                out = [str(folder / f"{arguments[-1]}-{number}")] if FIRST_STEPS in arguments else []
                found = measured([*arguments, *out], folder)
                if number:  # the first round fills the caches
                    best[label] = min(best.get(label, found), found)
    figures = [
        {
            "name": label, "value": best[label][0], "unit": "s", "target": f"<= {target:g}",
            "peer": "the imports it cannot do without", "peer_value": best[limit][0],
            "ratio": best[limit][0] / best[label][0],
        }
        for label, (_, limit, target) in calls.items()
    ]  # fmt: skip
    return {"figures": figures, "details": [f"{label}: {wall:.2f} s of wall time" for label, (_, wall) in best.items()]}


def short(command: str) -> str:
    """A command line without the folders of its files."""
    return " ".join(word.rsplit("/", 1)[-1] for word in command.split())
