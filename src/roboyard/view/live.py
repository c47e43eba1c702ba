"""A run as it is seen from outside.

The run is asked for what is new through the bus's port for questions, which are not recorded and change nothing; on its
thread only a few numbers are copied.  Everything else happens on the server's thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

from roboyard.bus import Bus
from roboyard.bus.log import LogRecord
from roboyard.bus.topics import Topic
from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.physics.compiled_world import ModelEntry
from roboyard.physics.visual_scene import VisualScene
from roboyard.scenarios import Run, RunControl
from roboyard.scenarios.run import SceneInfo, scene_info
from roboyard.view.abilities import abilities, trees
from roboyard.view.arms import ArmHand, arms
from roboyard.view.clock import ClockHand
from roboyard.view.deeds import DeedHand, tasks
from roboyard.view.driving import DriveHand
from roboyard.view.ghosts import PLANNED, Ghosts
from roboyard.view.goals import GoalHand
from roboyard.view.legs import GAIT, Feet
from roboyard.view.parameters import ParameterHand
from roboyard.view.places import Places, links_of, row
from roboyard.view.plots import Plots, fields
from roboyard.view.scenery import Scenery, rows_of, scenery_of
from roboyard.view.sender import Sender
from roboyard.view.show import Hand, Reply
from roboyard.view.things import ThingHand
from roboyard.view.topics import PAINTERS, Board, Heard, frame_of
from roboyard.view.wire import ViewMessage, packed, text, word

_GRAPH_PERIOD, _FRAMES_PERIOD, _TREES_PERIOD = 1.0, 0.1, 0.25
"""How often topics and nodes are told, where frames are, and how trees stand [wall s]."""
_MOST_LINES = 300
_MEASURED = frozenset({"sensor_msgs/msg/LaserScan", "sensor_msgs/msg/PointCloud2", "sensor_msgs/msg/Range"})
"""What is drawn where its sensor was when it measured."""
TRANSFORMS, TREES = "transforms", "trees"
"""Wanted like topics: where all frames are, and how behaviour trees stand."""


@dataclass(slots=True)
class Look:
    """What the run's thread has copied.

    Attributes:
        time_ns: Simulated time [ns].
        paused: Whether it stands still.
        rate: Its pace.
        state: Positions of joints, and of what is led: places and turns.
        entries: Models, if they are others than before.
        sights: Likewise.
        heard: Newest messages of topics that can be drawn, since the last look.
        frames: Where frames are, if asked for.
        graph: Topics and nodes, if asked for.
        abilities: What robots can be told, likewise.
        trees: Behaviour trees as text, if asked for.
    """

    time_ns: int
    paused: bool
    rate: float
    state: tuple[Array, Array, Array]
    entries: list[ModelEntry] | None = None
    sights: SceneInfo | None = None
    heard: dict[str, Heard] = field(default_factory=dict)
    frames: dict[str, list[float]] | None = None
    graph: dict[str, Any] | None = None
    abilities: dict[str, Any] | None = None
    trees: dict[str, str] | None = None


class LiveShow:
    """Shows a run, and hands what viewers do to ``steering``.

    Args:
        run: Assembled; not yet on its way, or paused.
        loop: Of the server.
        name: Of the run.
        duration: That it will take [s]; 0: nobody knows.
        control: The hand on its clock.
    """

    free: frozenset[str] = frozenset({"plot", "fields"}) | ParameterHand.free

    def __init__(
        self, run: Run, loop: asyncio.AbstractEventLoop, name: str, duration: float, control: RunControl | None = None
    ) -> None:
        self.run, self._loop, self._name, self._duration = run, loop, name, duration
        sender = Sender(run.bus)
        self._ghosts: Ghosts | None = None
        self._state = np.zeros(0)
        self._drive = DriveHand(run.bus, loop, sender)
        self._hands: tuple[Hand, ...] = (
            ClockHand(run.bus, control), self._drive, GoalHand(run.bus, sender, self._where),
            ThingHand(run.bus, sender), ParameterHand(run.bus, sender),
            ArmHand(run, loop, sender, self._where, self._preview), DeedHand(run, sender),
        )  # fmt: skip
        self._plots = Plots()
        self._feet = Feet(run)
        self.bus: Bus = run.bus
        self._new: dict[str, tuple[Topic, Any, int, SE3 | None]] = {}
        self._kinds: dict[str, int] = {}
        self._places: Places | None = None
        self._model: mujoco.MjModel | None = None
        self._board = Board()
        self._scene: VisualScene | None = None
        self._scenery: Scenery | None = None
        self._building: asyncio.Future[tuple[VisualScene, Scenery]] | None = None
        self._asked: asyncio.Future[Look] | None = None
        self._number = 0
        self._told: dict[str, ViewMessage] = {}
        self._lines: deque[ViewMessage] = deque(maxlen=_MOST_LINES)
        self._fresh_lines: deque[ViewMessage] = deque(maxlen=_MOST_LINES)
        self._graph_due = self._frames_due = self._trees_due = 0.0
        for topic in self.bus.topics.values():  # what is latched already
            for publisher in topic.publishers:
                if publisher.last is not None:
                    self._tap(topic, publisher.last, publisher.node, topic.last_ns)
        self._undo: list[Callable[[], None]] = [self.bus.add_message_observer(self._tap)]
        self.bus.log_sinks.append(self._log)

    def close(self) -> None:
        """Look no more; on the run's thread."""
        self._plots.topics = frozenset()
        for undo in self._undo:
            undo()
        self._undo.clear()
        if self._log in self.bus.log_sinks:
            self.bus.log_sinks.remove(self._log)

    # -- on the run's thread -------------------------------------------------------------------------------------------
    def _tap(self, topic: Topic, message: Any, node: str, time_ns: int) -> None:
        kind = self._kinds.get(topic.name)
        if kind is None:
            drawn = topic.type_name in PAINTERS or topic.type_name == PLANNED
            kind = self._kinds[topic.name] = drawn + (topic.type_name in _MEASURED)
        if topic.name in self._plots.topics:
            self._plots.take(topic.name, time_ns, message)
        if kind:
            at = self._measured_at(frame_of(message)) if kind > 1 else None
            self._new[topic.name] = (topic, message, time_ns, at)

    def _measured_at(self, frame: str) -> SE3 | None:
        """Where a sensor's frame is at this moment: when it is drawn the robot may have turned already."""
        link = self._places.links.get(frame) if self._places is not None else None
        return None if link is None else self._body(link[0]) @ link[1]

    def _body(self, body: int) -> SE3:
        data = self.run.simulation.world.data
        return SE3(data.xquat[body], data.xpos[body])

    def _log(self, record: LogRecord) -> None:
        line = ViewMessage(text("log", t=record.time_ns * 1e-9, level=record.level, node=record.node, text=record.text))
        self._fresh_lines.append(line)

    def _where(self) -> tuple[Places, Callable[[int], SE3]] | None:
        """Where frames are, and where bodies are; None before the first look."""
        return None if self._places is None else (self._places, self._body)

    def _look(self, graph: bool, frames: bool, forest: bool) -> Look:
        """Copy what is new."""
        simulation, executor = self.run.simulation, self.bus.executor
        data = simulation.world.data
        look = Look(
            self.bus.now_ns, executor.paused, executor.pacer.real_time_factor,
            (data.qpos.copy(), data.mocap_pos.copy(), data.mocap_quat.copy()),
        )  # fmt: skip
        if simulation.world.model is not self._model:
            self._model = simulation.world.model
            look.entries = [place.entry for place in simulation.world.compiled.addresses.values()]
            look.sights = scene_info(self.run)
            before = {} if self._places is None else self._places.roots
            self._places = Places(links_of(simulation), self.bus.transforms, {**before, **look.sights.frames})
        places = self._places
        if places is None:
            return look
        new, self._new = self._new, {}
        if new or frames:
            places.look()
        for name, (topic, message, time_ns, at) in new.items():
            T = at if at is not None else places.place(frame_of(message), self._body)
            if topic.type_name == GAIT:  # it does not say where its feet are
                message, T = self._feet.support(name, message, places, self._body), SE3.identity()
            look.heard[name] = Heard(topic.type_name, message, time_ns, row(T))
        if frames:
            look.frames = {name: row(places.place(name, self._body)) for name in places.frames()}
        if graph:
            look.graph = self._graph()
            look.abilities = {
                **abilities(self.run),
                "arms": arms(self.run, places, self._body),
                "tasks": tasks(self.run),
            }
        if forest:
            look.trees = trees(self.run)
        return look

    def _graph(self) -> dict[str, Any]:
        topics = [
            (
                t.name, t.type_name, t.count, t.last_ns * 1e-9, sorted({p.node for p in t.publishers}),
                sorted({s.node for s in t.subscriptions}), t.type_name in PAINTERS or t.type_name == PLANNED,
            )
            for t in self.bus.topics.values()
        ]  # fmt: skip
        nodes = [
            (
                name,
                type(node).__name__,
                node.health.level if node.health else "",
                node.health.text if node.health else "",
            )
            for name, node in self.bus.nodes.items()
        ]
        return {"topics": topics, "nodes": nodes, "services": sorted(self.bus.services)}

    # -- on the server's thread ----------------------------------------------------------------------------------------
    def greeting(self) -> list[ViewMessage]:
        """Name, scene, topics, the log so far."""
        about = ViewMessage(text("run", name=self._name, duration=self._duration, kind="live"))
        return [about, *self._told.values(), *self._lines]

    def shown(self, topic: str) -> ViewMessage | None:
        """See `Show`."""
        return self._told.get(topic) or self._board.frame(topic)

    async def news(self, wants: Collection[str]) -> list[ViewMessage]:
        """See `Show`."""
        look = await self._ask(wants)
        found = self._take_lines()
        if look is None:
            return found
        self._state = look.state[0]
        for topic, heard in look.heard.items():
            if heard.type != PLANNED:
                self._board.heard[topic] = heard
            elif self._ghosts is not None:
                spaces = {name: robot.namespace for name, robot in self.run.robots.items()}
                ghost = self._ghosts.of_message(spaces, heard.message, self._state, topic)
                found += [] if ghost is None else [ghost]
        if look.entries is not None:
            self._rebuild(look.entries, look.sights)
        if self._building is not None and self._building.done():
            self._scene, self._scenery = self._building.result()
            self._ghosts = Ghosts(self._scene.model, self._scenery)
            self._building = None
            found.append(self._tell("scene", ViewMessage(self._scenery.data)))
        found.append(self._tell("poses", self._poses(look)))
        if look.graph is not None:
            found.append(self._tell("graph", ViewMessage(text("graph", **look.graph), "graph")))
        if look.frames is not None:
            frame = packed({"op": "transforms", "frames": look.frames})
            found.append(self._tell(TRANSFORMS, ViewMessage(frame, TRANSFORMS, TRANSFORMS)))
        if look.abilities is not None:
            found.append(self._tell("abilities", ViewMessage(text("abilities", **look.abilities), "abilities")))
        if look.trees is not None:
            found.append(self._tell(TREES, ViewMessage(text("trees", trees=look.trees), TREES, TREES)))
        return [*found, *self._plots.news(), *self._board.news(wants, wall_seconds())]

    def command(self, said: dict[str, Any], viewer: int, reply: Reply) -> None:
        """See `Show`."""
        if said["op"] == "plot":
            self._plots.change(word(said, "topic"), word(said, "field"), viewer, on=bool(said.get("on")))
            return
        if said["op"] == "fields":
            topic = word(said, "topic")
            known = self._board.heard.get(topic)

            def tell(found: list[str]) -> None:
                reply(ViewMessage(text("fields", id=said.get("id"), topic=topic, fields=found)))

            if known is not None and known.type != GAIT:
                tell(fields(known.message))
            else:
                self._plots.ask(topic, tell)
            return
        for hand in self._hands:
            if said["op"] in hand.ops:
                hand.command(said, viewer, reply)
                return
        words = sorted({op for hand in self._hands for op in hand.ops})
        raise InputError(f"{said['op']!r:.40} is not known", valid=", ".join(words))

    def lost(self, viewer: int) -> None:
        """See `Show`."""
        self._drive.lost(viewer)

    def gone(self, viewer: int) -> None:
        """See `Show`."""
        self._plots.forget(viewer)

    async def _ask(self, wants: Collection[str]) -> Look | None:
        """What is new; None while the run has no time to tell."""
        if self._asked is None:
            now = wall_seconds()
            graph, frames = now >= self._graph_due, TRANSFORMS in wants and now >= self._frames_due
            forest = TREES in wants and now >= self._trees_due
            if graph:
                self._graph_due = now + _GRAPH_PERIOD
            if frames:
                self._frames_due = now + _FRAMES_PERIOD
            if forest:
                self._trees_due = now + _TREES_PERIOD
            asked = self._asked = self._loop.create_future()
            self.bus.inputs.run_on_executor(lambda: self._answer(asked, graph, frames, forest))
        done, _ = await asyncio.wait([self._asked], timeout=0.5)
        if not done:
            return None
        asked, self._asked = self._asked, None
        return asked.result()

    def _answer(self, asked: asyncio.Future[Look], graph: bool, frames: bool, forest: bool) -> None:
        """On the run's thread, whatever happens here must not end the run."""
        try:
            look = self._look(graph, frames, forest)
        except Exception as error:  # noqa: BLE001 - a fault of the view is told to the view
            found = error
            done = lambda: asked.set_exception(found)  # noqa: E731
        else:
            done = lambda: asked.set_result(look)  # noqa: E731
        with suppress(RuntimeError):  # the server has gone
            self._loop.call_soon_threadsafe(done)

    def _rebuild(self, entries: list[ModelEntry], sights: SceneInfo | None) -> None:
        """Have the scene made on another thread; the newest wish counts."""
        self._number += 1
        number, simulation = self._number, self.run.simulation
        robots, people = (sights.robots, sights.people) if sights is not None else ((), ())

        def build() -> tuple[VisualScene, Scenery]:
            scene = VisualScene(simulation.environment, entries, simulation.settings)
            return scene, scenery_of(scene.model, number, robots, people)

        self._building = self._loop.run_in_executor(None, build)

    def _poses(self, look: Look) -> ViewMessage:
        head: dict[str, Any] = {"op": "poses", "t": look.time_ns * 1e-9, "paused": look.paused, "rate": look.rate}
        scene, scenery = self._scene, self._scenery
        if scene is None or scenery is None or len(look.state[0]) != scene.model.nq:
            return ViewMessage(packed({**head, "number": 0}), "poses")
        data = scene.data
        data.qpos[:], data.mocap_pos[:], data.mocap_quat[:] = look.state
        mujoco.mj_kinematics(scene.model, data)
        return ViewMessage(packed({**head, "number": scenery.number}, [rows_of(data, scenery)]), "poses")

    def _preview(self, robot: str, joints: list[str], times: Array, rows: Array) -> ViewMessage | None:
        """See `ArmHand`."""
        return None if self._ghosts is None else self._ghosts.frame(robot, joints, times, rows, self._state)

    def _tell(self, what: str, frame: ViewMessage) -> ViewMessage:
        """Keep it for who comes later."""
        self._told[what] = frame
        return frame

    def _take_lines(self) -> list[ViewMessage]:
        fresh = [self._fresh_lines.popleft() for _ in range(len(self._fresh_lines))]
        self._lines.extend(fresh)
        return fresh
