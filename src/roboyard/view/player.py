"""A recording as it is seen: its time goes on, stands still, and jumps."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from roboyard.bus.transforms import TransformBuffer, TransformError
from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import InputError, RoboyardError
from roboyard.geometry import SE3
from roboyard.messages import to_nanoseconds
from roboyard.messages.convert import transform_to_se3
from roboyard.record import open_recording
from roboyard.scenarios import load_scenario
from roboyard.scenarios.assembly import build_run
from roboyard.scenarios.resolve import resolve_scenario
from roboyard.scenarios.run import scene_info
from roboyard.scenarios.run_folder import SCENARIO
from roboyard.scenarios.scene_replay import SceneReplay
from roboyard.view.live import TRANSFORMS
from roboyard.view.places import Places, links_of, row
from roboyard.view.scenery import Scenery, rows_of, scenery_of
from roboyard.view.show import Reply
from roboyard.view.timeline import Timeline
from roboyard.view.topics import PAINTERS, Board, Heard, frame_of
from roboyard.view.wire import ViewMessage, number, packed, text

_TF = ("/tf", "/tf_static")
_LOG = "/rosout"
_LEVELS = {10: "debug", 20: "info", 30: "warn", 40: "error", 50: "fatal"}
_FASTEST, _LONGEST_STEP = 100.0, 60.0
_AS_FAST = 20.0
"""Pace of "as fast as possible": more cannot be watched."""


class Player:
    """Shows a recording; with the scenario beside it in a run's folder also robots, people and world.

    Args:
        path: A recording of any kind, or a run's folder.

    Attributes:
        name: Of what is shown.
        notes: What cannot be shown, and why.

    Raises:
        RecordingError: there is none, or it cannot be read.
    """

    free: frozenset[str] = frozenset()

    def __init__(self, path: Path) -> None:
        self.notes: list[str] = []
        self._stack = ExitStack()
        try:
            self._recording = self._stack.enter_context(open_recording(path))
            self.notes += self._recording.warnings
            self.name = path.resolve().name if path.is_dir() else path.stem
            self._stage: SceneReplay | None = None
            self._scenery: Scenery | None = None
            self._links: dict[str, tuple[int, SE3]] = {}
            self._known: dict[str, SE3] = {}
            self._set_stage(path if path.is_dir() else path.parent)
            topics = self._recording.topics
            self._types = {name: info.type for name, info in topics.items() if info.type in PAINTERS}
            led = self._stage.topics if self._stage is not None else ()
            self._time = Timeline(self._recording, [*self._types, *led], [*_TF, _LOG])
        except BaseException:
            self._stack.close()
            raise
        self._board = Board()
        self._lines: list[ViewMessage] = []
        self.paused, self.rate = False, 1.0
        self._wall: float | None = None
        self._fresh = True
        self._frames_due = 0.0
        self._transforms = TransformBuffer()
        self._places = Places(self._links, self._transforms, self._known)
        self._seek(self._time.start_ns)
        graph: list[tuple[Any, ...]] = [
            (
                t.name,
                t.type,
                t.count,
                self._recording.end_ns * 1e-9,
                list(t.publishers),
                [],
                t.type in PAINTERS,
                t.frequency,
            )
            for t in topics.values()
        ]
        self._graph = ViewMessage(text("graph", topics=graph, nodes=[], services=[]))

    def close(self) -> None:
        """Let go of the files."""
        self._stack.close()

    def _set_stage(self, folder: Path) -> None:
        """Build the models of the scenario that lies beside the recording, if one does."""
        if not (folder / SCENARIO).is_file():
            self.notes.append(f"no {SCENARIO} beside the recording: what it says is shown, but no robot and no world")
            return
        try:
            run = self._stack.enter_context(build_run(resolve_scenario(load_scenario(folder / SCENARIO)), record=False))
        except RoboyardError as error:
            self.notes.append(f"its scenario cannot be built, so only what was recorded is shown: {error}")
            return
        sights, simulation = scene_info(run), run.simulation
        spaces = {name: robot.namespace for name, robot in run.robots.items()}
        self._stage = SceneReplay(simulation, spaces, sights.people)
        self._links, self._known = links_of(simulation), sights.frames
        self._scenery = scenery_of(self._stage.model, 1, sights.robots, sights.people)

    # -- time ----------------------------------------------------------------------------------------------------------
    def _seek(self, time_ns: int) -> None:
        """Jump; where root frames are was found at the start and stays."""
        self._transforms = TransformBuffer()
        self._places = Places(self._links, self._transforms, {**self._known, **self._places.roots})
        self._board.clear()
        self._lines.clear()
        self._time.seek(time_ns, self._hear)
        self._fresh = True

    def _hear(self, topic: str, message: Any, time_ns: int) -> None:
        if topic in _TF:
            self._insert(message, time_ns, static=topic == _TF[1])
        elif topic == _LOG:
            level = _LEVELS.get(int(message.level), "info")
            line = text("log", t=time_ns * 1e-9, level=level, node=str(message.name), text=str(message.msg))
            self._lines.append(ViewMessage(line))
        else:
            if self._stage is not None and topic in self._stage.topics:
                self._stage.apply_message(topic, message)
            if topic in self._types:
                self._board.heard[topic] = Heard(self._types[topic], message, time_ns, [])

    def _insert(self, message: Any, time_ns: int, *, static: bool) -> None:
        for one in message.transforms:
            moment = time_ns if static else to_nanoseconds(one.header.stamp)
            try:
                T = transform_to_se3(one.transform)
                self._transforms.insert(T, str(one.header.frame_id), str(one.child_frame_id), moment, static)
            except (TransformError, RoboyardError):  # trees of foreign recordings may contradict themselves
                continue

    def _go_on(self) -> None:
        now = wall_seconds()
        passed = 0.0 if self._wall is None else min(now - self._wall, 0.5)
        self._wall = now
        if self.paused:
            return
        self._time.advance(self._time.now_ns + round(passed * (self.rate or _AS_FAST) * 1e9), self._hear)
        self._fresh = True
        if self._time.now_ns >= self._time.end_ns:
            self.paused = True

    # -- see `Show` ----------------------------------------------------------------------------------------------------
    def greeting(self) -> list[ViewMessage]:
        """Name, length, scene, topics."""
        start, end = self._time.start_ns * 1e-9, self._time.end_ns * 1e-9
        self._board.forget_sent()
        found = [
            ViewMessage(text("run", name=self.name, duration=end - start, start=start, kind="recording")),
            self._graph,
        ]
        if self._scenery is not None:
            found.append(ViewMessage(self._scenery.data))
        return [
            *found,
            *(ViewMessage(text("log", t=start, level="warn", node="view", text=note)) for note in self.notes),
        ]

    def shown(self, topic: str) -> ViewMessage | None:
        """See `Show`."""
        return self._board.frame(topic)

    async def news(self, wants: Collection[str]) -> list[ViewMessage]:
        """See `Show`."""
        self._go_on()
        found = [self._poses()]
        if self._fresh:
            self._fresh = False
            self._places.look()
            for heard in self._board.heard.values():
                if not heard.place:
                    heard.place[:] = row(self._places.place(frame_of(heard.message), self._body))
        if TRANSFORMS in wants and wall_seconds() >= self._frames_due:
            self._frames_due = wall_seconds() + 0.1
            frames = {name: row(self._places.place(name, self._body)) for name in self._places.frames()}
            found.append(ViewMessage(packed({"op": "transforms", "frames": frames}), TRANSFORMS, TRANSFORMS))
        lines, self._lines = self._lines, []
        return [*found, *lines, *self._board.news(wants, wall_seconds())]

    def _body(self, body: int) -> SE3:
        if self._stage is None:
            return SE3.identity()
        return SE3(self._stage.data.xquat[body], self._stage.data.xpos[body])

    def _poses(self) -> ViewMessage:
        head: dict[str, Any] = {
            "op": "poses", "t": self._time.now_ns * 1e-9, "paused": self.paused, "rate": self.rate, "number": 0,
        }  # fmt: skip
        if self._stage is None or self._scenery is None:
            return ViewMessage(packed(head), "poses")
        self._stage.update_kinematics()
        rows = rows_of(self._stage.data, self._scenery)
        return ViewMessage(packed({**head, "number": self._scenery.number}, [rows]), "poses")

    def command(self, said: dict[str, Any], viewer: int, reply: Reply) -> None:
        """See `Show`."""
        op, start = said["op"], self._time.start_ns
        if op == "pause":
            self.paused = True
        elif op == "resume":
            if self._time.now_ns >= self._time.end_ns:
                self._seek(start)
            self.paused, self._wall = False, None
        elif op == "rate":
            self.rate = number(said, "rate", 0.0, _FASTEST)
        elif op == "step":
            self.paused = True
            seconds = number(said, "seconds", -_LONGEST_STEP, _LONGEST_STEP)
            if seconds < 0.0:
                self._seek(self._time.now_ns + round(seconds * 1e9))
            else:
                self._time.advance(self._time.now_ns + round(seconds * 1e9), self._hear)
                self._fresh = True
        elif op == "seek":
            self._seek(round(number(said, "time", -1e12, 1e12) * 1e9))
        else:
            known = "pause, rate, resume, seek, step"
            raise InputError(f"{op!r:.40} cannot be done with a recording", valid=known)
        reply(ViewMessage(text("done", id=said.get("id"), to=op)))

    def lost(self, viewer: int) -> None:
        """See `Show`."""

    def gone(self, viewer: int) -> None:
        """See `Show`."""
