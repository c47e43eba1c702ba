"""A recording played on a live bus."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from roboyard.bus import Bus
from roboyard.bus.socket import SocketServer
from roboyard.cli.lookup import absolute, new_name, unknown
from roboyard.cli.values import parse
from roboyard.errors import InputError
from roboyard.record import Recorder, RecordingPlayer, TopicSelection, open_recording
from roboyard.scenarios.control import Control, interruptible

if TYPE_CHECKING:
    from roboyard.cli.display import Display
    from roboyard.record import Recording

_NEVER_NS = 1 << 62
_SLICE_NS = 100_000_000
"""How often the display is told [ns of recorded time]."""


class Playback:
    """Plays a recording; a context manager.

    Args:
        file: The recording.
        topics: Names or patterns to play; None for all.
        exclude: Names or patterns to leave out.
        remap: New names of topics, "OLD:=NEW".
        start: Begin so long after the recording's start [s].
        duration: Play this much of it [s].
        nodes: Those that will run on it, ``[NAME=]USE``; what recorded nodes of these names published is left out.
        loop: Play it again and again.
        rate: Recorded seconds per second; 0 as fast as possible.
        paused: Begin paused.

    Attributes:
        name: Under which it is listed.
        control: The hand on its clock.
        duration: How much is to be played [s]; None if there is no end.
        warnings: What cannot be played.

    Raises:
        InputError and its kinds: a time, name or topic that is not there.
        RecordingError: it cannot be read, or there is nothing to play.
    """

    def __init__(
        self, file: Path, topics: Sequence[str] | None, exclude: Sequence[str], start: float | None,
        duration: float | None, *, rate: float, paused: bool, remap: Sequence[str] = (), nodes: Sequence[str] = (),
        loop: bool = False,
    ) -> None:  # fmt: skip
        self._uses = dict(map(_name_and_use, nodes))
        self._stack = ExitStack()
        try:
            recording = self._stack.enter_context(open_recording(file))
            self._start_ns, end_ns = _range(recording, start, duration)
            known = recording.topics
            topics = None if topics is None else [_pattern(topic) for topic in topics]
            for pattern in topics or ():
                if not any(fnmatchcase(name, pattern) for name in known):
                    raise unknown("topic", pattern, list(known), str(file))
            self.bus = self._stack.enter_context(Bus(start_ns=self._start_ns))
            self._replay = RecordingPlayer(
                self.bus, recording,
                TopicSelection(topics, [_pattern(topic) for topic in exclude], [f"/{name}" for name in self._uses]),
                rename=dict(map(_old_and_new, remap)), end_ns=end_ns,
                start_ns=None if start is None else self._start_ns, loop=loop,
            )  # fmt: skip
            self._stack.callback(self._replay.close)
        except BaseException:
            self._stack.close()
            raise
        self.name = f"replay-{recording.metadata.get('run') or file.stem}"
        self.duration = None if loop else (self._replay.end_ns - self._start_ns) * 1e-9
        self._last_ns = _NEVER_NS if loop else self._replay.end_ns
        self.warnings = [*recording.warnings, *self._replay.warnings]
        self.control = Control(paused=paused, pace=rate)
        self.control.bind(self.bus)

    @property
    def published(self) -> int:
        """Messages out so far."""
        return self._replay.count

    @property
    def played(self) -> float:
        """Recorded time played so far [s]."""
        return (self.bus.now_ns - self._start_ns) * 1e-9

    @property
    def passes(self) -> int:
        """How often it was played to its end so far."""
        return self._replay.n_passes

    def add_nodes(self, parameters: Sequence[str], robot: str | None = None) -> None:
        """Let the nodes run on it.

        Args:
            parameters: ``node.key=value``.
            robot: Name or file of a robot; nodes that its package has get the parameters which stand there.

        Raises:
            InputError and its kinds: no such robot or node, or a parameter that a node does not take.
        """
        from roboyard.scenarios.catalog import find_robot
        from roboyard.scenarios.node_factory import make_node

        given = _parameters(parameters)
        package = None if robot is None else find_robot(robot)
        for name, use in self._uses.items():
            values = given.pop(name.lower(), {})
            spec = None if package is None else package.file.nodes.get(use)
            if package is not None and spec is not None:
                values = {**spec.parameters, **values}
                node = make_node(spec.use, values, {}, base=package.source.parent, where=f"node {name}")
            else:
                node = make_node(use, values, {}, where=f"node {name}")
            self.bus.add(node, name)
        if given:
            raise InputError(f"--param names no node of --node: {', '.join(given)}", valid="NODE.KEY=VALUE")

    def run(self, out: Path | None, display: Display) -> None:
        """Play until the end, or until somebody stops it.

        Raises:
            NodeError: a node failed.
            RecordingError: ``out`` exists or cannot be written.
        """
        executor, control, end_ns = self.bus.executor, self.control, self._last_ns
        self.bus.log_sinks.append(display.log)
        with ExitStack() as stack:
            stack.enter_context(interruptible(control))
            if out is not None:
                stack.enter_context(Recorder(self.bus, out))
            stack.callback(SocketServer(self.bus, self.name).close)
            display.started(self.bus)
            while not self._replay.is_finished and not control.stopping:
                step = control.next_step()
                if step is not None:
                    self._step(step)
                    continue
                target_ns = min(self.bus.now_ns + _SLICE_NS, end_ns)
                executor.run_until(target_ns, control.wanted)
                if self.bus.now_ns < target_ns and not control.wanted():
                    return  # another process said so through the socket
                display.tick()

    def _step(self, seconds: float) -> None:
        """So much recorded time, or one instant if that is 0; paused before and after."""
        executor = self.bus.executor
        if seconds <= 0.0:
            executor.step()
            return
        executor.paused = False
        executor.run_until(min(self.bus.now_ns + round(seconds * 1e9), self._last_ns))
        executor.paused = True

    def __enter__(self) -> Playback:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def _range(recording: Recording, start: float | None, duration: float | None) -> tuple[int, int]:
    """First and last instant to play [ns]."""
    where, length = str(recording.path), (recording.end_ns - recording.start_ns) * 1e-9
    for name, value in (("--start", start), ("--duration", duration)):
        if value is not None and not 0.0 <= value <= 1e9:
            raise InputError(f"{name} {value:g}", location=where, valid=f"0 to {length:.3f} s")
    start_ns, end_ns = recording.start_ns + round((start or 0.0) * 1e9), recording.end_ns
    if start_ns > end_ns:
        raise InputError(f"--start {start:g} is behind the end", location=where, valid=f"up to {length:.3f} s")
    return start_ns, end_ns if duration is None else min(end_ns, start_ns + round(duration * 1e9))


def _pattern(text: str) -> str:
    """The leading slash may be left out."""
    return text if text.startswith("*") else absolute(text)


def _old_and_new(text: str) -> tuple[str, str]:
    old, sign, new = text.partition(":=")
    if not (sign and old and new):
        raise InputError(f"{text!r} is no new name", location="--remap", valid="OLD:=NEW, e.g. /odom:=/recorded/odom")
    return absolute(old), new_name(new)


def _name_and_use(text: str) -> tuple[str, str]:
    """A node is called as it is used, or as its class, unless another name is given."""
    name, sign, use = text.partition("=")
    return (name, use) if sign and name.isidentifier() else (text.rpartition(":")[2].lower(), text)


def _parameters(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        node, dot, name = key.partition(".")
        if not (equals and dot and node and name):
            raise InputError(f"{text!r} is no parameter", location="--param", valid="NODE.KEY=VALUE")
        found.setdefault(node.lower(), {})[name] = parse(value) if value.strip() else ""
    return found
