"""Marked discs in a live run: every picture's, and on request those on which several looks agree."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from roboyard.bus import Node, TransformError
from roboyard.bus.actions import GoalHandle
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE3
from roboyard.messages import action, msg
from roboyard.messages.convert import image_to_msg, jpeg_to_msg, make_header
from roboyard.vision.discs.candidates import vote
from roboyard.vision.discs.config import DiscConfig
from roboyard.vision.discs.conics import fit_ellipse
from roboyard.vision.discs.detect import find_discs
from roboyard.vision.discs.drawing import draw_discs, draw_ways
from roboyard.vision.discs.looks import Steady, steady
from roboyard.vision.discs.pairs import DiscPair, disc_pairs
from roboyard.vision.discs.place import PlacedDisc, place_discs
from roboyard.vision.discs.search import search
from roboyard.vision.discs.tracks import Track, tracked
from roboyard.vision.hand_eye_file import read_mount
from roboyard.vision.nodes.camera_input import CameraInput, View
from roboyard.vision.nodes.detections import detection, detections, pose_of

_AHEAD = 4
"""So far ahead the ways of moving things are drawn [s]."""
_TEXTS = ("polarity", "mode")
_NUMBERS = (
    "diameter", "diameter_tolerance", "distance", "distance_tolerance", "sensitivity", "radius_min", "radius_max",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Seen:
    """What one picture shows."""

    discs: list[PlacedDisc]
    pairs: list[DiscPair]


@dataclass(eq=False)
class Look:
    """A request under way.

    Attributes:
        handle: Of the goal.
        config: What is looked for.
        looks: Pictures asked for.
        least: Of them that must agree.
        frame: Of the answer; empty: the camera's.
        begun_ns: When it began.
        until_ns: When it is given up.
        rows: For each look its sightings (n, 9): position, normal, diameter, distance, measured.
        times_ns: When each was taken.
        blind: Looks whose depth was known nowhere.
        trouble: Why the newest picture could not be used.
        last: What it saw last.
        T_frame_camera: From where.
    """

    handle: GoalHandle
    config: DiscConfig
    looks: int
    least: int
    frame: str
    begun_ns: int
    until_ns: int
    rows: list[np.ndarray]
    blind: int = 0
    trouble: tuple[str, str] = ("", "")
    last: tuple[View, Seen] | None = None
    T_frame_camera: SE3 = field(default_factory=SE3.identity)
    times_ns: list[int] = field(default_factory=list)


class DiscFinderNodeConfig(Config):
    """Configuration of `DiscFinderNode`."""

    image_topic: str = parameter("image", doc="Topic of the images.")
    info_topic: str = parameter("camera_info", high=math.inf, doc="Topic of their camera_info.")
    depth_topic: str = parameter("depth_registered/image", doc="Topic of the depth images; empty: none.")
    depth_info_topic: str = parameter("", doc="Topic of the depth camera's camera_info, if depth is not registered.")
    rate: float = parameter(
        2.0, unit="Hz", low=0.01, high=100.0, runtime=True, doc="Rate of the images processed for the topics."
    )
    hand_eye: str = parameter("", doc="File that `roboyard calibrate hand-eye` wrote; empty: the description's pose.")
    hand_eye_link: str = parameter("", doc="Flange or base in which its camera's pose is stated.")
    disc: DiscConfig = parameter(factory=DiscConfig, doc="Discs to be found.")
    looks: int = parameter(5, low=1, high=100, runtime=True, doc="Number of images of a look.")
    least: int = parameter(3, low=1, high=100, runtime=True, doc="Smallest number of images that agree on a place.")
    reach: float = parameter(
        0.01, unit="m", low=1e-4, high=1.0, runtime=True, doc="Largest distance between sightings of the same thing."
    )
    within: float = parameter(
        0.001, unit="m", low=1e-5, high=1.0, runtime=True, doc="Largest distance of a sighting from the median."
    )
    timeout: float = parameter(5.0, unit="s", low=0.05, high=1000.0, runtime=True, doc="Longest duration of a look.")


class DiscFinderNode(Node[DiscFinderNodeConfig]):
    """Finds marked discs.

    in: image (sensor_msgs/Image), camera_info, depth_registered/image; or depth as its own camera sees it, with
        depth_info_topic and /tf between the two; names by parameters
    out: discs (vision_msgs/Detection3DArray, in the camera's optical frame), discs/image (what was found, drawn in),
        while somebody listens, at most ``rate`` times a second; discs/image/compressed: the last picture of each look
    action: look (roboyard_msgs/LookForDiscs): several looks, and where discs or middles of pairs are, in a named frame

    It listens to the camera while it looks, or somebody listens to it.

    Causes for which a look ends without places: view_empty, disagreement, camera_silent, camera_info_silent,
    depth_silent, depth_info_silent, depth_unknown, wrong_encoding, no_transform.
    """

    state_fields = ("_looked_ns",)

    def setup(self) -> None:
        """Connect."""
        self._looked_ns = -(10**18)
        self._look: Look | None = None
        if bool(self.config.hand_eye) != bool(self.config.hand_eye_link):
            raise ConfigError("one of hand_eye and hand_eye_link", location=self.full_name, valid="both or none")
        self._T_mount_camera = read_mount(self.config.hand_eye) if self.config.hand_eye else None
        self._found = self.publisher("discs", msg.vision_msgs.Detection3DArray)
        self._drawn = self.publisher("discs/image", msg.Image)
        self._kept = self.publisher("discs/image/compressed", msg.CompressedImage)
        self._camera = CameraInput(
            self,
            self.config.image_topic,
            self.config.info_topic,
            self.config.depth_topic,
            self.config.depth_info_topic,
            self._on_view,
        )
        self.action_server("look", action.LookForDiscs, self._on_goal, on_goal_restored=self._begin)
        self.timer(0.05, self._watch)
        expect_kernels(vote, search, fit_ellipse)
        self.report_health("ok", "waits for pictures")

    # -- pictures ------------------------------------------------------------------------------------------------------
    def _on_view(self, view: View) -> None:
        look = self._look
        due = view.time_ns - self._looked_ns >= round(0.9e9 / self.config.rate)
        if look is not None and view.time_ns >= look.begun_ns:
            seen = see(view, look.config)
            look.last = (view, seen)
            self._add(look, view, seen)
        elif due and self._is_heard():
            seen = see(view, self.config.disc)
        else:
            return
        self._looked_ns = view.time_ns
        self._tell(view, seen, look.config if look is not None else self.config.disc)

    def _is_heard(self) -> bool:
        return bool(self._found.topic.subscriptions or self._drawn.topic.subscriptions)

    def _tell(self, view: View, seen: Seen, config: DiscConfig) -> None:
        if self._found.topic.subscriptions:
            make = partial(detection, view.frame, view.time_ns)
            found = [
                make(pose_of(one.position, one.normal), (one.diameter, one.diameter, 0.0), f"{config.polarity}_disc",
                     max(0.0, 1.0 - 0.5 * one.disc.doubt))
                for one in seen.discs
            ]  # fmt: skip
            self._found.publish(detections(view.frame, view.time_ns, found))
        if self._drawn.topic.subscriptions:
            drawn = draw_discs(view.image, seen.discs, seen.pairs)
            self._drawn.publish(image_to_msg(drawn, view.frame, view.time_ns))
        self.report_health("ok", f"{len(seen.discs)} discs seen", pairs=len(seen.pairs))

    # -- looking on request --------------------------------------------------------------------------------------------
    def _on_goal(self, handle: GoalHandle) -> None:
        try:
            self._config_of(handle.goal)
        except InputError as error:
            handle.reject(str(error), "bad_option")
            return
        handle.accept()
        self._begin(handle)

    def _begin(self, handle: GoalHandle) -> None:
        goal = handle.goal
        looks = int(goal.num_images) or self.config.looks
        least = min(int(goal.min_agreeing) or self.config.least, looks)
        until = self.now_ns + round(1e9 * (float(goal.timeout) or self.config.timeout))
        self._look = Look(handle, self._config_of(goal), looks, least, str(goal.frame_id), self.now_ns, until, [])
        handle.on_cancel = lambda _: self._end("canceled", "somebody cancelled it")
        self._camera.listen()

    def _config_of(self, goal: Any) -> DiscConfig:
        wishes: dict[str, Any] = {name: getattr(goal, name) for name in _TEXTS + _NUMBERS if getattr(goal, name)}
        if not 0.0 <= float(goal.timeout) <= 1000.0:
            raise InputError(f"timeout {goal.timeout:g} s", location=f"node {self.full_name}", valid="0 to 1000 s")
        return replace(self.config.disc, **wishes)

    def _add(self, look: Look, view: View, seen: Seen) -> None:
        T = SE3.identity()
        if look.frame and look.frame != view.frame:
            try:
                T = self._camera_in(look.frame, view)
            except TransformError as error:
                look.trouble = ("no_transform", str(error))
                return
        look.trouble = ("", "")
        look.blind += view.depth is not None and not (np.isfinite(view.depth) & (view.depth > 0.0)).any()
        rows = [
            [*(T @ one.position), *(T.rotation_matrix() @ first.normal), one.diameter, distance, float(first.measured)]
            for one, first, distance in (
                [(pair, pair.first, pair.distance) for pair in seen.pairs]
                if look.config.mode == "pair"
                else [(disc, disc, 0.0) for disc in seen.discs]
            )
        ]  # fmt: skip
        look.rows.append(np.array(rows, dtype=np.float64).reshape(-1, 9))
        look.times_ns.append(view.time_ns)
        look.T_frame_camera = T
        look.frame = look.frame or view.frame
        look.handle.publish_feedback(action.LookForDiscs.Feedback(num_images=len(look.rows)))
        if len(look.rows) >= look.looks:
            self._end()

    def _camera_in(self, frame: str, view: View) -> SE3:
        """Pose of the camera in a frame: as calibration found its mount, else as described. Raises TransformError."""
        if self._T_mount_camera is None:
            return self.transforms.lookup(frame, view.frame, view.time_ns)
        return self.transforms.lookup(frame, self.frame(self.config.hand_eye_link), view.time_ns) @ self._T_mount_camera

    def _watch(self) -> None:
        look = self._look
        self._camera.listen(look is not None or self._is_heard())
        if look is not None and self.now_ns >= look.until_ns:
            late = f"{len(look.rows)} of {look.looks} looks in {(self.now_ns - look.begun_ns) * 1e-9:g} s"
            silent = self._camera.silent(look.begun_ns)
            cause, text = next(
                (one for one in (self._camera.trouble, look.trouble, silent) if one[0]), ("too_slow", "")
            )
            self._end(cause, f"{late}: {text}" if text else late)
        elif self._camera.trouble[0]:
            self.report_health("error", self._camera.trouble[1], cause=self._camera.trouble[0])

    def _end(self, cause: str = "", text: str = "") -> None:
        look, self._look = self._look, None
        if look is None or not look.handle.is_active:
            return
        result = action.LookForDiscs.Result(error_code=cause, message=text, num_images=len(look.rows))
        result.header = make_header(look.frame, self.now_ns)
        if not cause:
            self._answer(look, result)
        if look.last is not None:
            self._show(look, *look.last, result)
        if result.error_code:
            self.report_health("warn", result.message, cause=result.error_code)
        if cause == "canceled":
            look.handle.set_canceled(result, text)
        elif cause:
            look.handle.abort(result, text, cause)
        else:
            look.handle.succeed(result)

    def _show(self, look: Look, view: View, seen: Seen, result: Any) -> None:
        """The last picture with what was found, and where it is going."""
        drawn = draw_discs(view.image, seen.discs, seen.pairs)
        if result.velocities:
            places = np.array([[p.x, p.y, p.z] for p in result.positions])
            speeds = np.array([[v.x, v.y, v.z] for v in result.velocities])
            ahead = places[:, None] + np.arange(_AHEAD + 1.0)[:, None] * speeds[:, None]
            draw_ways(
                drawn,
                view.lens.project(look.T_frame_camera.inverse() @ ahead.reshape(-1, 3)).reshape(ahead.shape[0], -1, 2),
            )
        self._kept.publish(jpeg_to_msg(drawn, view.frame, view.time_ns))

    def _answer(self, look: Look, result: Any) -> None:
        """Fill in where things are, or why nothing is known."""
        found: list[Steady] | list[Track]
        if look.handle.goal.may_move:
            times = [(time_ns - look.times_ns[-1]) * 1e-9 for time_ns in look.times_ns]
            tracks = tracked(look.rows, times, reach=self.config.reach, within=self.config.within, least=look.least)
            tracks.sort(key=lambda one: float(np.linalg.norm(one.mean[:3])))
            result.velocities = [msg.Vector3(x=x, y=y) for x, y in (one.velocity.tolist() for one in tracks)]
            result.header = make_header(look.frame, look.times_ns[-1])
            found = tracks
        else:
            found = steady(look.rows, reach=self.config.reach, within=self.config.within, least=look.least)
            found.sort(key=lambda one: float(np.linalg.norm(one.mean[:3])))
        table = np.array([one.mean for one in found]).reshape(-1, 9)
        sizes = np.maximum(np.linalg.norm(table[:, 3:6], axis=1, keepdims=True), 1e-9)
        result.positions = [msg.Point(x=x, y=y, z=z) for x, y, z in table[:, :3].tolist()]
        result.normals = [msg.Vector3(x=x, y=y, z=z) for x, y, z in (table[:, 3:6] / sizes).tolist()]
        result.diameters, result.distances = table[:, 6].copy(), table[:, 7].copy()
        result.is_measured = table[:, 8] > 0.5
        result.num_agreeing = np.array([one.kept for one in found], dtype=np.uint32)
        if look.blind == len(look.rows):
            result.error_code, result.message = "depth_unknown", "no pixel of the depth pictures is known"
        elif not found and any(len(rows) for rows in look.rows):
            result.error_code, result.message = (
                "disagreement",
                f"no place on which {look.least} of {look.looks} looks agree",
            )
        elif not found:
            result.error_code, result.message = "view_empty", f"nothing of the kind is seen in {look.looks} looks"


def see(view: View, config: DiscConfig) -> Seen:
    """Discs, and pairs if they are asked for, of one picture."""
    placed = place_discs(find_discs(view.image, config), view.lens, view.depth, config)
    return Seen(placed, disc_pairs(placed, config) if config.mode == "pair" else [])
