"""SLAM in a live run: scans and odometry in, the map, where odometry began in it, and the graph out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from roboyard.bus import DroppedMessage, DropReason, Future, MessageFilter, Node, TransformError
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.errors import InputError, RoboyardError
from roboyard.geometry import SE2
from roboyard.grids import OccupancyGrid
from roboyard.mapping.g2o import write_g2o
from roboyard.mapping.graph_slam import GraphSlam
from roboyard.mapping.map_files import save_map
from roboyard.mapping.matching.correlative import branch_and_bound, fill_tables
from roboyard.mapping.matching.sight import passed
from roboyard.mapping.nodes.graph_messages import graph_to_msg, trajectory_to_msg
from roboyard.mapping.nodes.log_lasers import Faults, Mount, reader
from roboyard.mapping.nodes.map_messages import map_to_msg
from roboyard.mapping.nodes.offline import ALGORITHMS, make_slam
from roboyard.mapping.pose_graph import PoseGraph
from roboyard.mapping.scan import Scan
from roboyard.mapping.slam import Slam
from roboyard.mapping.trajectory import Trajectory
from roboyard.messages import msg, srv, to_nanoseconds

_ODOMETRY_TIMEOUT: Final = 0.3
"""A scan waits for its odometry until it is older than this [s]."""
_QUEUE_SIZE: Final = 200


@dataclass(frozen=True, slots=True)
class _Made:
    """What a finished piece of work gives."""

    pose: SE2 | None = None
    odometry: SE2 | None = None
    grid: OccupancyGrid | None = None
    graph: PoseGraph | None = None
    trajectory: Trajectory | None = None


class SlamNodeConfig(Config):
    """Configuration of `SlamNode`."""

    algorithm: str = parameter("graph", choices=ALGORITHMS, doc="Algorithm: a pose graph or particles.")
    scan_topics: tuple[str, ...] = parameter(("scan",), doc="Topics of the scans of all lasers.")
    map_frame: str = parameter("map", doc="Frame of the map.")
    odom_frame: str = parameter("odom", doc="Frame of the odometry.")
    base_frame: str = parameter("base_link", doc="Frame of the base.")
    resolution: float = parameter(0.05, unit="m", low=0.005, high=10.0, doc="Edge of a cell.")
    map_period: float = parameter(5.0, unit="s", low=0.1, high=1e6, doc="Time between maps.")
    transform_rate: float = parameter(20.0, unit="Hz", low=0.1, high=1000.0, doc="Rate of the transform map → odom.")
    latency: float = parameter(0.05, unit="s", low=1e-3, high=100.0, doc="Declared duration of processing a scan.")
    map_latency: float = parameter(0.5, unit="s", low=1e-3, high=1000.0, doc="Declared duration of making a map.")


class SlamNode(Node[SlamNodeConfig]):
    """Maps while the robot drives.

    in: the scans of one or more lasers, /tf odom_frame → base_frame and base_frame → lasers
    out: map (nav_msgs/OccupancyGrid) and map_metadata, latched, every ``map_period``; /tf map_frame → odom_frame;
        graph (visualization_msgs/MarkerArray) and path (nav_msgs/Path: the way as it is believed now), latched
    services: dynamic_map, ~/map (nav_msgs/GetMap), ~/save_map (slam_toolbox/SaveMap), ~/serialize_map
        (slam_toolbox/SerializePoseGraph)

    The work is done beside the run: what a scan tells is known ``latency`` after it, a map ``map_latency`` after it was
    begun.
    """

    state_fields = ("_T_map_odom", "_ready", "_last_ns", "_map_due", "_mounts")

    def setup(self) -> None:
        """Connect."""
        expect_kernels(branch_and_bound, fill_tables, passed)
        self._slam: Slam = make_slam(self.config.algorithm)
        self._T_map_odom: tuple[float, float, float] | None = None
        self._ready: list[Scan] = []  # for the worker
        self._last_ns = -1
        self._map_due = False
        self._mounts: dict[str, tuple[float, float, float, bool]] = {}
        self._given: list[Scan] = []  # all scans, of an algorithm that cannot say what it knows
        self._asked: list[Callable[[], None]] = []  # what waits for the worker
        self._busy = False
        self._grid: OccupancyGrid | None = None
        self._graph: PoseGraph | None = None
        self._map = self.publisher("map", msg.OccupancyGrid, latched=True)
        self._metadata = self.publisher("map_metadata", msg.MapMetaData, latched=True)
        self._markers = self.publisher("graph", msg.MarkerArray, latched=True)
        self._path = self.publisher("path", msg.Path, latched=True)
        self._faults = Faults()
        self._scans = MessageFilter(
            self,
            self._on_odometry_known,
            target_frames=(self.frame(self.config.odom_frame),),
            source_frame=self.frame(self.config.base_frame),
            queue_size=_QUEUE_SIZE,
            timeout=_ODOMETRY_TIMEOUT,
            on_drop=self._on_drop,
        )
        self._readers = {topic: reader(topic, self._faults) for topic in self.config.scan_topics}
        for topic in self.config.scan_topics:
            self.subscribe(topic, msg.LaserScan, partial(self._on_scan, topic))
        for name in ("dynamic_map", "~/map"):
            self.service(name, srv.GetMap, self._on_get)
        self.service("~/save_map", srv.slam_toolbox.SaveMap, self._on_save)
        self.service("~/serialize_map", srv.slam_toolbox.SerializePoseGraph, self._on_serialize)
        self.timer(rate=self.config.transform_rate, callback=self._tell_transform)
        self.timer(self.config.map_period, self._want_map)

    # -- scans ---------------------------------------------------------------------------------------------------------
    def _on_scan(self, topic: str, message: Any) -> None:
        if self._mount(topic, message.header.frame_id) is not None:
            self._scans.add(message, topic)
            self._go_on()

    def _on_odometry_known(self, message: Any, topic: str) -> None:
        odom, base = self.frame(self.config.odom_frame), self.frame(self.config.base_frame)
        T_odom_base = self.transforms.lookup(odom, base, to_nanoseconds(message.header.stamp))
        self._take(message, topic, SE2.from_se3(T_odom_base))

    def _on_drop(self, dropped: DroppedMessage) -> None:
        """Take a scan without odometry if that did not come in time; report the others."""
        if dropped.reason is DropReason.NO_TRANSFORM_FOUND:
            self._take(dropped.message, dropped.topic, None)
            return
        topic = self.resolve(dropped.topic)
        self.log.warn(f"scans of {topic} are left out: {dropped.reason.value}", throttle=5.0)
        self.report_health("warn", f"a scan of {topic} is left out: {dropped.text}")

    def _take(self, message: Any, topic: str, odometry: SE2 | None) -> None:
        """Make a scan ready for the worker."""
        scan, mount = self._readers[topic](message), self._mount(topic, message.header.frame_id)
        # lasers that measure at one moment follow each other by a nanosecond; what comes late is left out
        time_ns = to_nanoseconds(message.header.stamp)
        time_ns += 1 if time_ns == self._last_ns else 0
        if scan is None or mount is None or time_ns <= self._last_ns:
            return
        self._last_ns = time_ns
        sign = -1.0 if mount.upside_down else 1.0
        self._ready.append(
            replace(
                scan,
                time_ns=time_ns,
                odometry=odometry,
                T_base_laser=mount.T_base_laser,
                angle_min=sign * scan.angle_min,
                angle_increment=sign * scan.angle_increment,
            )
        )

    def _mount(self, topic: str, frame: str) -> Mount | None:
        """Where the laser sits; None while nobody said."""
        if topic not in self._mounts:
            try:
                mount = Mount.of(self.transforms.lookup(self.frame(self.config.base_frame), frame))
            except TransformError:
                self.report_health("warn", f"nobody says where {frame} sits")
                return None
            pose = mount.T_base_laser
            self._mounts[topic] = (pose.x, pose.y, pose.theta, mount.upside_down)
        x, y, theta, upside_down = self._mounts[topic]
        return Mount(SE2(x, y, theta), upside_down)

    def _go_on(self) -> None:
        """Pair scans with odometry, and give the worker what there is to do."""
        self._scans.process()
        if self._busy:
            return
        if self._map_due and self._slam_has_scans:
            self._map_due = False
            self._begin(self.config.map_latency, _describe, self._slam, self.config.resolution)
        elif self._ready:
            scans, self._ready = tuple(self._ready), []
            if not _saves(self._slam):
                self._given += scans
            self._begin(self.config.latency, _place, self._slam, scans)

    @property
    def _slam_has_scans(self) -> bool:
        return self._T_map_odom is not None

    def _begin(self, latency: float, work: Any, *arguments: Any) -> None:
        self._busy = True
        self.offload(work, *arguments, latency=latency, on_done=self._done)

    def _done(self, future: Future) -> None:
        self._busy = False
        asked, self._asked = self._asked, []
        for write in asked:
            write()
        made: _Made = future.result
        if made.pose is not None:
            T_map_odom = made.pose @ (made.odometry or SE2()).inverse()
            self._T_map_odom = (T_map_odom.x, T_map_odom.y, T_map_odom.theta)
        if made.grid is not None and made.graph is not None and made.trajectory is not None:
            self._grid, self._graph = made.grid, made.graph
            self._publish(made.grid, made.graph, made.trajectory)
        self._go_on()

    # -- what it tells -----------------------------------------------------------------------------------------------
    def _tell_transform(self) -> None:
        self._go_on()
        if self._T_map_odom is not None:
            pose = SE2(*self._T_map_odom).to_se3()
            self.send_transform(pose, self.frame(self.config.map_frame), self.frame(self.config.odom_frame))

    def _want_map(self) -> None:
        self._map_due = True
        self._go_on()

    def _publish(self, grid: OccupancyGrid, graph: PoseGraph, trajectory: Trajectory) -> None:
        frame = self.frame(self.config.map_frame)
        message = map_to_msg(grid, frame, self.now_ns)
        self._map.publish(message)
        self._metadata.publish(message.info)
        self._markers.publish(graph_to_msg(graph, frame, self.now_ns))
        self._path.publish(trajectory_to_msg(trajectory, frame, self.now_ns))
        rows, columns = grid.geometry.shape
        width, height = columns * self.config.resolution, rows * self.config.resolution
        self.report_health("ok", f"map of {width:.1f} x {height:.1f} m, {int(graph.loops.sum())} loops closed")

    # -- services ----------------------------------------------------------------------------------------------------
    def _on_get(self, request: Any) -> Any:
        if self._grid is None:
            raise InputError("there is no map yet", location=f"node {self.full_name}", valid="ask again later")
        return srv.GetMap.Response(map=map_to_msg(self._grid, self.frame(self.config.map_frame), self.now_ns))

    def _on_save(self, request: Any) -> Any:
        response = srv.slam_toolbox.SaveMap.Response
        if self._grid is None:
            return response(result=response.RESULT_NO_MAP_RECEIEVD)
        try:
            save_map(_path_of(request.name.data), self._grid)
        except RoboyardError as error:
            self.log.error(f"the map was not saved: {error}")
            return response(result=response.RESULT_UNDEFINED_FAILURE)
        return response(result=response.RESULT_SUCCESS)

    def _on_serialize(self, request: Any) -> Any:
        response = srv.slam_toolbox.SerializePoseGraph.Response
        done = Future("serialized graph")

        def write() -> None:
            try:
                self._write_graph(_path_of(request.filename))
            except RoboyardError as error:
                self.log.error(f"the graph was not saved: {error}")
                done.set_result(response(result=response.RESULT_FAILED_TO_WRITE_FILE))
                return
            done.set_result(response(result=response.RESULT_SUCCESS))

        if self._busy:  # the worker has the algorithm: when it is done
            self._asked.append(write)
        else:
            write()
        return done

    def _write_graph(self, path: Path) -> None:
        """Write the graph for others, ``.g2o``, and, of graph SLAM, all that is needed to go on with it, ``.npz``."""
        if not self._slam_has_scans:
            raise InputError("there is no graph yet")
        path = path.with_suffix("") if path.suffix in (".g2o", ".npz", ".posegraph") else path
        write_g2o(path.with_name(f"{path.name}.g2o"), self._slam.graph())
        if isinstance(self._slam, GraphSlam):
            self._slam.save(path.with_name(f"{path.name}.npz"))

    # -- state -------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data, with all that the algorithm knows, or else with all scans that it was given.

        Raises:
            RunError: work is under way.
        """
        own: Any = self._slam
        known = {"slam": own.save_state()} if _saves(own) else {"given": list(self._given)}
        return super().save_state() | known | {"made": (self._grid, self._graph), "scans": self._scans.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        own: Any = self._slam
        if "slam" in state:
            own.load_state(state["slam"])
        else:  # what it makes of scans depends on nothing else
            self._given = list(state["given"])
            for scan in self._given:
                own.process(scan)
        self._grid, self._graph = state["made"]
        self._scans.load_state(state["scans"])


def _saves(slam: Slam) -> bool:
    """Whether an algorithm can say all that it knows as plain data."""
    from roboyard.mapping.rbpf import RbpfSlam

    return isinstance(slam, RbpfSlam)


def _place(slam: Slam, scans: tuple[Scan, ...]) -> _Made:
    """Give scans to the algorithm; the place of the last."""
    made = _Made()
    for scan in scans:
        made = _Made(slam.process(scan), scan.odometry)
    return made


def _describe(slam: Slam, resolution: float) -> _Made:
    """What the algorithm believes now."""
    return _Made(grid=slam.occupancy(resolution), graph=slam.graph(), trajectory=slam.trajectory())


def _path_of(name: str) -> Path:
    """A file's name as a service was asked for."""
    if not name or "\0" in name:
        raise InputError("the file has no name", valid="a path")
    return Path(name)
