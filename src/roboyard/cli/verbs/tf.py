"""``roboyard tf``: frames and where they are in each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.grammar import FileOption, JsonOption, RunOption, group

if TYPE_CHECKING:
    from roboyard.cli.lookup import LiveSource
    from roboyard.geometry import SE3
    from roboyard.record import FrameInfo

app = group("Transforms: tree, echo.")

_PERIOD = 1.0
"""Wall time between two lines about a live run [s]."""
_PATIENCE = 5.0
"""How long a live run may take to publish the frames that are asked for [wall s]."""


@app.command("tree")
def tree(run: RunOption = None, file: FileOption = None, json: JsonOption = False) -> None:
    """The tree of frames: who publishes each, and how often."""
    from roboyard.cli.frames import transforms_of
    from roboyard.cli.lookup import look
    from roboyard.cli.terminal import emit, note
    from roboyard.record import tf_tree

    with look(run, file) as source:
        frames = tf_tree(transforms_of(source))
    if json:
        emit({"frames": [{**_plain(frame), "rate": frame.rate} for frame in frames]})
    elif not frames:
        note("no transforms")
    else:
        _draw(frames)


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
    from roboyard.cli.lookup import FileSource, LiveSource, look
    from roboyard.errors import InputError
    from roboyard.record import tf_echo

    if time is not None and not 0.0 <= time < 1e10:
        raise InputError(f"--time {time:g}", valid="seconds, as the recording's messages count them")
    with look(run, file) as source:
        try:
            if isinstance(source, FileSource):
                time_ns = None if time is None else round(time * 1e9)
                _show(reference, frame, tf_echo(source.recording, reference, frame, time_ns), time_ns, json=json)
            elif isinstance(source, LiveSource):
                if time is not None:
                    raise InputError("--time is for recordings", valid="a live run shows its newest transform")
                _follow(source, reference, frame, 1 if once else count, json=json)
        except TransformError as error:
            raise InputError(error.message, location=source.where, valid=error.valid) from error


def _follow(source: LiveSource, reference: str, frame: str, count: int | None, *, json: bool) -> None:
    from roboyard.bus import TransformBuffer
    from roboyard.cli.frames import follow
    from roboyard.compute.wall_clock import wall_seconds

    buffer, shown, start = TransformBuffer(), 0, wall_seconds()
    due = start
    for time_ns in follow(source, buffer):
        if wall_seconds() < due:
            continue
        if not buffer.can_lookup(reference, frame):
            if wall_seconds() - start > _PATIENCE:
                break
            continue
        _show(reference, frame, buffer.lookup(reference, frame), time_ns, json=json)
        shown += 1
        due = wall_seconds() + _PERIOD
        if shown == count:
            return
    if not shown:
        buffer.lookup(reference, frame)  # says what is missing


def _show(reference: str, frame: str, pose: SE3, time_ns: int | None, *, json: bool) -> None:
    import math

    from roboyard.cli.terminal import emit, flush, say, seconds

    w, x, y, z = (float(value) for value in pose.rotation)
    if json:
        when = None if time_ns is None else time_ns * 1e-9
        rotation = {"x": x, "y": y, "z": z, "w": w}
        translation = dict(zip("xyz", pose.xyz, strict=True))
        emit({"reference": reference, "frame": frame, "time": when, "translation": translation, "rotation": rotation})
        return
    angles = "  ".join(f"{value:.4f}" for value in pose.rpy)
    degrees = "  ".join(f"{math.degrees(value):.2f}" for value in pose.rpy)
    say(f"{frame} in {reference}" + ("" if time_ns is None else f" at {seconds(time_ns)}"))
    say(f"  translation  {'  '.join(f'{value:.4f}' for value in pose.xyz)} m")
    say(f"  quaternion   {x:.5f}  {y:.5f}  {z:.5f}  {w:.5f} (x y z w)")
    say(f"  rpy          {angles} rad = {degrees} deg")
    flush()


def _draw(frames: tuple[FrameInfo, ...]) -> None:
    from roboyard.cli.terminal import say

    children: dict[str | None, list[FrameInfo]] = {}
    for info in frames:
        children.setdefault(info.parent, []).append(info)

    def draw(info: FrameInfo, indent: str, last: bool, root: bool) -> None:
        rate = "" if info.rate is None else f", {info.rate:.4g} Hz"
        about = "" if root else f"  ({'static' if info.static else 'moving'}{rate}{_by(info)})"
        say(f"{indent}{'' if root else '└─ ' if last else '├─ '}{info.name}{about}")
        below = children.get(info.name, [])
        for child in below:
            draw(child, indent + ("" if root else "   " if last else "│  "), child is below[-1], False)

    for info in children.get(None, []):
        draw(info, "", True, True)


def _by(info: FrameInfo) -> str:
    return f", {info.publisher}" if info.publisher else ""


def _plain(info: FrameInfo) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(info)
