"""``roboyard bag``: recordings as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roboyard.cli.grammar import JsonOption, group

if TYPE_CHECKING:
    from roboyard.record import Recovered

app = group("Recordings: info, recover, convert.")

_METADATA = 25
"""How many entries about a recording's run are shown."""

RecordingArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A recording of any kind, or a run's folder.", show_default=False)
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace the new file if it exists.")]


@app.command("info")
def info(file: RecordingArgument, json: JsonOption = False) -> None:
    """What a recording holds; also one that is still being written or was cut off."""
    from roboyard.cli.terminal import emit, fields, note, say, seconds, size, table
    from roboyard.record import info as info_of
    from roboyard.record import open_recording

    with open_recording(file) as recording:
        found = info_of(recording)
    if json:
        topics = [
            {"name": t.name, "type": t.type, "count": t.count, "rate": t.frequency, "publishers": t.publishers}
            for t in found.topics
        ]
        emit(
            {
                "path": found.path, "format": found.format, "bytes": found.size, "duration": found.duration,
                "start_ns": found.start_ns, "end_ns": found.end_ns, "messages": found.messages,
                "complete": found.complete, "topics": topics, "nodes": found.nodes,
                "metadata": dict(found.metadata), "warnings": found.warnings,
            }
        )  # fmt: skip
        return
    state = "yes" if found.complete else f"no: its end is missing (roboyard bag recover {file} mends it)"
    fields(
        [
            ("file", found.path),
            ("format", f"{found.format}, {size(found.size)}"),
            ("duration", f"{found.duration:.3f} s, from {seconds(found.start_ns)} to {seconds(found.end_ns)}"),
            ("messages", f"{found.messages:,}"),
            ("complete", state),
            ("nodes", ", ".join(found.nodes) or None),
        ]
    )
    if found.topics:
        say()
        rows = [(t.name, t.type, t.count, None if t.frequency is None else f"{t.frequency:.4g}") for t in found.topics]
        table(("topic", "type", "count", "hz"), rows, right=("count", "hz"))
    if found.metadata:
        say()
        fields(sorted(found.metadata.items())[:_METADATA])
        if len(found.metadata) > _METADATA:
            note(f"and {len(found.metadata) - _METADATA} more: --json has them all")
    for warning in found.warnings:
        note(f"warning: {warning}")


@app.command("recover")
def recover(
    file: RecordingArgument,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Default: beside it, as NAME.recovered.mcap.")
    ] = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Mend an MCAP recording whose writer was killed, so that every tool opens it."""
    from roboyard.record import recover as mend

    source = file / "recording.mcap" if (file / "recording.mcap").is_file() else file
    target = out or source.with_name(f"{source.stem}.recovered.mcap")
    _tell(target, mend(source, target, overwrite=overwrite), json=json)


@app.command("convert")
def convert(
    file: RecordingArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The new MCAP file.")],
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Write any recording (rosbag1, rosbag2, CARMEN, MCAP) as MCAP with ROS 2 messages."""
    from roboyard.record import convert as rewrite

    _tell(out, rewrite(file, out, overwrite=overwrite), json=json)


def _tell(target: Path, done: Recovered, *, json: bool) -> None:
    from roboyard.cli.terminal import count, emit, note, say

    duration = (done.end_ns - done.start_ns) * 1e-9
    if json:
        emit({"file": target, "messages": done.messages, "duration": duration, "warnings": done.warnings})
        return
    for warning in done.warnings:
        note(f"warning: {warning}")
    say(f"{target}: {count(done.messages, 'message')}, {duration:.3f} s")
