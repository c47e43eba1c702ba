"""The octree node with the interface of octomap_server: it maps space from clouds and publishes trees, voxel
centers and a projected map.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from roboyard.bus import Future, resource
from roboyard.compute import expect_kernels
from roboyard.config import parameter
from roboyard.errors import InputError, RoboyardError
from roboyard.geometry import SE3
from roboyard.grids import OccupancyGrid
from roboyard.grids.voxel_filter import average_by_voxel
from roboyard.mapping.nodes.cloud_mapper import CloudMapperConfig, CloudMapperNode
from roboyard.mapping.octree import InsertionStatistics, OctreeLeaves, OctreeMap, OctreeMapConfig, read_octree
from roboyard.mapping.octree.cloud_filters import (
    GroundFilter,
    segment_ground,
    transform_and_crop,
    transform_and_crop_xyz,
)
from roboyard.mapping.octree.octomap_files import COLOR_TREE, PLAIN_TREE, write_tree_bytes
from roboyard.mapping.octree.octree import leaf_order, parent_level, write_binary, write_full
from roboyard.mapping.octree.octree_map import blend_colors, fill_squares, gather_voxels, project_to_plane
from roboyard.mapping.octree.voxel_blocks import apply_marks, clip_beams, mark_rays, morton_decode, morton_encode
from roboyard.messages import msg, srv
from roboyard.messages.convert import cloud_to_msg, pack_rgb, unpack_rgb
from roboyard.messages.convert.clouds import cloud_from_msg
from roboyard.messages.convert.grids import occupancy_grid_to_msg
from roboyard.messages.convert.poses import make_header

_MAX_HEIGHT: Final = 1e6
"""Height that stands for no limit [m]."""


@dataclass(frozen=True)
class OctreeCloudJob:
    """A cloud that the worker inserts.

    Attributes:
        message: sensor_msgs/PointCloud2.
        T_map_sensor: Pose of the sensor.
        T_base_map: Transform from the map to the robot's base; None: the ground is not segmented.
    """

    message: Any
    T_map_sensor: SE3
    T_base_map: SE3 | None


@dataclass(frozen=True)
class OctreeSnapshot:
    """The map after an insertion, in all forms that the node publishes, with the result of the insertion."""

    binary: bytes
    full: bytes
    leaves: OctreeLeaves
    projected_map: OccupancyGrid
    insertion: InsertionStatistics | None = None
    error: str = ""


class OctreeNodeConfig(CloudMapperConfig):
    """Configuration of `OctreeNode`."""

    cloud_topic: str = parameter("cloud_in", doc="Topic of the clouds.")
    frame_id: str = parameter("map", doc="Frame of the map.")
    base_frame_id: str = parameter("base_link", doc="Frame of the robot, in which ground is searched for.")
    octree: OctreeMapConfig = parameter(factory=OctreeMapConfig, flatten="", doc="Voxels and evidence of the map.")
    use_colored_map: bool = parameter(True, doc="Keep the colors of clouds that have them.")
    point_cloud_min_z: float = parameter(
        -_MAX_HEIGHT,
        unit="m",
        low=-_MAX_HEIGHT,
        high=_MAX_HEIGHT,
        runtime=True,
        doc="Height below which points are ignored.",
    )
    point_cloud_max_z: float = parameter(
        _MAX_HEIGHT,
        unit="m",
        low=-_MAX_HEIGHT,
        high=_MAX_HEIGHT,
        runtime=True,
        doc="Height above which points are ignored.",
    )
    occupancy_min_z: float = parameter(
        -_MAX_HEIGHT,
        unit="m",
        low=-_MAX_HEIGHT,
        high=_MAX_HEIGHT,
        runtime=True,
        doc="Height of the lowest voxel of the projected map and of the published centers.",
    )
    occupancy_max_z: float = parameter(
        _MAX_HEIGHT,
        unit="m",
        low=-_MAX_HEIGHT,
        high=_MAX_HEIGHT,
        runtime=True,
        doc="Height of the highest voxel of the projected map and of the published centers.",
    )
    filter_ground_plane: bool = parameter(
        False, runtime=True, doc="Ignore points of the ground; the space before them is free all the same."
    )
    ground_filter: GroundFilter = parameter(factory=GroundFilter, doc="Search for the ground.")
    octomap_path: str = parameter("", doc="File of a map to begin with, .bt or .ot.")
    save_path: str = parameter("", doc="File for the map at the end, .bt or .ot, in the run's folder.")


class OctreeNode(CloudMapperNode[OctreeNodeConfig]):
    """Octree map of space from the clouds of depth cameras and lidars; the interface of octomap_server.

    in: cloud_in (sensor_msgs/PointCloud2; another topic by the parameter cloud_topic), /tf from frame_id to the cloud,
        and to base_frame_id if the ground is segmented
    out: octomap_binary, octomap_full (octomap_msgs/Octomap), projected_map (nav_msgs/OccupancyGrid of the voxels
        between occupancy_min_z and occupancy_max_z), all latched; octomap_point_cloud_centers (PointCloud2), while it
        has subscribers
    services: octomap_binary, octomap_full (octomap_msgs/GetOctomap), ~/clear_bbx (octomap_msgs/BoundingBoxQuery),
        ~/reset (std_srvs/Empty)

    A worker inserts the clouds, at most ``max_rate`` a second; a result is available ``latency`` after its cloud. A
    cloud without a transform is dropped.
    """

    run_folder: Path | None = resource(Path, optional=True)

    def setup(self) -> None:
        """Create the map, from the file if there is one, the publishers, the subscription and the services."""
        expect_kernels(
            average_by_voxel,
            transform_and_crop_xyz,
            clip_beams,
            mark_rays,
            apply_marks,
            morton_encode,
            morton_decode,
            parent_level,
            leaf_order,
            gather_voxels,
            fill_squares,
            write_binary,
            write_full,
        )
        self._config = self.config.octree
        if self.config.use_colored_map:
            expect_kernels(blend_colors)
        self._tree_type = COLOR_TREE if self.config.use_colored_map else PLAIN_TREE
        self._check_parameters()
        self._octree = OctreeMap(self._config)
        if self.config.octomap_path:
            self._octree.set_leaves(read_octree(self.config.octomap_path, self._config).leaves)
        self._tree_publishers = {
            name: self.publisher(name, msg.octomap_msgs.Octomap, latched=True)
            for name in ("octomap_binary", "octomap_full")
        }
        self._projected_map_publisher = self.publisher("projected_map", msg.OccupancyGrid, latched=True)
        self._centers_publisher = self.publisher("octomap_point_cloud_centers", msg.PointCloud2, latched=True)
        self._snapshot = make_snapshot(self._octree, *self._snapshot_options())
        self.start_mapping(
            self._octree, self.config.cloud_topic, self._target_frames, is_changed=bool(self.config.octomap_path)
        )
        for name in self._tree_publishers:
            self.service(name, srv.octomap_msgs.GetOctomap, self._make_get_callback(name))
        self.service("~/clear_bbx", srv.octomap_msgs.BoundingBoxQuery, self._on_clear)
        self.service("~/reset", srv.std_srvs.Empty, self._on_reset)
        self.publish_if_due()

    def _check_parameters(self) -> None:
        file = Path(self.config.save_path)
        if self.config.save_path and (file.suffix not in (".bt", ".ot") or file.name != self.config.save_path):
            raise InputError(
                f"save_path {self.config.save_path!r}",
                location=f"node {self.full_name}",
                valid="a name that ends in .bt or .ot",
            )
        if not self.config.point_cloud_min_z < self.config.point_cloud_max_z:
            raise InputError("point_cloud_min_z is not below point_cloud_max_z", location=f"node {self.full_name}")
        if not self.config.occupancy_min_z < self.config.occupancy_max_z:
            raise InputError("occupancy_min_z is not below occupancy_max_z", location=f"node {self.full_name}")

    # -- clouds --------------------------------------------------------------------------------------------------------
    def _target_frames(self) -> tuple[str, ...]:
        """Return the frames to which a cloud needs transforms: the map's, and the base's if the ground is segmented."""
        frames = self.frame(self.config.frame_id), self.frame(self.config.base_frame_id)
        return frames if self.config.filter_ground_plane else frames[:1]

    def prepare_insertion(self, message: Any, time_ns: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return `insert_cloud` with the map and a job; see `CloudMapperNode.prepare_insertion`."""
        map_frame, *base = self._target_frames()
        T_map_sensor = self.transforms.lookup(map_frame, message.header.frame_id, time_ns)
        T_base_map = self.transforms.lookup(base[0], map_frame, time_ns) if base else None
        job = OctreeCloudJob(message, T_map_sensor, T_base_map)
        height_limits = self.config.point_cloud_min_z, self.config.point_cloud_max_z
        return insert_cloud, (self._octree, job, height_limits, self.config.ground_filter, *self._snapshot_options())

    def _snapshot_options(self) -> tuple[bool, tuple[float, float]]:
        """Return whether the map has colors, and the lowest and highest voxel of the projection [m]."""
        return self._tree_type == COLOR_TREE, (self.config.occupancy_min_z, self.config.occupancy_max_z)

    def report_insertion(self, result: Any) -> bool:
        """Keep the new snapshot, and report the size of the map, or what is wrong with the cloud."""
        snapshot: OctreeSnapshot = result
        self._snapshot = snapshot
        if snapshot.error:
            self.report_health("error", f"cloud dropped: {snapshot.error}")
        elif snapshot.insertion is not None:
            self.report_health(
                "ok", f"{snapshot.leaves.n_nodes} nodes, {snapshot.leaves.volume(occupied=True):.2f} m³ occupied",
                beams=snapshot.insertion.n_beams,
            )  # fmt: skip
        return True

    # -- publications ------------------------------------------------------------------------------------------------
    def publish_map(self) -> None:
        """Publish the trees, the projection, and the centers of voxels if they have subscribers."""
        frame, snapshot = self.frame(self.config.frame_id), self._snapshot
        for name, publisher in self._tree_publishers.items():
            publisher.publish(self._make_tree_message(name))
        self._projected_map_publisher.publish(occupancy_grid_to_msg(snapshot.projected_map, frame, self.now_ns))
        if self._centers_publisher.topic.subscriptions:
            low, high = self.config.occupancy_min_z, self.config.occupancy_max_z
            self._centers_publisher.publish(centers_to_msg(snapshot.leaves, low, high, frame, self.now_ns))

    def _make_tree_message(self, name: str) -> Any:
        binary = name == "octomap_binary"
        data, tree_type = (self._snapshot.binary, PLAIN_TREE) if binary else (self._snapshot.full, self._tree_type)
        return octree_to_msg(
            data, tree_type, self.config.octree.resolution, self.frame(self.config.frame_id), self.now_ns, binary=binary
        )

    # -- services ------------------------------------------------------------------------------------------------------
    def _make_get_callback(self, name: str) -> Callable[[Any], Any]:
        return lambda request: srv.octomap_msgs.GetOctomap.Response(map=self._make_tree_message(name))

    def _on_clear(self, request: Any) -> Future:
        corners = [(float(corner.x), float(corner.y), float(corner.z)) for corner in (request.min, request.max)]
        if not np.isfinite(corners).all():
            raise InputError(
                "a box with corners that are not finite", location=f"node {self.full_name}", valid="metres"
            )
        response = srv.octomap_msgs.BoundingBoxQuery.Response
        return self._change(lambda: self._octree.clear_box(*corners), response)

    def _on_reset(self, request: Any) -> Future:
        return self._change(self._octree.clear, srv.std_srvs.Empty.Response)

    def _change(self, change: Callable[[], Any], response: Callable[[], Any]) -> Future:
        def apply_change() -> None:
            change()
            self._snapshot = make_snapshot(self._octree, *self._snapshot_options())

        return self.change_map(apply_change, response)

    # -- end and state -------------------------------------------------------------------------------------------------
    def close(self) -> None:
        """Save the last published map if ``save_path`` is set."""
        if not self.config.save_path:
            return
        if self.run_folder is None:
            self.log.warn(f"{self.config.save_path} is not saved: the run has no folder")
            return
        binary = self.config.save_path.endswith(".bt")
        data, tree_type = (self._snapshot.binary, PLAIN_TREE) if binary else (self._snapshot.full, self._tree_type)
        try:
            write_tree_bytes(
                self.run_folder / self.config.save_path,
                data,
                tree_type=tree_type,
                resolution=self.config.octree.resolution,
            )
        except RoboyardError as error:
            self.log.error(f"the map was not saved: {error}")

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state(state)
        self._snapshot = make_snapshot(self._octree, *self._snapshot_options())


