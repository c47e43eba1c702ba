"""Transform buffer: poses of all frames over the last seconds, with interpolation (tf2)."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Protocol

from roboyard.errors import RoboyardError
from roboyard.geometry import SE2, SE3


class TransformError(RoboyardError):
    """A transform is not available: unknown frame, unconnected trees, or a time outside the buffer."""


class _Edge:
    """Motion of one frame in its parent over time."""

    __slots__ = ("parent", "poses", "static", "times")

    def __init__(self, parent: str, static: bool) -> None:
        self.parent = parent
        self.static = static
        self.times: list[int] = []
        self.poses: list[SE3] = []


class TransformBuffer:
    """Collects transforms and computes the transform between any two frames of a tree (REP 105).

    Args:
        cache_time: Duration of stored motion [s].
    """

    def __init__(self, cache_time: float = 10.0) -> None:
        self._cache_time_ns = round(cache_time * 1e9)
        self._edges: dict[str, _Edge] = {}

    def insert(self, T_parent_child: SE3, parent: str, child: str, time_ns: int, static: bool = False) -> None:
        """Add a transform.  With the same parent, samples may arrive in any order; a new parent replaces the old one.

        Raises:
            TransformError: The frames are equal, unnamed, or would close a loop.
        """
        if not parent or not child or parent == child:
            raise TransformError(f"invalid transform from '{parent}' to '{child}'", valid="two different, named frames")
        edge = self._edges.get(child)
        if edge is None or edge.parent != parent or edge.static != static:
            if child in self._chain(parent):
                raise TransformError(f"'{child}' with parent '{parent}' would close a loop", valid="frames form a tree")
            edge = self._edges[child] = _Edge(parent, static)
        if static:
            edge.times, edge.poses = [time_ns], [T_parent_child]
            return
        times, poses = edge.times, edge.poses
        if not times or time_ns > times[-1]:
            times.append(time_ns)
            poses.append(T_parent_child)
            if len(times) > 64 and times[len(times) // 2] < time_ns - self._cache_time_ns:
                cut = bisect_right(times, time_ns - self._cache_time_ns)
                del times[:cut], poses[:cut]
            return
        index = bisect_right(times, time_ns)
        if index and times[index - 1] == time_ns:
            poses[index - 1] = T_parent_child
        elif time_ns >= times[-1] - self._cache_time_ns:
            times.insert(index, time_ns)
            poses.insert(index, T_parent_child)

    def lookup(self, target: str, source: str, time_ns: int | None = None) -> SE3:
        """Return ``T_target_source``, which maps coordinates in `source` to `target`.

        Args:
            target: Frame to express in.
            source: Frame of the coordinates.
            time_ns: Time [ns], interpolated between samples; None = the newest time common to the chain.

        Raises:
            TransformError: A frame is unknown, the two are not connected, or the time is outside the buffer.
        """
        target_chain, source_chain = self._chain(target), self._chain(source)
        if target == source and (target in self._edges or target in self.parents()):
            return SE3.identity()
        self._check_frame(target, target_chain)
        self._check_frame(source, source_chain)
        common = next((frame for frame in target_chain if frame in set(source_chain)), None)
        if common is None:
            raise TransformError(
                f"'{target}' and '{source}' are not connected",
                valid=f"'{target}' is below root '{target_chain[-1]}', '{source}' below root '{source_chain[-1]}'",
            )
        target_branch = target_chain[: target_chain.index(common)]
        source_branch = source_chain[: source_chain.index(common)]
        if time_ns is None:
            time_ns = self._latest_common_time(target_branch + source_branch)
        try:
            T_common_target = self._compose(target_branch, time_ns)
            T_common_source = self._compose(source_branch, time_ns)
        except TransformError as error:
            raise TransformError(
                error.message, location=f"transform of '{source}' to '{target}'", valid=error.valid
            ) from None
        return T_common_target.inverse() @ T_common_source

    def can_lookup(self, target: str, source: str, time_ns: int | None = None) -> bool:
        """Return whether `lookup` would succeed."""
        try:
            self.lookup(target, source, time_ns)
        except TransformError:
            return False
        return True

    def parents(self) -> dict[str, str | None]:
        """Return every frame with its parent (None for roots), sorted by name."""
        parents: dict[str, str | None] = {child: edge.parent for child, edge in self._edges.items()}
        for edge in self._edges.values():
            parents.setdefault(edge.parent, None)
        return dict(sorted(parents.items()))

    def time_range(self, frame: str) -> tuple[int, int] | None:
        """Return first and last time [ns] of a moving frame in its parent; None if static, root or unknown."""
        edge = self._edges.get(frame)
        return None if edge is None or edge.static else (edge.times[0], edge.times[-1])

    def _chain(self, frame: str) -> list[str]:
        chain = [frame]
        while (edge := self._edges.get(chain[-1])) is not None:
            chain.append(edge.parent)
        return chain

    def _check_frame(self, frame: str, chain: list[str]) -> None:
        if len(chain) == 1 and all(edge.parent != frame for edge in self._edges.values()):
            frame_names = ", ".join(self.parents()) or "none"
            raise TransformError(f"frame '{frame}' is unknown", valid=f"known: {frame_names}")

    def _latest_common_time(self, frames: list[str]) -> int:
        moments = [edge.times[-1] for frame in frames if not (edge := self._edges[frame]).static]
        return min(moments, default=0)

    def _compose(self, frames: list[str], time_ns: int) -> SE3:
        pose = SE3.identity()
        for frame in frames:
            pose = self._sample(frame, time_ns) @ pose
        return pose

    def _sample(self, frame: str, time_ns: int) -> SE3:
        edge = self._edges[frame]
        times, poses = edge.times, edge.poses
        if edge.static:
            return poses[-1]
        index = bisect_right(times, time_ns)
        if index and times[index - 1] == time_ns:
            return poses[index - 1]
        if index == 0 or index == len(times):
            side = "before" if index == 0 else "after"
            raise TransformError(
                f"'{frame}' in '{edge.parent}' is not known at {time_ns / 1e9:.6f} s, {side} what was received",
                valid=f"known from {times[0] / 1e9:.6f} to {times[-1] / 1e9:.6f} s",
            )
        before, after = times[index - 1], times[index]
        return poses[index - 1].interpolate(poses[index], (time_ns - before) / (after - before))

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> list[Any]:
        """Return everything as plain data: (child, parent, static, [(ns, quaternion, translation)])."""
        return [
            (
                child,
                edge.parent,
                edge.static,
                [
                    (t, tuple(p.rotation.tolist()), tuple(p.translation.tolist()))
                    for t, p in zip(edge.times, edge.poses, strict=True)
                ],
            )
            for child, edge in self._edges.items()
        ]

    def load_state(self, state: list[Any]) -> None:
        """Restore a state that `save_state` returned."""
        self._edges = {}
        for child, parent, static, samples in state:
            edge = self._edges[child] = _Edge(parent, static)
            edge.times = [t for t, _, _ in samples]
            edge.poses = [SE3(rotation, translation) for _, rotation, translation in samples]


class TransformSender(Protocol):
    """What `MapToOdomBroadcaster` needs of a node: `Node` has both."""

    @property
    def transforms(self) -> TransformBuffer:
        """The buffer of all frames."""

    def send_transform(
        self, T_parent_child: SE2 | SE3, parent: str, child: str, *, static: bool = False, time_ns: int | None = None
    ) -> None:
        """Publish a transform on /tf."""


class MapToOdomBroadcaster:
    """Publishes the transform map → odom, by which localization corrects odometry (REP 105).

    Args:
        node: The node that publishes.
        map_frame: Frame id of the map, including the prefix.
        odom_frame: Frame id of the odometry.
        base_frame: Frame id of the base; needed by ``send_pose``.
    """

    def __init__(self, node: TransformSender, map_frame: str, odom_frame: str, base_frame: str = "") -> None:
        self._node = node
        self._map_frame, self._odom_frame, self._base_frame = map_frame, odom_frame, base_frame

    def send_correction(self, T_map_odom: SE2 | SE3, time_ns: int | None = None) -> None:
        """Publish the correction of odometry.

        Args:
            T_map_odom: Pose of the odometry's frame in the map.
            time_ns: Stamp [ns]: the time of the data plus a tolerance until which consumers may use it; None: now.
        """
        T = T_map_odom.to_se3() if isinstance(T_map_odom, SE2) else T_map_odom
        self._node.send_transform(T, self._map_frame, self._odom_frame, time_ns=time_ns)

    def send_pose(self, T_map_base: SE3, time_ns: int, stamp_ns: int) -> None:
        """Publish the correction that follows from a pose of the base in the map.

        Odometry of that time is taken; if it has not arrived yet, the newest one.

        Args:
            T_map_base: Pose of the base in the map.
            time_ns: Time of the pose [ns].
            stamp_ns: Stamp of the transform [ns].

        Raises:
            TransformError: There is no odometry.
        """
        transforms = self._node.transforms
        try:
            T_odom_base = transforms.lookup(self._odom_frame, self._base_frame, time_ns)
        except TransformError:
            T_odom_base = transforms.lookup(self._odom_frame, self._base_frame)
        self.send_correction(T_map_base @ T_odom_base.inverse(), stamp_ns)
