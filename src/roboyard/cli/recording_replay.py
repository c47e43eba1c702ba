"""Replay of a recording on a live bus."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from roboyard.bus import Bus
from roboyard.bus.socket import SocketServer
from roboyard.cli.arguments import parse_yaml_value
from roboyard.cli.source import absolute_name, unknown_name_error, validate_topic_name
from roboyard.errors import InputError
from roboyard.record import Recorder, RecordingPlayer, TopicSelection, open_recording
from roboyard.scenarios.run_control import RunControl, handle_interrupts, run_in_slices

if TYPE_CHECKING:
    from roboyard.cli.run_display import RunDisplay
    from roboyard.record import Recording

_NO_END_NS = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """What of a recording is replayed, and how fast.

    Attributes:
        topics: Names or patterns to play; None for all.
        exclude: Names or patterns to leave out.
        remap: New names of topics, "OLD:=NEW".
        start: Start this long after the start of the recording [s]; None: at its start.
        duration: Length of the replayed part [s]; None: up to the end of the recording.
        nodes: Nodes to run, ``[NAME=]TYPE``; messages of recorded nodes with these names are left out.
        loop: Repeat the recording.
        rate: Recorded seconds per second; 0 as fast as possible.
        paused: Start paused.
    """

    topics: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    remap: Sequence[str] = ()
    start: float | None = None
    duration: float | None = None
    nodes: Sequence[str] = ()
    loop: bool = False
    rate: float = 1.0
    paused: bool = False


class RecordingReplay:
    """Replay of a recording on a live bus; a context manager.

    Args:
        file: The recording.
        options: What of it is replayed, and how fast.

    Attributes:
        name: Name of the live run.
        control: Control of its clock.
        duration: Length of the replay [s]; None if it has no end.
        warnings: Channels that cannot be replayed.

    Raises:
        InputError: A time, name or topic does not exist.
        RecordingError: The recording cannot be read, or has no messages.
    """

    def __init__(self, file: Path, options: ReplayOptions) -> None:
        self._node_specs = dict(map(_parse_node, options.nodes))
        self._stack = ExitStack()
        try:
            recording = self._stack.enter_context(open_recording(file))
            self._start_ns, end_ns = _time_range(recording, options.start, options.duration)
            recorded_topics = recording.topics
            topics = None if options.topics is None else [_absolute_pattern(topic) for topic in options.topics]
            for pattern in topics or ():
                if not any(fnmatchcase(name, pattern) for name in recorded_topics):
                    raise unknown_name_error("topic", pattern, list(recorded_topics), str(file))
            self.bus = self._stack.enter_context(Bus(start_ns=self._start_ns))
            self._player = RecordingPlayer(
                self.bus,
                recording,
                TopicSelection(
                    topics,
                    [_absolute_pattern(topic) for topic in options.exclude],
                    [f"/{name}" for name in self._node_specs],
                ),
                rename=dict(map(_parse_remapping, options.remap)),
                end_ns=end_ns,
                start_ns=None if options.start is None else self._start_ns,
                loop=options.loop,
            )
            self._stack.callback(self._player.close)
        except BaseException:
            self._stack.close()
            raise
        self.name = f"replay-{recording.metadata.get('run') or file.stem}"
        self.duration = None if options.loop else (self._player.end_ns - self._start_ns) * 1e-9
        self._last_ns = _NO_END_NS if options.loop else self._player.end_ns
        self.warnings = [*recording.warnings, *self._player.warnings]
        self.control = RunControl(paused=options.paused, real_time_factor=options.rate)
        self.control.bind(self.bus)

    @property
    def n_published(self) -> int:
        """Number of messages published so far."""
        return self._player.count

    @property
    def played_seconds(self) -> float:
        """Recorded time replayed so far [s]."""
        return (self.bus.now_ns - self._start_ns) * 1e-9

    @property
    def n_passes(self) -> int:
        """Number of complete passes so far."""
        return self._player.n_passes

    def add_nodes(self, parameters: Sequence[str], robot: str | None = None) -> None:
        """Add the nodes to the bus.

        Args:
            parameters: ``node.key=value``.
            robot: Name or file of a robot; nodes of its package get their parameters from there.

        Raises:
            InputError: There is no such robot or node, or a node does not accept a parameter.
        """
        from roboyard.bringup.robot_loader import load_robot
        from roboyard.bringup.robot_nodes import create_node

        parameter_values = _parse_parameters(parameters)
        package = None if robot is None else load_robot(robot)
        for name, node_class in self._node_specs.items():
            values = parameter_values.pop(name.lower(), {})
            spec = None if package is None else package.config.nodes.get(node_class)
            if package is not None and spec is not None:
                values = {**spec.parameters, **values}
                node = create_node(
                    spec.type, values, package.stated_resources(),
                    base_folder=package.source.parent, location=f"node {name}",
                )  # fmt: skip
            else:
                node = create_node(node_class, values, {}, location=f"node {name}")
            self.bus.add(node, name)
        if parameter_values:
            raise InputError(f"--param names no --node node: {', '.join(parameter_values)}", valid="NODE.KEY=VALUE")

    def run(self, out: Path | None, display: RunDisplay) -> None:
        """Play until the end, or until the user stops it.

        Raises:
            NodeError: A node failed.
            RecordingError: ``out`` exists or cannot be written.
        """
        self.bus.log_sinks.append(display.log)
        with ExitStack() as stack:
            stack.enter_context(handle_interrupts(self.control))
            if out is not None:
                stack.enter_context(Recorder(self.bus, out))
            stack.callback(SocketServer(self.bus, self.name).close)
            display.start(self.bus)
            for _ in run_in_slices(
                self.bus.executor, self.control, self._last_ns, is_finished=lambda: self._player.is_finished
            ):
                display.tick()

    def __enter__(self) -> RecordingReplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def _time_range(recording: Recording, start: float | None, duration: float | None) -> tuple[int, int]:
    """Return the first and the last time to replay [ns]."""
    location, length = str(recording.path), (recording.end_ns - recording.start_ns) * 1e-9
    for name, value in (("--start-offset", start), ("--duration", duration)):
        if value is not None and not 0.0 <= value <= 1e9:
            raise InputError(f"{name} {value:g}", location=location, valid=f"0 to {length:.3f} s")
    start_ns, end_ns = recording.start_ns + round((start or 0.0) * 1e9), recording.end_ns
    if start_ns > end_ns:
        raise InputError(f"--start-offset {start:g} is after the end", location=location, valid=f"up to {length:.3f} s")
    return start_ns, end_ns if duration is None else min(end_ns, start_ns + round(duration * 1e9))


def _absolute_pattern(text: str) -> str:
    """Add the leading slash, which patterns may leave out."""
    return text if text.startswith("*") else absolute_name(text)


def _parse_remapping(text: str) -> tuple[str, str]:
    old, sign, new = text.partition(":=")
    if not (sign and old and new):
        raise InputError(f"invalid renaming {text!r}", location="--remap", valid="OLD:=NEW, e.g. /odom:=/recorded/odom")
    return absolute_name(old), validate_topic_name(new)


def _parse_node(text: str) -> tuple[str, str]:
    """Return name and type of a node; the name is that of the type or class unless another one is given."""
    name, sign, node_class = text.partition("=")
    return (name, node_class) if sign and name.isidentifier() else (text.rpartition(":")[2].lower(), text)


def _parse_parameters(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        node, dot, name = key.partition(".")
        if not (equals and dot and node and name):
            raise InputError(f"invalid parameter {text!r}", location="--param", valid="NODE.KEY=VALUE")
        found.setdefault(node.lower(), {})[name] = parse_yaml_value(value) if value.strip() else ""
    return found
