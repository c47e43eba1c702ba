"""``roboyard calibrate``: parameters of a robot's odometry or of a camera, estimated from experiments and stored."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from roboyard.cli.app import JsonOption, command_group


def camera(
    image_files: Annotated[list[Path], typer.Argument(metavar="PICTURE…", help="Of the board, by one camera.")],
    board_text: Annotated[
        str, typer.Option("--board", metavar="BOARD", help="chessboard:9x6:25mm, charuco:7x5:40mm:30mm:4x4_50")
    ],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="For the result, as ROS reads it (YAML).")] = None,
    name: Annotated[str, typer.Option(help="Of the camera, in that file.")] = "camera",
    json: JsonOption = False,
) -> None:
    """A camera's lens, from pictures of a board.

    Focal lengths, middle and distortion, with standard errors.  A chessboard is named by its inner corners and its
    squares' edge, a ChArUco board by its squares, their edge, its markers' edge and their family.  10 to 20 pictures
    are good, with the board tilted in several directions.

    Exit code 0: calibrated; 2: the pictures do not do, and why.
    """
    from roboyard.cli.terminal import print_fields, print_json, print_line, print_note, print_table
    from roboyard.vision.boards import Board
    from roboyard.vision.camera_file import camera_text
    from roboyard.vision.intrinsics import calibrate_camera

    calibration_board = Board.parse(board_text)
    images = [_load_image(path) for path in image_files]
    result = calibrate_camera(images, calibration_board)
    lens = result.lens
    if out is not None:
        _write_result(out, camera_text(lens, name))
    values = (lens.fx, lens.fy, lens.cx, lens.cy, *lens.distortion)
    names = ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2", "k3")
    used, without_board = ([str(image_files[k]) for k in group] for group in (result.used, result.unseen))
    if json:
        print_json(
            {
                "ok": True, "width": lens.width, "height": lens.height,
                "values": dict(zip(names, values, strict=True)),
                "standard_errors": dict(zip(names, result.sigma.tolist(), strict=True)),
                "error_px": result.error, "covered": result.covered,
                "pictures": dict(zip(used, result.view_errors.tolist(), strict=True)),
                "unseen": without_board, "file": None if out is None else str(out),
            }
        )  # fmt: skip
        return
    rows = [(key, f"{v:.6g}", f"{s:.2g}") for key, v, s in zip(names, values, result.sigma, strict=True)]
    print_table(["", "value", "std. error"], rows)
    print_line()
    worst = int(result.view_errors.argmax())
    print_fields(
        [
            ("corners are off by", f"{result.error:.3f} px (rms)"),
            ("worst picture", f"{image_files[result.used[worst]]}: {result.view_errors[worst]:.3f} px"),
            ("corners cover", f"{100.0 * result.covered:.0f} % of the picture"),
            ("stored", str(out) if out is not None else "no: --out FILE keeps it"),
        ]
    )
    for path in without_board:
        print_note(f"no board seen in {path}")


def hand_eye(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Poses of arm and target (YAML).")],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="For the camera's pose (YAML).")] = None,
    json: JsonOption = False,
) -> None:
    """Where a camera sits on an arm, or beside it.

    FILE has `setup: eye-in-hand` or `eye-to-hand`, and `poses:`, each with `arm` (flange in the base) and `target`
    (in the camera), as `{xyz: [m], quaternion: [w, x, y, z]}` or with `rpy: [rad]`.

    Exit code 0: calibrated; 2: the poses do not tell where the camera is, and why.
    """
    from roboyard.cli.terminal import print_fields, print_json, print_line, print_table
    from roboyard.vision.hand_eye import calibrate_hand_eye
    from roboyard.vision.hand_eye_file import read_hand_eye, result_text

    setup, arm, target = read_hand_eye(file)
    result = calibrate_hand_eye(arm, target, setup)
    if out is not None:
        _write_result(out, result_text(result))
    T, sigma = result.T_mount_camera, result.covariance.diagonal() ** 0.5
    parent_frame = "flange" if setup == "eye-in-hand" else "base"
    if json:
        print_json(
            {
                "ok": True, "setup": setup, "frame": parent_frame, "poses": len(arm), "xyz": T.translation.tolist(),
                "quaternion": T.rotation.tolist(), "rpy": T.rpy.tolist(), "sigma_xyz": sigma[:3].tolist(),
                "sigma_rotation": sigma[3:].tolist(), "covariance": result.covariance.tolist(),
                "position_errors": result.position_errors.tolist(),
                "rotation_errors": result.rotation_errors.tolist(), "file": None if out is None else str(out),
            }
        )  # fmt: skip
        return
    rows: list[tuple[Any, ...]] = [
        (axis, f"{1e3 * T.translation[k]:.3f}", f"{1e3 * sigma[k]:.2g}", f"{math.degrees(T.rpy[k]):.4f}",
         f"{math.degrees(sigma[3 + k]):.2g}")
        for k, axis in enumerate("xyz")
    ]  # fmt: skip
    print_table([f"in the {parent_frame}", "mm", "std. error", "rpy, °", "std. error, °"], rows)
    print_line()
    print_fields(
        [
            ("poses", f"{len(arm)}, {setup}"),
            ("target off by", f"{1e3 * float((result.position_errors**2).mean() ** 0.5):.3f} mm, "
             f"{math.degrees(float((result.rotation_errors**2).mean() ** 0.5)):.4f}° (rms)"),
            ("worst pose", f"number {int(result.position_errors.argmax()) + 1}: "
             f"{1e3 * float(result.position_errors.max()):.3f} mm"),
            ("stored", str(out) if out is not None else "no: --out FILE keeps it"),
        ]
    )  # fmt: skip


def _load_image(path: Path) -> Any:
    """(h, w, 3) of a picture's file.

    Raises:
        InputError: unreadable, or no picture.
    """
    import numpy as np
    from PIL import Image, UnidentifiedImageError

    from roboyard.errors import InputError

    try:
        with Image.open(path) as image:
            return np.asarray(image.convert("RGB"))
    except FileNotFoundError:
        raise InputError(f"there is no file {path}", valid="pictures of the board") from None
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
        raise InputError("is no picture that can be read", location=str(path), valid="PNG, JPEG, …") from error


def _write_result(path: Path, text: str) -> None:
    from roboyard.config import write_atomic
    from roboyard.errors import InputError

    try:
        write_atomic(path, text)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", location=str(path)) from error


app = command_group("Find numbers of a robot or a camera by experiment.")


@app.callback()
def _calibrate() -> None:
    """Find numbers of a robot or a camera by experiment."""


@app.command("odometry")
def odometry(
    robot: Annotated[str, typer.Argument(metavar="ROBOT", help="A name of `roboyard list`, or a file.")],
    world: Annotated[str, typer.Option(metavar="FILE|NAME", help="A flat floor with room.")] = "empty",
    seed: Annotated[int, typer.Option(min=0, help="Of the moves' speeds and the encoders' noise.")] = 0,
    n_rotations: Annotated[
        int, typer.Option("--turns", min=4, max=10_000, help="How many; as many straights are driven too.")
    ] = 24,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="New folder; default: runs/calibrate-NNN.")] = None,
    store_result: Annotated[
        bool, typer.Option("--store/--no-store", help="Whether the robot's next runs use the result.")
    ] = True,
    json: JsonOption = False,
) -> None:
    """Wheel radii, track and slip factor of a drive with two sides.

    It drives straights and turns in simulation and fits what the wheels rolled to where the robot really went.
    The result is kept beside the robot's file; for an installed robot, in your own data folder.

    Exit code 0: calibrated; 1: the robot cannot be driven so; 2: the input was wrong.
    """
    from roboyard.bringup.calibration_store import save_calibration
    from roboyard.bringup.catalog import WORLDS
    from roboyard.bringup.robot_loader import load_robot
    from roboyard.cli.terminal import is_interactive, print_fields, print_json, print_line, print_note, print_table
    from roboyard.scenarios.calibration import calibrate_drive, find_differential_drive, write_calibration
    from roboyard.scenarios.run_folder import create_numbered_folder, prepare_folder

    package = load_robot(robot, use_calibration=False)
    find_differential_drive(package)
    WORLDS.resolve(world)
    folder = prepare_folder(out) if out is not None else create_numbered_folder(f"calibrate-{package.name}", "runs")
    last_printed = [-1]

    def progress(n_finished: int, n_moves: int) -> None:
        tenth = 10 * n_finished // n_moves
        if tenth != last_printed[0] and is_interactive() and not json:
            last_printed[0] = tenth
            print_note(f"{n_finished} of {n_moves} moves")

    try:
        result = calibrate_drive(package, world=world, seed=seed, n_turns=n_rotations, progress=progress)
        paths = write_calibration(result, folder.path)
    except BaseException:
        folder.discard()
        raise
    stored_file = save_calibration(package, result.calibration) if store_result else None
    uncalibrated_error, calibrated_error = (float((errors**2).mean() ** 0.5) for errors in result.rotation_errors())
    if json:
        print_json(
            {
                "ok": True,
                "robot": package.name,
                "world": world,
                "seed": seed,
                "moves": len(result.data.maneuvers),
                "dropped": result.data.dropped_count,
                "confidence": result.fit.confidence,
                "estimates": {
                    name: {
                        "value": found.value,
                        "standard_error": found.standard_error,
                        "interval": list(found.interval),
                    }
                    for name, found in result.estimates.items()
                },
                "turn_error_uncalibrated": uncalibrated_error,
                "turn_error_calibrated": calibrated_error,
                "files": {name: str(path) for name, path in paths.items()},
                "stored": None if stored_file is None else str(stored_file),
            }
        )
        return
    rows = [
        (name, f"{found.value:.5g}", f"{found.standard_error:.2g}",
         f"{found.interval[0]:.5g} … {found.interval[1]:.5g}")
        for name, found in result.estimates.items()
    ]  # fmt: skip
    print_table(["", "value", "std. error", "95 % interval"], rows)
    print_line()
    print_fields(
        [
            (
                "a turn is off by",
                f"{57.29578 * uncalibrated_error:.2f}° uncalibrated, "
                f"{57.29578 * calibrated_error:.2f}° calibrated (rms)",
            ),
            ("report", str(paths["report"])),
            ("stored", str(stored_file) if stored_file is not None else "no: the robot's runs stay as they were"),
        ]
    )


app.command("camera")(camera)
app.command("hand-eye")(hand_eye)
