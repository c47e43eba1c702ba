"""``roboyard calibrate``: finds numbers of a robot or a camera by experiments, and keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roboyard.cli.grammar import JsonOption, group
from roboyard.cli.verbs.calibrate_camera import camera, hand_eye

app = group("Find numbers of a robot or a camera by experiment.")


@app.callback()
def _calibrate() -> None:
    """Find numbers of a robot or a camera by experiment."""


@app.command("drive")
def drive(
    robot: Annotated[str, typer.Argument(metavar="ROBOT", help="A name of `roboyard list`, or a file.")],
    world: Annotated[str, typer.Option(metavar="FILE|NAME", help="A flat floor with room.")] = "empty",
    seed: Annotated[int, typer.Option(min=0, help="Of the moves' speeds and the encoders' noise.")] = 0,
    turns: Annotated[int, typer.Option(min=4, max=10_000, help="How many; as many straights are driven too.")] = 24,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="New folder; default: runs/calibrate-NNN.")] = None,
    keep: Annotated[
        bool, typer.Option("--store/--no-store", help="Whether the robot's next runs use the result.")
    ] = True,
    json: JsonOption = False,
) -> None:
    """Wheel radii, track and slip factor of a drive with two sides.

    It drives straights and turns in simulation and fits what the wheels rolled to where the robot really went.
    The result is kept beside the robot's file; for an installed robot, in your own data folder.

    Exit code 0: calibrated; 1: the robot cannot be driven so; 2: the input was wrong.
    """
    from roboyard.cli.terminal import emit, fields, interactive, note, say, table
    from roboyard.scenarios.calibrated import store
    from roboyard.scenarios.calibration import calibrate_drive
    from roboyard.scenarios.calibration.drive import two_sided
    from roboyard.scenarios.calibration.report import write_calibration
    from roboyard.scenarios.catalog import find, find_robot
    from roboyard.scenarios.run_folder import given_folder, new_folder

    package = find_robot(robot, calibrated=False)
    two_sided(package)
    find("world", world)
    folder = given_folder(out) if out is not None else new_folder(f"calibrate-{package.name}", "runs")
    shown = [-1]

    def progress(done: int, of: int) -> None:
        part = 10 * done // of
        if part != shown[0] and interactive() and not json:
            shown[0] = part
            note(f"{done} of {of} moves")

    try:
        result = calibrate_drive(package, world=world, seed=seed, turns=turns, progress=progress)
        paths = write_calibration(result, folder.path)
    except BaseException:
        folder.discard()
        raise
    kept = store(package, result.record) if keep else None
    before, after = (float((errors**2).mean() ** 0.5) for errors in result.turn_errors())
    if json:
        emit(
            {
                "ok": True,
                "robot": package.name,
                "world": world,
                "seed": seed,
                "moves": len(result.driven.moves),
                "dropped": result.driven.dropped,
                "confidence": result.fit.confidence,
                "estimates": {
                    name: {
                        "value": found.value,
                        "standard_error": found.standard_error,
                        "interval": list(found.interval),
                    }
                    for name, found in result.estimates.items()
                },
                "turn_error_uncalibrated": before,
                "turn_error_calibrated": after,
                "files": {name: str(path) for name, path in paths.items()},
                "stored": None if kept is None else str(kept),
            }
        )
        return
    rows = [
        (name, f"{found.value:.5g}", f"{found.standard_error:.2g}",
         f"{found.interval[0]:.5g} … {found.interval[1]:.5g}")
        for name, found in result.estimates.items()
    ]  # fmt: skip
    table(["", "value", "std. error", "95 % interval"], rows)
    say()
    fields(
        [
            ("a turn is off by", f"{57.29578 * before:.2f}° uncalibrated, {57.29578 * after:.2f}° calibrated (rms)"),
            ("report", str(paths["report"])),
            ("stored", str(kept) if kept is not None else "no: the robot's runs stay as they were"),
        ]
    )


app.command("camera")(camera)
app.command("hand-eye")(hand_eye)