def insert_cloud(
    octree: OctreeMap,
    job: OctreeCloudJob,
    height_limits: tuple[float, float],
    ground_filter: GroundFilter,
    color: bool,
    height_band: tuple[float, float],
) -> OctreeSnapshot:
    """Insert a cloud; return the map after it.

    Args:
        octree: The map, which is changed.
        job: The cloud.
        height_limits: Lowest and highest point that is inserted, in the map [m].
        ground_filter: Parameters of the segmentation of the ground.
        color: Whether the map has colors.
        height_band: Lowest and highest voxel of the projection [m].
    """
    try:
        cloud = cloud_from_msg(job.message, color=color)
        points, point_indices = transform_and_crop(cloud.xyz, job.T_map_sensor, *height_limits)
        colors = None if cloud.packed_rgb is None else unpack_rgb(cloud.packed_rgb[point_indices])
        is_ground = None
        if job.T_base_map is not None:
            is_ground = segment_ground(job.T_base_map @ points, ground_filter, np.random.default_rng(len(points)))
        insertion = octree.insert(points, job.T_map_sensor.translation, colors, ground=is_ground)
    except InputError as error:
        return replace(make_snapshot(octree, color, height_band), error=str(error))
    return replace(make_snapshot(octree, color, height_band), insertion=insertion)


