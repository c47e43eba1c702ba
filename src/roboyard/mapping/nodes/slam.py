"""The SLAM node: it maps while the robot drives, and publishes map, path, pose graph and the transform from map to
odometry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from roboyard.bus import DroppedMessage, DropReason, Future, MessageFilter, Node, TransformError
from roboyard.bus.transforms import MapToOdomBroadcaster
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.errors import InputError, RoboyardError
from roboyard.geometry import SE2
from roboyard.grids import OccupancyGrid
from roboyard.mapping.map_files import save_map
from roboyard.mapping.nodes.recorded_frames import LaserMount, ScanDefects, make_scan_converter
from roboyard.mapping.pose_graph import PoseGraph, write_g2o
from roboyard.mapping.scan import LaserScan
from roboyard.mapping.scan_matching.correlative import branch_and_bound, fill_pyramid
from roboyard.mapping.scan_matching.surfel_map import count_through_surfaces
from roboyard.mapping.slam import SavesSlamMap, SavesSlamState, Slam, make_slam
from roboyard.mapping.trajectory import PoseTrajectory
from roboyard.messages import msg, srv, to_nanoseconds
from roboyard.messages.convert import MarkerStyle, make_header, points_marker, pose_stamped_to_msg
from roboyard.messages.convert.grids import occupancy_grid_to_msg

_ODOMETRY_TIMEOUT: Final = 0.3
"""A scan waits for its odometry until it is older than this [s]."""
_QUEUE_SIZE: Final = 200


@dataclass(frozen=True, slots=True)
class _SlamResult:
    """Result of a job of the worker: the pose of the last scan, or map, graph and trajectory."""

    pose: SE2 | None = None
    odometry: SE2 | None = None
    grid: OccupancyGrid | None = None
    graph: PoseGraph | None = None
    trajectory: PoseTrajectory | None = None


class SlamNodeConfig(Config):
    """Configuration of `SlamNode`."""

    algorithm: str = parameter("graph", doc="Registered SLAM algorithm: graph, rbpf, or one of an installed package.")
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
    """SLAM while the robot drives, with the interface of slam_toolbox.

    in: the scans of one or more lasers, /tf odom_frame → base_frame and base_frame → lasers
    out: map (nav_msgs/OccupancyGrid) and map_metadata, latched, every ``map_period``; /tf map_frame → odom_frame;
        graph (visualization_msgs/MarkerArray) and path (nav_msgs/Path: the current estimate of the trajectory), latched
    services: dynamic_map, ~/map (nav_msgs/GetMap), ~/save_map (slam_toolbox/SaveMap), ~/serialize_map
        (slam_toolbox/SerializePoseGraph)

    A worker runs the algorithm: the pose of a scan is available ``latency`` after it, a map ``map_latency`` after its
    request.
    """

    state_fields = ("_T_map_odom", "_queued_scans", "_last_ns", "_is_map_due", "_mounts")

    def setup(self) -> None:
        """Create the algorithm, publishers, subscriptions, services and timers."""
        expect_kernels(branch_and_bound, fill_pyramid, count_through_surfaces)
        self._slam: Slam = make_slam(self.config.algorithm)
        self._T_map_odom: tuple[float, float, float] | None = None
        self._map_to_odom = MapToOdomBroadcaster(
            self, self.frame(self.config.map_frame), self.frame(self.config.odom_frame)
        )
        self._queued_scans: list[LaserScan] = []  # for the worker
        self._last_ns = -1
        self._is_map_due = False
        self._mounts: dict[str, tuple[float, float, float, bool]] = {}
        self._scan_history: list[LaserScan] = []  # all processed scans, if the algorithm saves no state
        self._pending_writes: list[Callable[[], None]] = []  # writes of files that wait until the worker is idle
        self._is_worker_busy = False
        self._grid: OccupancyGrid | None = None
        self._graph: PoseGraph | None = None
        self._map = self.publisher("map", msg.OccupancyGrid, latched=True)
        self._metadata = self.publisher("map_metadata", msg.MapMetaData, latched=True)
        self._markers = self.publisher("graph", msg.MarkerArray, latched=True)
        self._path = self.publisher("path", msg.Path, latched=True)
        self._scan_defects = ScanDefects()
        self._scans = MessageFilter(
            self,
            self._on_odometry_known,
            target_frames=(self.frame(self.config.odom_frame),),
            source_frame=self.frame(self.config.base_frame),
            queue_size=_QUEUE_SIZE,
            timeout=_ODOMETRY_TIMEOUT,
            on_drop=self._on_drop,
        )
        self._scan_converters = {
            topic: make_scan_converter(topic, self._scan_defects) for topic in self.config.scan_topics
        }
        for topic in self.config.scan_topics:
            self.subscribe(topic, msg.LaserScan, partial(self._on_scan, topic))
        for name in ("dynamic_map", "~/map"):
            self.service(name, srv.GetMap, self._on_get)
        self.service("~/save_map", srv.slam_toolbox.SaveMap, self._on_save)
        self.service("~/serialize_map", srv.slam_toolbox.SerializePoseGraph, self._on_serialize)
        self.timer(rate=self.config.transform_rate, callback=self._publish_transform)
        self.timer(self.config.map_period, self._request_map)

    # -- scans ---------------------------------------------------------------------------------------------------------
    def _on_scan(self, topic: str, message: Any) -> None:
        if self._laser_mount(topic, message.header.frame_id) is not None:
            self._scans.add(message, topic)
            self._process_waiting()

    def _on_odometry_known(self, message: Any, topic: str) -> None:
        odom, base = self.frame(self.config.odom_frame), self.frame(self.config.base_frame)
        T_odom_base = self.transforms.lookup(odom, base, to_nanoseconds(message.header.stamp))
        self._queue_scan(message, topic, SE2.from_se3(T_odom_base))

    def _on_drop(self, dropped: DroppedMessage) -> None:
        """Process a scan without odometry if its odometry did not arrive in time; report other dropped scans."""
        if dropped.reason is DropReason.NO_TRANSFORM_FOUND:
            self._queue_scan(dropped.message, dropped.topic, None)
            return
        topic = self.resolve(dropped.topic)
        self.log.warn(f"scans of {topic} are dropped: {dropped.reason.value}", throttle=5.0)
        self.report_health("warn", f"a scan of {topic} was dropped: {dropped.text}")

    def _queue_scan(self, message: Any, topic: str, odometry: SE2 | None) -> None:
        """Convert a scan, with its mounting and odometry, and queue it for the worker."""
        scan, mount = self._scan_converters[topic](message), self._laser_mount(topic, message.header.frame_id)
        # scans of two lasers with equal stamps follow each other by a nanosecond; later arrivals are dropped
        time_ns = to_nanoseconds(message.header.stamp)
        time_ns += 1 if time_ns == self._last_ns else 0
        if scan is None or mount is None or time_ns <= self._last_ns:
            return
        self._last_ns = time_ns
        sign = -1.0 if mount.upside_down else 1.0
        self._queued_scans.append(
            replace(
                scan,
                time_ns=time_ns,
                odometry=odometry,
                T_base_laser=mount.T_base_laser,
                angle_min=sign * scan.angle_min,
                angle_increment=sign * scan.angle_increment,
            )
        )

    def _laser_mount(self, topic: str, frame: str) -> LaserMount | None:
        """Return the mounting pose of the laser; None while its transform is unknown."""
        if topic not in self._mounts:
            try:
                mount = LaserMount.from_transform(self.transforms.lookup(self.frame(self.config.base_frame), frame))
            except TransformError:
                self.report_health("warn", f"no transform from {self.frame(self.config.base_frame)} to {frame}")
                return None
            pose = mount.T_base_laser
            self._mounts[topic] = (pose.x, pose.y, pose.theta, mount.upside_down)
        x, y, theta, upside_down = self._mounts[topic]
        return LaserMount(SE2(x, y, theta), upside_down)

    def _process_waiting(self) -> None:
        """Find the odometry of waiting scans, and start the worker if there is a map to make or a scan to process."""
        self._scans.process()
        if self._is_worker_busy:
            return
        if self._is_map_due and self._slam_has_scans:
            self._is_map_due = False
            self._start_work(self.config.map_latency, _make_snapshot, self._slam, self.config.resolution)
        elif self._queued_scans:
            queued_scans, self._queued_scans = tuple(self._queued_scans), []
            if not isinstance(self._slam, SavesSlamState):
                self._scan_history += queued_scans
            self._start_work(self.config.latency, _process_scans, self._slam, queued_scans)

    @property
    def _slam_has_scans(self) -> bool:
        return self._T_map_odom is not None

    def _start_work(self, latency: float, work: Any, *arguments: Any) -> None:
        self._is_worker_busy = True
        self.offload(work, *arguments, latency=latency, on_done=self._on_work_done)

    def _on_work_done(self, future: Future) -> None:
        self._is_worker_busy = False
        pending_writes, self._pending_writes = self._pending_writes, []
        for write in pending_writes:
            write()
        result: _SlamResult = future.result
        if result.pose is not None:
            T_map_odom = result.pose @ (result.odometry or SE2()).inverse()
            self._T_map_odom = (T_map_odom.x, T_map_odom.y, T_map_odom.theta)
        if result.grid is not None and result.graph is not None and result.trajectory is not None:
            self._grid, self._graph = result.grid, result.graph
            self._publish(result.grid, result.graph, result.trajectory)
        self._process_waiting()

    # -- publications -----------------------------------------------------------------------------------------------
    def _publish_transform(self) -> None:
        self._process_waiting()
        if self._T_map_odom is not None:
            self._map_to_odom.send_correction(SE2(*self._T_map_odom))

    def _request_map(self) -> None:
        self._is_map_due = True
        self._process_waiting()

    def _publish(self, grid: OccupancyGrid, graph: PoseGraph, trajectory: PoseTrajectory) -> None:
        frame = self.frame(self.config.map_frame)
        message = occupancy_grid_to_msg(grid, frame, self.now_ns)
        self._map.publish(message)
        self._metadata.publish(message.info)
        self._markers.publish(graph_to_msg(graph, frame, self.now_ns))
        self._path.publish(trajectory_to_msg(trajectory, frame, self.now_ns))
        rows, columns = grid.geometry.shape
        width, height = columns * self.config.resolution, rows * self.config.resolution
        self.report_health("ok", f"map of {width:.1f} x {height:.1f} m, {int(graph.is_loop.sum())} loops closed")

    # -- services ----------------------------------------------------------------------------------------------------
    def _on_get(self, request: Any) -> Any:
        if self._grid is None:
            raise InputError("there is no map yet", location=f"node {self.full_name}", valid="ask again later")
        return srv.GetMap.Response(
            map=occupancy_grid_to_msg(self._grid, self.frame(self.config.map_frame), self.now_ns)
        )

    def _on_save(self, request: Any) -> Any:
        response = srv.slam_toolbox.SaveMap.Response
        if self._grid is None:
            return response(result=response.RESULT_NO_MAP_RECEIEVD)
        try:
            save_map(_path_from_name(request.name.data), self._grid)
        except RoboyardError as error:
            self.log.error(f"the map was not saved: {error}")
            return response(result=response.RESULT_UNDEFINED_FAILURE)
        return response(result=response.RESULT_SUCCESS)

    def _on_serialize(self, request: Any) -> Any:
        response = srv.slam_toolbox.SerializePoseGraph.Response
        response_future = Future("serialized graph")

        def write() -> None:
            try:
                self._write_graph(_path_from_name(request.filename))
            except RoboyardError as error:
                self.log.error(f"the graph was not saved: {error}")
                response_future.set_result(response(result=response.RESULT_FAILED_TO_WRITE_FILE))
                return
            response_future.set_result(response(result=response.RESULT_SUCCESS))

        if self._is_worker_busy:  # the worker uses the algorithm
            self._pending_writes.append(write)
        else:
            write()
        return response_future

    def _write_graph(self, path: Path) -> None:
        """Write the pose graph as ``.g2o``, and the pose graph map of graph SLAM as ``.npz``."""
        if not self._slam_has_scans:
            raise InputError("there is no graph yet")
        path = path.with_suffix("") if path.suffix in (".g2o", ".npz", ".posegraph") else path
        write_g2o(path.with_name(f"{path.name}.g2o"), self._slam.graph())
        if isinstance(self._slam, SavesSlamMap):
            self._slam.save_map(path.with_name(f"{path.name}.npz"))

    # -- state -------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data: that of the algorithm, or, if it saves none, all scans that it processed.

        Raises:
            RunError: The worker is busy.
        """
        slam = self._slam
        algorithm_state: dict[str, Any] = {"given": list(self._scan_history)}
        if isinstance(slam, SavesSlamState):
            algorithm_state = {"slam": slam.save_state()}
        return (
            super().save_state()
            | algorithm_state
            | {"made": (self._grid, self._graph), "scans": self._scans.save_state()}
        )

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state(state)
        if isinstance(self._slam, SavesSlamState):
            self._slam.load_state(state["slam"])
        else:  # the algorithm is deterministic: equal scans give an equal state
            self._scan_history = list(state["given"])
            for scan in self._scan_history:
                self._slam.process(scan)
        self._grid, self._graph = state["made"]
        self._scans.load_state(state["scans"])


