"""The tree of a robot's mission as it stands in a live run, or stood in a recording."""

from __future__ import annotations

import json as plain_json
from pathlib import Path

from roboyard.behavior.playback import Playback
from roboyard.cli.lookup import LiveSource, Source, absolute, look
from roboyard.cli.terminal import emit, flush, say, seconds
from roboyard.errors import InputError
from roboyard.messages import srv


def show_run(
    run: str | None, recording: Path | None, mission: str, at: float | None, *, changes: bool, json: bool
) -> None:
    """Print a mission's tree.

    Args:
        run: Name of a live run; None: the only one.
        recording: In its place, a recording.
        mission: The node; empty: the only one with a tree.
        at: When [s]; None: now, or at the recording's end.
        changes: At each change up to then, not only then.
        json: As one JSON object each.

    Raises:
        InputError: there is no tree, or several to choose from; or a time is asked of a live run.
    """
    with look(run, recording) as source:
        if source.live and at is not None:
            raise InputError("--at of a live run", valid="a recording, with --file")
        node = _node(source, mission)
        known, until_ns, last_ns = Playback(), None if at is None else round(at * 1e9), 0
        for heard in source.messages([f"{node}/tree", f"{node}/events"]):
            if until_ns is not None and heard.time_ns > until_ns:
                break
            last_ns = heard.time_ns
            if heard.topic.endswith("/events"):
                known.events(heard.message.data)
            elif heard.message.data.splitlines() != known.lines:
                known.tree(heard.message.data)
                if isinstance(source, LiveSource):
                    _present(source, node, known)
            if changes:
                _say(known, last_ns, json=json, timed=True)
            elif source.live and known.lines:
                break
        if not changes:
            _say(known, last_ns if until_ns is None else until_ns, json=json, timed=False)


def _say(known: Playback, time_ns: int, *, json: bool, timed: bool) -> None:
    if json:
        nodes = [
            {"uid": uid, "status": known.now.get(uid, "IDLE"), "last": known.last.get(uid)}
            for uid in range(1, len(known.lines) + 1)
        ]
        emit({"time": time_ns * 1e-9, "text": str(known), "nodes": nodes})
    else:
        say((f"# {seconds(time_ns)}\n" if timed else "") + str(known))
    flush()


def _node(source: Source, mission: str) -> str:
    names = {topic.name for topic in source.topics()}
    nodes = sorted(name[:-5] for name in names if name.endswith("/tree") and f"{name[:-5]}/events" in names)
    if mission and absolute(mission) in nodes:
        return absolute(mission)
    if mission or len(nodes) != 1:
        what = f"no tree of {mission}" if mission else "several trees" if nodes else "there is no tree"
        raise InputError(what, location=source.where, valid="--mission " + " or ".join(nodes) if nodes else "a mission")
    return nodes[0]


def _present(source: LiveSource, node: str, known: Playback) -> None:
    """Where the nodes stand that changed before somebody looked."""
    told = source.connection.call(f"{node}/state", srv.Trigger, srv.Trigger.Request())
    known.take((int(uid), str(status)) for uid, status in plain_json.loads(told.message))
