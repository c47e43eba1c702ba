"""The octree map in a live run, as octomap_server makes it: clouds in, trees, their middles and a projection out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from roboyard.bus import Future, MessageFilter, Node, resource
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.errors import InputError, RoboyardError
from roboyard.geometry import SE3
from roboyard.grids import OccupancyGrid
from roboyard.grids.voxel_filter import average_by_voxel
from roboyard.mapping.nodes.map_messages import map_to_msg
from roboyard.mapping.nodes.octree_messages import centers_to_msg, cloud_from_msg, octree_to_msg
from roboyard.mapping.octree import Inserted, Leaves, OctreeConfig, OctreeMap, read_octree
from roboyard.mapping.octree.blocks import morton, unmorton
from roboyard.mapping.octree.files import COLORED, PLAIN, write_tree
from roboyard.mapping.octree.ground import GroundFilter, ground_points
from roboyard.mapping.octree.levels import climb, leaf_numbers
from roboyard.mapping.octree.octree_map import gather, paint
from roboyard.mapping.octree.placing import place, placed
from roboyard.mapping.octree.projection import project, shade
from roboyard.mapping.octree.rays import count_in, mark_beams, within_reach
from roboyard.mapping.octree.stream import write_binary, write_full
from roboyard.messages import msg, srv, to_nanoseconds
from roboyard.messages.convert import unpack_rgb

_TRANSFORM_TIMEOUT: Final = 0.3
"""A cloud waits for its transforms until it is older than this [s]."""
_QUEUE_SIZE: Final = 4
_ANY: Final = 1e6
"""A height beyond all [m]."""


@dataclass(frozen=True)
class Taken:
    """A cloud on its way to the worker.

    Attributes:
        message: sensor_msgs/PointCloud2.
        T_map_sensor: Where it was taken from.
        T_base_map: Where the map is, seen from the robot; None where ground is not looked for.
    """

    message: Any
    T_map_sensor: SE3
    T_base_map: SE3 | None


@dataclass(frozen=True)
class Known:
    """What the map knows after a piece of work, in the forms that are asked for."""

    binary: bytes
    full: bytes
    leaves: Leaves
    projected: OccupancyGrid
    inserted: Inserted | None = None
    trouble: str = ""


class OctreeNodeConfig(Config):
    """Configuration of `OctreeNode`."""

    cloud_topic: str = parameter("cloud_in", doc="Topic of the clouds.")
    frame_id: str = parameter("map", doc="Frame of the map.")
    base_frame_id: str = parameter("base_link", doc="Frame of the robot, in which ground is searched for.")
    octree: OctreeConfig = parameter(factory=OctreeConfig, flatten="", doc="Voxels and evidence of the map.")
    use_colored_map: bool = parameter(True, doc="Keep the colors of clouds that have them.")
    max_rate: float = parameter(2.0, unit="Hz", low=0.01, high=100.0, doc="Largest rate of processed clouds.")
    publish_period: float = parameter(2.0, unit="s", low=0.0, high=1e6, doc="Smallest time between maps.")
    latency: float = parameter(0.25, unit="s", low=1e-3, high=100.0, doc="Declared duration of processing a cloud.")
    point_cloud_min_z: float = parameter(
        -_ANY, unit="m", low=-_ANY, high=_ANY, runtime=True, doc="Height below which points are ignored."
    )
    point_cloud_max_z: float = parameter(
        _ANY, unit="m", low=-_ANY, high=_ANY, runtime=True, doc="Height above which points are ignored."
    )
    occupancy_min_z: float = parameter(
        -_ANY,
        unit="m",
        low=-_ANY,
        high=_ANY,
        runtime=True,
        doc="Height of the lowest voxel of the projected map and of the published centers.",
    )
    occupancy_max_z: float = parameter(
        _ANY,
        unit="m",
        low=-_ANY,
        high=_ANY,
        runtime=True,
        doc="Height of the highest voxel of the projected map and of the published centers.",
    )
    filter_ground_plane: bool = parameter(
        False, runtime=True, doc="Ignore points of the ground; the space before them is free all the same."
    )
    ground_filter: GroundFilter = parameter(factory=GroundFilter, doc="Search for the ground.")
    octomap_path: str = parameter("", doc="File of a map to begin with, .bt or .ot.")
    save_as: str = parameter("", doc="File for the map at the end, .bt or .ot, in the run's folder.")


class OctreeNode(Node[OctreeNodeConfig]):
    """Maps space from the points of depth cameras and lidars.

    in: cloud_in (sensor_msgs/PointCloud2; another topic by the parameter cloud_topic), /tf from frame_id to the cloud
        (and to base_frame_id, where ground is to be found)
    out: octomap_binary, octomap_full (octomap_msgs/Octomap), projected_map (nav_msgs/OccupancyGrid of what stands
        between occupancy_min_z and occupancy_max_z), all latched; octomap_point_cloud_centers (PointCloud2), while
        somebody listens
    services: octomap_binary, octomap_full (octomap_msgs/GetOctomap), ~/clear_bbx (octomap_msgs/BoundingBoxQuery),
        ~/reset (std_srvs/Empty)

    Names are those of octomap_server.  Of the clouds at most ``max_rate`` a second are taken in, beside the run: what
    one tells is known ``latency`` after it.  Where nobody knows a cloud's place, it is left out.
    """

    run_folder: Path | None = resource(Path, optional=True)

    state_fields = ("_taken_ns", "_published_ns", "_stale")

    def setup(self) -> None:
        """Connect; begin with the file, if there is one."""
        expect_kernels(
            average_by_voxel,
            placed,
            within_reach,
            mark_beams,
            count_in,
            morton,
            unmorton,
            climb,
            leaf_numbers,
            gather,
            shade,
            write_binary,
            write_full,
        )
        self._config = self.config.octree
        if self.config.use_colored_map:
            expect_kernels(paint)
        self._kind = COLORED if self.config.use_colored_map else PLAIN
        self._check_file()
        self._octree = OctreeMap(self._config)
        if self.config.octomap_path:
            self._octree.put(read_octree(self.config.octomap_path, self._config).leaves)
        self._taken_ns = self._published_ns = -(10**18)
        self._stale = bool(self.config.octomap_path)
        self._asked: list[Callable[[], None]] = []  # what waits for the worker
        self._outlets = {
            name: self.publisher(name, msg.octomap_msgs.Octomap, latched=True)
            for name in ("octomap_binary", "octomap_full")
        }
        self._projected = self.publisher("projected_map", msg.OccupancyGrid, latched=True)
        self._centers = self.publisher("octomap_point_cloud_centers", msg.PointCloud2, latched=True)
        self._known = look_at(self._octree, *self._asked_for())
        self.subscribe(self.config.cloud_topic, msg.PointCloud2, self._on_cloud)
        for name in self._outlets:
            self.service(name, srv.octomap_msgs.GetOctomap, self._getter(name))
        self.service("~/clear_bbx", srv.octomap_msgs.BoundingBoxQuery, self._on_clear)
        self.service("~/reset", srv.std_srvs.Empty, self._on_reset)
        self._clouds = MessageFilter(
            self,
            self._insert,
            target_frames=self._target_frames,
            queue_size=_QUEUE_SIZE,
            timeout=_TRANSFORM_TIMEOUT,
            retry_period=0.1,
        )
        self._publish()

    def _check_file(self) -> None:
        file = Path(self.config.save_as)
        if self.config.save_as and (file.suffix not in (".bt", ".ot") or file.name != self.config.save_as):
            raise InputError(
                f"save_as {self.config.save_as!r}",
                location=f"node {self.full_name}",
                valid="a name that ends in .bt or .ot",
            )
        if not self.config.point_cloud_min_z < self.config.point_cloud_max_z:
            raise InputError("point_cloud_min_z is not below point_cloud_max_z", location=f"node {self.full_name}")
        if not self.config.occupancy_min_z < self.config.occupancy_max_z:
            raise InputError("occupancy_min_z is not below occupancy_max_z", location=f"node {self.full_name}")

    # -- clouds --------------------------------------------------------------------------------------------------------
    def _on_cloud(self, message: Any) -> None:
        time_ns = to_nanoseconds(message.header.stamp)
        # a period less a tenth: stamps jitter, and a camera's need not be a multiple of ours
        is_due = time_ns - self._taken_ns >= round(0.9e9 / self.config.max_rate)
        if is_due and self._clouds.add(message, self.config.cloud_topic):
            self._taken_ns = time_ns

    def _target_frames(self) -> tuple[str, ...]:
        """The frames that a cloud must be connected with: the map's, and the robot's where ground is to be found."""
        frames = self.frame(self.config.frame_id), self.frame(self.config.base_frame_id)
        return frames if self.config.filter_ground_plane else frames[:1]

    def _insert(self, message: Any, topic: str) -> None:
        """Give a cloud to the worker; the others wait until the worker is done."""
        self._clouds.pause()
        time_ns, map_frame, *base = to_nanoseconds(message.header.stamp), *self._target_frames()
        T_map_sensor = self.transforms.lookup(map_frame, message.header.frame_id, time_ns)
        T_base_map = self.transforms.lookup(base[0], map_frame, time_ns) if base else None
        taken = Taken(message, T_map_sensor, T_base_map)
        heights = self.config.point_cloud_min_z, self.config.point_cloud_max_z
        self.offload(
            take_in, self._octree, taken, heights, self.config.ground_filter, *self._asked_for(),
            latency=self.config.latency, on_done=self._done,
        )  # fmt: skip

    def _asked_for(self) -> tuple[bool, tuple[float, float]]:
        """Whether colours are wanted, and the heights of the projection."""
        return self._kind == COLORED, (self.config.occupancy_min_z, self.config.occupancy_max_z)

    def _done(self, future: Future) -> None:
        self._known = known = future.result
        if known.trouble:
            self.report_health("error", f"a cloud is left out: {known.trouble}")
        elif known.inserted is not None:
            self.report_health(
                "ok", f"{known.leaves.nodes} nodes, {known.leaves.volume(occupied=True):.2f} m³ occupied",
                beams=known.inserted.beams,
            )  # fmt: skip
        self._stale = True
        asked, self._asked = self._asked, []
        for change in asked:
            change()
        self._publish()
        self._clouds.resume()

    # -- what it tells -------------------------------------------------------------------------------------------------
    def _publish(self, *, at_once: bool = False) -> None:
        if not self._stale or not (
            at_once or self.now_ns - self._published_ns >= round(self.config.publish_period * 1e9)
        ):
            return
        self._stale, self._published_ns = False, self.now_ns
        frame, known = self.frame(self.config.frame_id), self._known
        for name, outlet in self._outlets.items():
            outlet.publish(self._message(name))
        self._projected.publish(map_to_msg(known.projected, frame, self.now_ns))
        if self._centers.topic.subscriptions:
            low, high = self.config.occupancy_min_z, self.config.occupancy_max_z
            self._centers.publish(centers_to_msg(known.leaves, low, high, frame, self.now_ns))

    def _message(self, name: str) -> Any:
        binary = name == "octomap_binary"
        data, kind = (self._known.binary, PLAIN) if binary else (self._known.full, self._kind)
        return octree_to_msg(
            data, kind, self.config.octree.resolution, self.frame(self.config.frame_id), self.now_ns, binary=binary
        )

    # -- services ------------------------------------------------------------------------------------------------------
    def _getter(self, name: str) -> Callable[[Any], Any]:
        return lambda request: srv.octomap_msgs.GetOctomap.Response(map=self._message(name))

    def _on_clear(self, request: Any) -> Future:
        corners = [(float(corner.x), float(corner.y), float(corner.z)) for corner in (request.min, request.max)]
        if not np.isfinite(corners).all():
            raise InputError(
                "a box with corners that are not finite", location=f"node {self.full_name}", valid="metres"
            )
        response = srv.octomap_msgs.BoundingBoxQuery.Response
        return self._change(lambda: self._octree.clear_box(*corners), response)

    def _on_reset(self, request: Any) -> Future:
        return self._change(self._octree.reset, srv.std_srvs.Empty.Response)

    def _change(self, change: Callable[[], Any], response: Any) -> Future:
        """Change the map when the worker is through with it."""
        done = Future("changed map")

        def now() -> None:
            change()
            self._known, self._stale = look_at(self._octree, *self._asked_for()), True
            self._publish(at_once=True)
            done.set_result(response())

        if self._clouds.is_paused:  # the worker has the map
            self._asked.append(now)
        else:
            now()
        return done

    # -- end and state -------------------------------------------------------------------------------------------------
    def close(self) -> None:
        """Save the map, if that is asked for: as it was last told."""
        if not self.config.save_as:
            return
        if self.run_folder is None:
            self.log.warn(f"{self.config.save_as} is not saved: the run has no folder")
            return
        binary = self.config.save_as.endswith(".bt")
        data, kind = (self._known.binary, PLAIN) if binary else (self._known.full, self._kind)
        try:
            write_tree(self.run_folder / self.config.save_as, data, kind=kind, resolution=self.config.octree.resolution)
        except RoboyardError as error:
            self.log.error(f"the map was not saved: {error}")

    def save_state(self) -> dict[str, Any]:
        """State as plain data, the map with all its voxels.

        Raises:
            RunError: work is under way.
        """
        return super().save_state() | {"octree": self._octree.save_state(), "clouds": self._clouds.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        self._octree.load_state(state["octree"])
        self._clouds.load_state(state["clouds"])
        self._known = look_at(self._octree, *self._asked_for())


def take_in(
    octree: OctreeMap,
    taken: Taken,
    heights: tuple[float, float],
    ground: GroundFilter,
    color: bool,
    band: tuple[float, float],
) -> Known:
    """Take in a cloud; what the map knows then.

    Args:
        octree: The map, changed.
        taken: The cloud.
        heights: Lowest and highest point that counts, in the map [m].
        ground: How ground is found, where it is looked for.
        color: Whether the map has colours.
        band: Lowest and highest voxel of the projection [m].
    """
    try:
        cloud = cloud_from_msg(taken.message, color=color)
        points, kept = place(cloud.columns, taken.T_map_sensor, *heights)
        colors = None if cloud.packed is None else unpack_rgb(cloud.packed[kept])
        floor = None
        if taken.T_base_map is not None:
            floor = ground_points(taken.T_base_map @ points, ground, np.random.default_rng(len(points)))
        inserted = octree.insert(points, taken.T_map_sensor.translation, colors, ground=floor)
    except InputError as error:
        return replace(look_at(octree, color, band), trouble=str(error))
    return replace(look_at(octree, color, band), inserted=inserted)


def look_at(octree: OctreeMap, color: bool, band: tuple[float, float]) -> Known:
    """What a map knows; arguments as for `take_in`."""
    nodes = octree.nodes()
    leaves = octree.leaves(nodes, color=color)
    return Known(octree.binary(), octree.full(nodes, color=color), leaves, project(leaves, *band))
