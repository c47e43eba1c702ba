"""``roboyard bag``: recordings as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from roboyard.cli.grammar import JsonOption, RunOption, group
from roboyard.cli.verbs.replay import replay

app = group("Recordings: info, record, play, recover, convert.")

_METADATA = 25
"""How many entries about a recording's run are shown."""

RecordingArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A recording of any kind, or a run's folder.", show_default=False)
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace the new file if it exists.")]


@app.command("info")
def info(file: RecordingArgument, json: JsonOption = False) -> None:
    """What a recording holds.

    Also one that is still being written or was cut off.
    """
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
                "start_ns": found.start_ns, "end_ns": found.end_ns, "messages": found.message_count,
                "complete": found.is_complete, "topics": topics, "nodes": found.nodes,
                "metadata": dict(found.metadata), "warnings": found.warnings,
            }
        )  # fmt: skip
        return
    state = "yes" if found.is_complete else f"no: its end is missing (roboyard bag recover {file} mends it)"
    fields(
        [
            ("file", found.path),
            ("format", f"{found.format}, {size(found.size)}"),
            ("duration", f"{found.duration:.3f} s, from {seconds(found.start_ns)} to {seconds(found.end_ns)}"),
            ("messages", f"{found.message_count:,}"),
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


@app.command("record")
def record(
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC]…", help="Only these; patterns as '/rover/*'. Default: all.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The new MCAP file.")] = Path("live.mcap"),
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", "-x", metavar="TOPIC", help="Not these; patterns too.")
    ] = None,
    duration: Annotated[
        float | None, typer.Option("--duration", "-d", metavar="S", min=0.0, help="End after this simulated time [s].")
    ] = None,
    run: RunOption = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Record a live run until it ends, or Ctrl-C.

    Runs of scenarios record themselves already; this is for replays, and for parts of a run.
    """
    from roboyard.cli.lookup import live
    from roboyard.cli.recording import record as take
    from roboyard.cli.terminal import note

    with live(run) as source:
        if not json:
            note(f"recording {source.where}; Ctrl-C ends it")
        patterns = [topic if topic.startswith(("*", "/")) else f"/{topic}" for topic in topics or ()]
        done = take(source, out, patterns, exclude or [], duration, overwrite=overwrite)
    _tell(out, done.messages, done.end_ns - done.start_ns, done.warnings, json=json)


app.command("play", help="The same as `roboyard replay`.", short_help="The same as `roboyard replay`.")(replay)


@app.command("recover")
def recover(
    file: RecordingArgument,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Default: beside it, as NAME.recovered.mcap.")
    ] = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Mend an MCAP recording whose writer was killed.

    Our own verbs open it as it is; other tools want a whole file.
    """
    from roboyard.record import recover as mend

    source = file / "recording.mcap" if (file / "recording.mcap").is_file() else file
    target = out or source.with_name(f"{source.stem}.recovered.mcap")
    done = mend(source, target, overwrite=overwrite)
    _tell(target, done.message_count, done.end_ns - done.start_ns, done.warnings, json=json)


@app.command("convert")
def convert(
    file: RecordingArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The new file; of rosbag2: the new folder.")],
    to: Annotated[
        Literal["mcap", "rosbag1", "rosbag2", "rosbag2-mcap"] | None,
        typer.Option("--to", help="Default: rosbag1 where OUT ends in .bag, else mcap.", show_default=False),
    ] = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Write any recording as MCAP, or as a bag of ROS.

    It may be MCAP, rosbag1, rosbag2 or a CARMEN log, also compressed.
    rosbag2 is a folder with SQLite, rosbag2-mcap one with MCAP.
    """
    kind = to or ("rosbag1" if out.suffix == ".bag" else "mcap")
    if kind == "mcap":
        from roboyard.record import convert as rewrite

        done = rewrite(file, out, overwrite=overwrite)
    else:
        from roboyard.bridges.bags import export

        done = export(file, out, kind, overwrite=overwrite)
    _tell(out, done.message_count, done.end_ns - done.start_ns, done.warnings, json=json)


def _tell(target: Path, messages: int, length_ns: int, warnings: Sequence[str], *, json: bool) -> None:
    from roboyard.cli.terminal import count, emit, note, say

    duration = length_ns * 1e-9
    if json:
        emit({"file": target, "messages": messages, "duration": duration, "warnings": warnings})
        return
    for warning in warnings:
        note(f"warning: {warning}")
    say(f"{target}: {count(messages, 'message')}, {duration:.3f} s")
