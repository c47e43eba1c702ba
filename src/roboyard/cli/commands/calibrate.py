"""``roboyard calibrate``: parameters of a robot's odometry or of a camera, estimated from experiments and stored."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from roboyard.cli.app import command_group
from roboyard.cli.arguments import write_text
from roboyard.cli.options import OUT, SEED, WORLD, JsonOption, RobotArgument

_LENS_PARAMETERS = ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2", "k3")
app = command_group("Calibrate odometry, cameras and their mounts.")


@app.callback()
def _calibrate() -> None:
    """Calibrate odometry, cameras and their mounts."""


@app.command("odometry")
def odometry(
    robot: RobotArgument,
    world: Annotated[str, WORLD("; it needs a flat, free floor")] = "empty",
    seed: Annotated[int, SEED()] = 0,
    n_rotations: Annotated[
        int, typer.Option("--turns", metavar="N", min=4, max=10_000, help="Number of turns, and of straight moves.")
    ] = 24,
    out: Annotated[Path | None, OUT("; default: runs/calibrate-ROBOT-NNN", metavar="DIR")] = None,
    store_result: Annotated[
        bool, typer.Option("--store/--no-store", help="Whether later runs of the robot use the result.")
    ] = True,
    json: JsonOption = False,
) -> None:
    """Calibrate the odometry of a differential drive.

    The robot drives straight moves and turns in simulation. The command fits wheel radii, track width and slip factor
    to the true motion, and stores them beside the robot's file, or in the user's data folder for an installed robot.

    Exit code 1: the calibration failed; 2: the robot has no differential drive, or an argument cannot be used.
    """
    from roboyard.cli.terminal import is_interactive, print_note, print_result
    from roboyard.scenarios.calibration import calibrate_robot

    last_printed = [-1]

    def progress(n_finished: int, n_moves: int) -> None:
        tenth = 10 * n_finished // n_moves
        if tenth != last_printed[0] and is_interactive() and not json:
            last_printed[0] = tenth
            print_note(f"{n_finished} of {n_moves} moves")

    found = calibrate_robot(
        robot, world=world, seed=seed, n_rotations=n_rotations, out=out, store=store_result, progress=progress
    )
    print_result(found.to_dict(), json, _print_odometry)


def _print_odometry(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_fields, print_line, print_table

    rows = [
        (name, f"{one['value']:.5g}", f"{one['standard_error']:.2g}",
         f"{one['interval'][0]:.5g} … {one['interval'][1]:.5g}")
        for name, one in result["estimates"].items()
    ]  # fmt: skip
    print_table(["", "value", "std. error", "95 % interval"], rows)
    print_line()
    errors = [math.degrees(result[f"turn_error_{name}"]) for name in ("uncalibrated", "calibrated")]
    print_fields(
        [
            ("error of a turn", f"{errors[0]:.2f}° uncalibrated, {errors[1]:.2f}° calibrated (rms)"),
            ("report", result["files"]["report"]),
            ("stored", result["stored_file"] or "no (--no-store)"),
        ]
    )


@app.command("camera")
def camera(
    image_files: Annotated[
        list[Path], typer.Argument(metavar="PICTURE…", help="Images of the calibration board from one camera.")
    ],
    board_text: Annotated[
        str,
        typer.Option(
            "--board", metavar="BOARD", help="Board, e.g. chessboard:9x6:25mm or charuco:7x5:40mm:30mm:4x4_50."
        ),
    ],
    out: Annotated[Path | None, OUT(": the camera file of ROS, .yaml", metavar="FILE")] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the camera in that file.")] = "camera",
    json: JsonOption = False,
) -> None:
    """Calibrate the lens of a camera from images of a board.

    It estimates focal lengths, principal point and distortion with standard errors. A chessboard is described by its
    inner corners and the size of its squares, a ChArUco board by its squares, their size, the size and the family of
    its markers. 10 to 20 images with the board tilted in several directions are enough.

    Exit code 2: the images are not sufficient.
    """
    from roboyard.cli.terminal import print_result
    from roboyard.vision.calibration.camera_calibration import CalibrationBoard, calibrate_camera, format_camera_info

    found = calibrate_camera([_load_image(path) for path in image_files], CalibrationBoard.parse(board_text))
    lens = found.camera_model
    if out is not None:
        write_text(out, format_camera_info(lens, name))
    values = (lens.fx, lens.fy, lens.cx, lens.cy, *lens.distortion)
    used, unused = ([str(image_files[k]) for k in group] for group in (found.used_images, found.undetected_images))
    result = {
        "ok": True, "width": lens.width, "height": lens.height,
        "values": dict(zip(_LENS_PARAMETERS, values, strict=True)),
        "standard_errors": dict(zip(_LENS_PARAMETERS, found.parameter_std.tolist(), strict=True)),
        "error_px": found.reprojection_error, "covered_fraction": found.image_coverage,
        "picture_errors_px": dict(zip(used, found.image_errors.tolist(), strict=True)),
        "pictures_without_board": unused, "file": None if out is None else str(out),
    }  # fmt: skip
    print_result(result, json, _print_camera)


def _print_camera(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_fields, print_line, print_note, print_table

    rows = [
        (name, f"{value:.6g}", f"{result['standard_errors'][name]:.2g}") for name, value in result["values"].items()
    ]
    print_table(["", "value", "std. error"], rows)
    print_line()
    errors = result["picture_errors_px"]
    worst = max(errors, key=lambda name: float(errors[name]))
    print_fields(
        [
            ("reprojection error", f"{result['error_px']:.3f} px (rms)"),
            ("worst picture", f"{worst}: {errors[worst]:.3f} px"),
            ("covered", f"{100.0 * result['covered_fraction']:.0f} % of the picture"),
            ("file", result["file"] or "none (--out FILE writes one)"),
        ]
    )
    for path in result["pictures_without_board"]:
        print_note(f"no board found in {path}")


@app.command("hand-eye")
def hand_eye(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Poses of the arm and of the target, .yaml.")],
    out: Annotated[Path | None, OUT(": the pose of the camera, .yaml", metavar="FILE")] = None,
    json: JsonOption = False,
) -> None:
    """Calibrate the pose of a camera on or beside an arm.

    FILE has `setup: eye-in-hand` or `eye-to-hand`, and `poses:`, each with `arm` (flange in the base) and `target` (in
    the camera), as `{xyz: [m], quaternion: [w, x, y, z]}` or with `rpy: [rad]`.

    Exit code 2: the poses do not determine the pose of the camera.
    """
    from roboyard.cli.terminal import print_result
    from roboyard.vision.calibration.hand_eye import (
        calibrate_hand_eye,
        format_hand_eye_calibration,
        load_hand_eye_samples,
    )

    setup, arm, target = load_hand_eye_samples(file)
    found = calibrate_hand_eye(arm, target, setup)
    if out is not None:
        write_text(out, format_hand_eye_calibration(found))
    T, sigma = found.T_mount_camera, found.covariance.diagonal() ** 0.5
    result = {
        "ok": True, "setup": setup, "frame": "flange" if setup == "eye-in-hand" else "base", "poses": len(arm),
        "xyz": T.translation.tolist(), "quaternion": T.rotation.tolist(), "rpy": T.rpy.tolist(),
        "sigma_xyz": sigma[:3].tolist(), "sigma_rotation": sigma[3:].tolist(), "covariance": found.covariance.tolist(),
        "position_errors": found.position_errors.tolist(), "rotation_errors": found.rotation_errors.tolist(),
        "file": None if out is None else str(out),
    }  # fmt: skip
    print_result(result, json, _print_hand_eye)


def _print_hand_eye(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_fields, print_line, print_table

    rows: list[tuple[Any, ...]] = [
        (axis, f"{1e3 * result['xyz'][k]:.3f}", f"{1e3 * result['sigma_xyz'][k]:.2g}",
         f"{math.degrees(result['rpy'][k]):.4f}", f"{math.degrees(result['sigma_rotation'][k]):.2g}")
        for k, axis in enumerate("xyz")
    ]  # fmt: skip
    print_table([f"in the {result['frame']}", "mm", "std. error", "rpy, °", "std. error, °"], rows)
    print_line()
    errors = result["position_errors"]
    worst = max(range(len(errors)), key=lambda k: float(errors[k]))
    print_fields(
        [
            ("poses", f"{result['poses']}, {result['setup']}"),
            (
                "error of the target",
                f"{1e3 * _rms(errors):.3f} mm, {math.degrees(_rms(result['rotation_errors'])):.4f}° (rms)",
            ),
            ("worst pose", f"number {worst + 1}: {1e3 * errors[worst]:.3f} mm"),
            ("file", result["file"] or "none (--out FILE writes one)"),
        ]
    )


def _rms(values: list[float]) -> float:
    return math.sqrt(math.fsum(value * value for value in values) / len(values))


def _load_image(path: Path) -> Any:
    """Return the pixels of an image file, (h, w, 3).

    Raises:
        InputError: The file does not exist or is no image.
    """
    import numpy as np
    from PIL import Image, UnidentifiedImageError

    from roboyard.errors import InputError

    try:
        with Image.open(path) as image:
            return np.asarray(image.convert("RGB"))
    except FileNotFoundError:
        raise InputError(f"there is no file {path}", valid="images of the board") from None
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
        raise InputError("the file is not a readable image", location=str(path), valid="PNG, JPEG, …") from error