def make_snapshot(octree: OctreeMap, color: bool, height_band: tuple[float, float]) -> OctreeSnapshot:
    """Return a map in all forms that the node publishes; arguments as for `insert_cloud`."""
    tree = octree.to_octree()
    leaves = octree.leaves(tree, color=color)
    return OctreeSnapshot(
        octree.encode_binary(), octree.encode_full(tree, color=color), leaves, project_to_plane(leaves, *height_band)
    )


def octree_to_msg(data: bytes, tree_type: str, resolution: float, frame: str, time_ns: int, *, binary: bool) -> Any:
    """Convert the bytes of a tree to octomap_msgs/Octomap.

    Args:
        data: Bytes that `OctreeMap.encode_full` or `OctreeMap.encode_binary` returned.
        tree_type: ``OcTree`` or ``ColorOcTree``.
        resolution: Edge of the smallest voxel [m].
        frame: Frame of the map.
        time_ns: Time stamp [ns].
        binary: Whether the bytes are those of `OctreeMap.encode_binary`.
    """
    return msg.octomap_msgs.Octomap(
        header=make_header(frame, time_ns), binary=binary, id=tree_type, resolution=resolution,
        data=np.frombuffer(data, dtype=np.int8),
    )  # fmt: skip


def centers_to_msg(leaves: OctreeLeaves, min_z: float, max_z: float, frame: str, time_ns: int) -> Any:
    """Convert the centers of occupied leaves in a band of heights [m] to sensor_msgs/PointCloud2."""
    centers = leaves.centers
    is_selected = leaves.occupied & (centers[:, 2] >= min_z) & (centers[:, 2] <= max_z)
    fields = {} if leaves.colors is None else {"rgb": pack_rgb(leaves.colors[is_selected])}
    return cloud_to_msg(centers[is_selected], frame, time_ns, fields=fields)
