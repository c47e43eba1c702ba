"""``roboyard tf``: frames and where they are in each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import FileOption, JsonOption, RunOption, command_group

if TYPE_CHECKING:
    from roboyard.cli.source import LiveSource
    from roboyard.geometry import SE3
    from roboyard.record import FrameInfo

app = command_group("Transforms: tree, echo.")

_PRINT_PERIOD = 1.0
"""Wall time between two lines about a live run [s]."""
_LOOKUP_TIMEOUT = 5.0
"""How long a live run may take to publish the frames that are asked for [wall s]."""


@app.command("tree")
def tree(run: RunOption = None, file: FileOption = None, json: JsonOption = False) -> None:
    """The tree of frames: who publishes each, and how often."""
    from roboyard.cli.buffered_recording import collect_transforms
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_json, print_note
    from roboyard.record import tf_tree

    with open_source(run, file) as source:
        frames = tf_tree(collect_transforms(source))
    if json:
        print_json({"frames": [{**_frame_data(frame), "rate": frame.rate} for frame in frames]})
    elif not frames:
        print_note("no transforms")
    else:
        _print_tree(frames)


@app.command("echo")
def echo(
    reference: Annotated[str, typer.Argument(metavar="REFERENCE", help="Frame to express in, e.g. odom.")],
    frame: Annotated[str, typer.Argument(metavar="FRAME", help="Frame whose pose is wanted, e.g. base_link.")],
    run: RunOption = None,
    file: FileOption = None,
    count: Annotated[int | None, typer.Option("-n", "--count", min=1, help="End after so many lines.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Only once.")] = False,
    time: Annotated[float | None, typer.Option("--time", help="Moment in a recording [s]; default: the last.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line for each pose.")] = False,
) -> None:
    """Pose of FRAME in REFERENCE.

    Of a live run about once a second, of a recording at one moment.
    """
    from roboyard.bus import TransformError
    from roboyard.cli.source import LiveSource, RecordingSource, open_source
    from roboyard.errors import InputError
    from roboyard.record import tf_echo

    if time is not None and not 0.0 <= time < 1e10:
        raise InputError(f"--time {time:g}", valid="seconds, as the recording's messages count them")
    with open_source(run, file) as source:
        try:
            if isinstance(source, RecordingSource):
                time_ns = None if time is None else round(time * 1e9)
                _print_pose(reference, frame, tf_echo(source.recording, reference, frame, time_ns), time_ns, json=json)
            elif isinstance(source, LiveSource):
                if time is not None:
                    raise InputError("--time is for recordings", valid="a live run shows its newest transform")
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
        buffer.lookup(reference, frame)  # says what is missing


def _print_pose(reference: str, frame: str, pose: SE3, time_ns: int | None, *, json: bool) -> None:
    import math

    from roboyard.cli.terminal import flush_output, format_time, print_json, print_line

    w, x, y, z = (float(value) for value in pose.rotation)
    if json:
        when = None if time_ns is None else time_ns * 1e-9
        rotation = {"x": x, "y": y, "z": z, "w": w}
        translation = dict(zip("xyz", pose.xyz, strict=True))
        print_json(
            {"reference": reference, "frame": frame, "time": when, "translation": translation, "rotation": rotation}
        )
        return
    angles = "  ".join(f"{value:.4f}" for value in pose.rpy)
    degrees = "  ".join(f"{math.degrees(value):.2f}" for value in pose.rpy)
    print_line(f"{frame} in {reference}" + ("" if time_ns is None else f" at {format_time(time_ns)}"))
    print_line(f"  translation  {'  '.join(f'{value:.4f}' for value in pose.xyz)} m")
    print_line(f"  quaternion   {x:.5f}  {y:.5f}  {z:.5f}  {w:.5f} (x y z w)")
    print_line(f"  rpy          {angles} rad = {degrees} deg")
    flush_output()


def _print_tree(frames: tuple[FrameInfo, ...]) -> None:
    from roboyard.cli.terminal import print_line

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

    return asdict(info)