def _process_scans(slam: Slam, scans: tuple[LaserScan, ...]) -> _SlamResult:
    """Process scans by the algorithm; return the pose and the odometry of the last."""
    result = _SlamResult()
    for scan in scans:
        result = _SlamResult(slam.process(scan), scan.odometry)
    return result


def _make_snapshot(slam: Slam, resolution: float) -> _SlamResult:
    """Return the current map, pose graph and trajectory of the algorithm."""
    return _SlamResult(grid=slam.occupancy(resolution), graph=slam.graph(), trajectory=slam.trajectory())


def _path_from_name(name: str) -> Path:
    """Return the path of the file that a service request names.

    Raises:
        InputError: The name is empty or holds a zero byte.
    """
    if not name or "\0" in name:
        raise InputError("the file has no name", valid="a path")
    return Path(name)


_NODE_COLOR, _EDGE_COLOR, _LOOP_COLOR = (0.04, 0.43, 0.45, 1.0), (0.35, 0.42, 0.48, 1.0), (0.73, 0.22, 0.31, 1.0)
_LINE_WIDTH: Final = 0.03


def trajectory_to_msg(trajectory: PoseTrajectory, frame: str, time_ns: int) -> Any:
    """Convert a trajectory to nav_msgs/Path; each pose has its own time stamp."""
    rows = zip(trajectory.times_ns.tolist(), trajectory.poses.tolist(), strict=True)
    return msg.Path(
        make_header(frame, time_ns),
        [pose_stamped_to_msg(SE2(*pose), frame, pose_time_ns) for pose_time_ns, pose in rows],
    )


def graph_to_msg(graph: PoseGraph, frame: str, time_ns: int) -> Any:
    """Convert a pose graph to visualization_msgs/MarkerArray: spheres for nodes, lines for edges and loop closures."""
    positions = graph.poses[:, :2]
    ends = positions[graph.edges].reshape(-1, 2, 2) if len(graph.edges) else np.zeros((0, 2, 2))
    markers = [
        (msg.Marker.SPHERE_LIST, positions, _NODE_COLOR, 2.0 * _LINE_WIDTH),
        (msg.Marker.LINE_LIST, ends[~graph.is_loop].reshape(-1, 2), _EDGE_COLOR, _LINE_WIDTH),
        (msg.Marker.LINE_LIST, ends[graph.is_loop].reshape(-1, 2), _LOOP_COLOR, _LINE_WIDTH),
    ]
    return msg.MarkerArray(
        [
            points_marker(
                points,
                MarkerStyle(marker_type, color, (size, size, size)),
                namespace="graph",
                marker_id=number,
                frame=frame,
                time_ns=time_ns,
            )
            for number, (marker_type, points, color, size) in enumerate(markers)
        ]
    )
