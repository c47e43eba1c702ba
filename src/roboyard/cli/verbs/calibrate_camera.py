"""``roboyard calibrate camera`` and ``hand-eye``: what a camera's pictures are, and where it sits."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from roboyard.cli.grammar import JsonOption


def camera(
    pictures: Annotated[list[Path], typer.Argument(metavar="PICTURE…", help="Of the board, by one camera.")],
    board: Annotated[str, typer.Option(metavar="BOARD", help="chessboard:9x6:25mm, charuco:7x5:40mm:30mm:4x4_50")],
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
    from roboyard.cli.terminal import emit, fields, note, say, table
    from roboyard.vision.boards import Board
    from roboyard.vision.camera_file import camera_text
    from roboyard.vision.intrinsics import calibrate_camera

    kind = Board.parse(board)
    images = [_picture(path) for path in pictures]
    result = calibrate_camera(images, kind)
    lens = result.lens
    if out is not None:
        _write(out, camera_text(lens, name))
    values = (lens.fx, lens.fy, lens.cx, lens.cy, *lens.distortion)
    names = ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2", "k3")
    used, unseen = ([str(pictures[k]) for k in group] for group in (result.used, result.unseen))
    if json:
        emit(
            {
                "ok": True, "width": lens.width, "height": lens.height,
                "values": dict(zip(names, values, strict=True)),
                "standard_errors": dict(zip(names, result.sigma.tolist(), strict=True)),
                "error_px": result.error, "covered": result.covered,
                "pictures": dict(zip(used, result.view_errors.tolist(), strict=True)),
                "unseen": unseen, "file": None if out is None else str(out),
            }
        )  # fmt: skip
        return
    rows = [(key, f"{v:.6g}", f"{s:.2g}") for key, v, s in zip(names, values, result.sigma, strict=True)]
    table(["", "value", "std. error"], rows)
    say()
    worst = int(result.view_errors.argmax())
    fields(
        [
            ("corners are off by", f"{result.error:.3f} px (rms)"),
            ("worst picture", f"{pictures[result.used[worst]]}: {result.view_errors[worst]:.3f} px"),
            ("corners cover", f"{100.0 * result.covered:.0f} % of the picture"),
            ("stored", str(out) if out is not None else "no: --out FILE keeps it"),
        ]
    )
    for path in unseen:
        note(f"no board seen in {path}")


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
    from roboyard.cli.terminal import emit, fields, say, table
    from roboyard.vision.hand_eye import calibrate_hand_eye
    from roboyard.vision.hand_eye_file import read_hand_eye, result_text

    setup, arm, target = read_hand_eye(file)
    result = calibrate_hand_eye(arm, target, setup)
    if out is not None:
        _write(out, result_text(result))
    T, sigma = result.T_mount_camera, result.covariance.diagonal() ** 0.5
    where = "flange" if setup == "eye-in-hand" else "base"
    if json:
        emit(
            {
                "ok": True, "setup": setup, "frame": where, "poses": len(arm), "xyz": T.translation.tolist(),
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
    table([f"in the {where}", "mm", "std. error", "rpy, °", "std. error, °"], rows)
    say()
    fields(
        [
            ("poses", f"{len(arm)}, {setup}"),
            ("target off by", f"{1e3 * float((result.position_errors**2).mean() ** 0.5):.3f} mm, "
             f"{math.degrees(float((result.rotation_errors**2).mean() ** 0.5)):.4f}° (rms)"),
            ("worst pose", f"number {int(result.position_errors.argmax()) + 1}: "
             f"{1e3 * float(result.position_errors.max()):.3f} mm"),
            ("stored", str(out) if out is not None else "no: --out FILE keeps it"),
        ]
    )  # fmt: skip


def _picture(path: Path) -> Any:
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


def _write(path: Path, text: str) -> None:
    from roboyard.config import write_atomic
    from roboyard.errors import InputError

    try:
        write_atomic(path, text)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", location=str(path)) from error
