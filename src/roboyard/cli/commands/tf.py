"""``roboyard tf``: transforms between the frames of a live run or a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import command_group
from roboyard.cli.options import JSON, CountOption, FileOption, JsonOption, OnceOption, RunOption, TimeOption

if TYPE_CHECKING:
    from roboyard.cli.source import LiveSource
    from roboyard.geometry import SE3
    from roboyard.record import FrameInfo

app = command_group("Transforms: tree, echo.")

_PRINT_PERIOD = 1.0
"""Wall time between two poses of a live run [s]."""
_LOOKUP_TIMEOUT = 5.0
"""Maximum wait for the requested frames of a live run [wall s]."""
_MAX_TIME = 1e10


@app.command("tree")
def tree(run: RunOption = None, file: FileOption = None, json: JsonOption = False) -> None:
    """Show the tree of frames with their publishers and rates."""
    from roboyard.cli.buffered_recording import collect_transforms
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_result
    from roboyard.record import tf_tree

    with open_source(run, file) as source:
        frames = tf_tree(collect_transforms(source))
    print_result({"frames": [_frame_data(frame) for frame in frames]}, json, lambda _: _print_tree(frames))


@app.command("echo")
def echo(
    reference: Annotated[str, typer.Argument(metavar="REFERENCE", help="Reference frame, e.g. odom.")],
    frame: Annotated[str, typer.Argument(metavar="FRAME", help="Frame whose pose is printed, e.g. base_link.")],
    run: RunOption = None,
    file: FileOption = None,
    count: CountOption = None,
    once: OnceOption = False,
    time: TimeOption = None,
    json: Annotated[bool, JSON(", one object per pose")] = False,
) -> None:
    """Print the pose of FRAME in REFERENCE.

    Of a live run once a second, of a recording at one time.
    """
    from roboyard.bus import TransformError
    from roboyard.cli.source import LiveSource, RecordingSource, open_source
    from roboyard.errors import InputError
    from roboyard.record import tf_echo

    if time is not None and not 0.0 <= time < _MAX_TIME:
        raise InputError(f"--time {time:g}", valid="seconds, as in the messages of the recording")
    with open_source(run, file) as source:
        try:
            if isinstance(source, RecordingSource):
                time_ns = None if time is None else round(time * 1e9)
                _print_pose(reference, frame, tf_echo(source.recording, reference, frame, time_ns), time_ns, json=json)
            elif isinstance(source, LiveSource):
                if time is not None:
                    raise InputError("--time requires a recording", valid="--file, or no --time")
                _print_live_poses(source, reference, frame, 1 if once else count, json=json)
        except TransformError as error:
            raise InputError(error.message, location=source.name, valid=error.valid) from error


def _print_live_poses(source: LiveSource, reference: str, frame: str, count: int | None, *, json: bool) -> None:
    from roboyard.bus import TransformBuffer
    from roboyard.cli.buffered_recording import follow_transforms
    from roboyard.compute.wall_clock import wall_seconds

    buffer, n_printed, start = TransformBuffer(), 0, wall_seconds()
    due = start
    for time_ns in follow_transforms(source, buffer):
        if wall_seconds() < due:
            continue
        if not buffer.can_lookup(reference, frame):
            if wall_seconds() - start > _LOOKUP_TIMEOUT:
                break
            continue
        _print_pose(reference, frame, buffer.lookup(reference, frame), time_ns, json=json)
        n_printed += 1
        due = wall_seconds() + _PRINT_PERIOD
        if n_printed == count:
            return
    if not n_printed:
        buffer.lookup(reference, frame)  # raises an error that names the missing frame


def _print_pose(reference: str, frame: str, pose: SE3, time_ns: int | None, *, json: bool) -> None:
    import math

    from roboyard.cli.terminal import flush_output, format_time, print_line, print_result

    w, x, y, z = (float(value) for value in pose.rotation)

    def show(_: object) -> None:
        angles = "  ".join(f"{value:.4f}" for value in pose.rpy)
        degrees = "  ".join(f"{math.degrees(value):.2f}" for value in pose.rpy)
        print_line(f"{frame} in {reference}" + ("" if time_ns is None else f" at {format_time(time_ns)}"))
        print_line(f"  translation  {'  '.join(f'{value:.4f}' for value in pose.xyz)} m")
        print_line(f"  quaternion   {x:.5f}  {y:.5f}  {z:.5f}  {w:.5f} (x y z w)")
        print_line(f"  rpy          {angles} rad = {degrees} deg")
        flush_output()

    result = {
        "reference": reference,
        "frame": frame,
        "time": None if time_ns is None else time_ns * 1e-9,
        "translation": dict(zip("xyz", pose.xyz, strict=True)),
        "rotation": {"x": x, "y": y, "z": z, "w": w},
    }
    print_result(result, json, show)


def _print_tree(frames: tuple[FrameInfo, ...]) -> None:
    from roboyard.cli.terminal import print_line, print_note

    if not frames:
        print_note("no transforms")
    children: dict[str | None, list[FrameInfo]] = {}
    for info in frames:
        children.setdefault(info.parent, []).append(info)

    def print_frame(info: FrameInfo, indent: str, last: bool, root: bool) -> None:
        rate = "" if info.rate is None else f", {info.rate:.4g} Hz"
        details = "" if root else f"  ({'static' if info.static else 'moving'}{rate}{_publisher_text(info)})"
        print_line(f"{indent}{'' if root else '└─ ' if last else '├─ '}{info.name}{details}")
        child_frames = children.get(info.name, [])
        for child in child_frames:
            print_frame(child, indent + ("" if root else "   " if last else "│  "), child is child_frames[-1], False)

    for info in children.get(None, []):
        print_frame(info, "", True, True)


def _publisher_text(info: FrameInfo) -> str:
    return f", {info.publisher}" if info.publisher else ""


def _frame_data(info: FrameInfo) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(info), "rate": info.rate}
