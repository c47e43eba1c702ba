"""The thesis's method of the skill server, and the executor of its requests: images, joint velocities, fingers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np

from roboyard.config import parameter
from roboyard.errors import ConfigError
from roboyard.geometry.arrays import Array
from roboyard.manipulation.nodes.skill_method import SkillMethod, SkillMethodConfig, SkillServerContext
from roboyard.manipulation.skills import (
    SUCCESS,
    DelayRequest,
    GripperRequest,
    Skill,
    SkillContext,
    SkillGoal,
    SkillRequest,
    SkillResult,
    SkillResultCode,
    TargetDetection,
)
from roboyard.manipulation.skills.thesis_control import JointPController, ThesisConfig, ThesisJointScale
from roboyard.manipulation.skills.thesis_skills import (
    THESIS_SKILL_NAMES,
    ThesisContext,
    ThesisDetectRequest,
    ThesisFinishSkill,
    ThesisJointRequest,
    ThesisStopRequest,
    detections_on_places,
    make_thesis_skill,
)
from roboyard.messages import msg
from roboyard.messages.convert import jpeg_to_msg
from roboyard.vision.discs.reference_detectors import ThesisDisc, detect_discs_thesis, draw_thesis_discs
from roboyard.vision.nodes.camera_subscriber import CameraImage, CameraSubscriber, CameraTopics

_JOINT_CONTROLLER: Final = JointPController()
_MAX_STOPPED_SPEED: Final = 0.1 * _JOINT_CONTROLLER.end_speed
"""Sum of the joint speeds at rest after the last position command [rad/s]."""
_MAX_FINGER_OPENING_MM: Final = 10.0
"""Opening of a fully open finger on the thesis's scale."""
_FINGER_TOLERANCE: Final = 1e-5
"""The thesis waits until both fingers are within this distance of their goal [m] ..."""
_FINGER_STALL_TIMEOUT_NS: Final = 300_000_000
"""... or, which its own gripper could not measure, do not move for this time [ns]."""


@dataclass(frozen=True, kw_only=True)
class ThesisSkillMethodConfig(SkillMethodConfig, ThesisConfig):
    """The method of the youBot's bachelor thesis (2017): P control and closed-form inverse kinematics, no planning.

    Take it to compare with the original: without contact sensing and collision checking it may touch obstacles.
    """

    type: str = parameter("thesis", doc="Name of the method.")
    image_topic: str = parameter("camera/rgb/image_raw", doc="Topic of the images.")
    info_topic: str = parameter("camera/rgb/camera_info", doc="Topic of their camera_info.")
    depth_topic: str = parameter("camera/depth/image", doc="Topic of the depth images, as the depth camera sees them.")
    velocity_topic: str = parameter(
        "arm_1/arm_controller/velocity_command", doc="Topic brics_actuator/JointVelocities of the arm."
    )
    position_topic: str = parameter(
        "arm_1/arm_controller/position_command", doc="Topic brics_actuator/JointPositions of the arm."
    )
    gripper_topic: str = parameter(
        "arm_1/gripper_controller/position_command", doc="Topic brics_actuator/JointPositions of both fingers."
    )
    image_timeout: float = parameter(3.0, unit="s", low=0.1, high=1e3, doc="Timeout of an image.")
    motion_timeout: float = parameter(40.0, unit="s", low=0.1, high=1e4, doc="Timeout of a motion.")

    def make_method(self, server: SkillServerContext) -> SkillMethod:
        """Return the method. Raises ConfigError if the arm has no gripper, or a work area has no view azimuth."""
        n_areas = len(server.skills.work_areas)
        if len(self.view_azimuths) != n_areas:
            raise ConfigError(
                f"{len(self.view_azimuths)} view azimuths",
                location=f"{server.node.full_name}, parameter 'method.view_azimuths'",
                valid=f"one for each of {n_areas} work areas",
            )
        return ThesisSkillMethod(server, self)


class ThesisSkillMethod(SkillMethod):
    """The thesis's skills, with its constants, by the topics of the robot's drivers."""

    update_rate = 100.0

    def __init__(self, server: SkillServerContext, config: ThesisSkillMethodConfig) -> None:
        self._server, self._config = server, config
        self.skill_names = THESIS_SKILL_NAMES
        self.executor: ThesisSkillExecutor = ThesisSkillExecutor(server, config)

    def create_skill(self, name: str, goal: SkillGoal) -> Skill:
        """Return one of the thesis's skills. Raises InputError."""
        return make_thesis_skill(name, goal, self._server.skills, len(self._config.bay_azimuths))

    def create_finish_skill(self, result: SkillResult) -> Skill:
        """Return the skill that moves the arm to its rest pose; a held object stays in the gripper."""
        return ThesisFinishSkill(result)

    def extend_context(self, context: SkillContext) -> SkillContext:
        """Return the inputs of a skill's step with the thesis's constants and the speed of the first joint."""
        return ThesisContext(
            **{one.name: getattr(context, one.name) for one in fields(context)},
            thesis=self._config,
            floor_height=self._server.floor_height,
            joint1_velocity=self.executor.joint1_velocity,
        )


class ThesisSkillExecutor:
    """Executes the requests of the thesis's skills.

    Args:
        server: The skill server; its robot has a gripper.
        config: Constants, topics and timeouts.

    Attributes:
        joint1_velocity: Velocity of the first joint [rad/s].
        is_holding: Whether the fingers measure an object: always false.
    """

    def __init__(self, server: SkillServerContext, config: ThesisSkillMethodConfig) -> None:
        node, chain = server.node, server.arm.chain
        gripper_name = server.semantics.group(server.group or None).gripper
        if gripper_name is None:
            raise ConfigError("there is no gripper", location=node.full_name, valid="a group with one")
        gripper = server.semantics.gripper(gripper_name)
        joints, finger_openings = chain.joints, dict(zip(gripper.joints, gripper.open, strict=True))
        self.is_holding = False
        self._node, self._on_finished, self._config = node, server.on_result, config
        self._joint_scale = ThesisJointScale.from_chain(chain)
        self._joints, self._finger_openings = joints, finger_openings
        self._positions, self._velocities = np.full(len(joints), np.nan), np.full(len(joints), np.nan)
        self._finger_positions = np.full(len(finger_openings), np.nan)
        self._request: SkillRequest | None = None
        self._deadline_ns = 0
        self._goal = np.zeros(0)
        self._has_sent_position = False
        self._finger_progress: tuple[float, int] = (0.0, 0)
        self._velocity_publisher = node.publisher(config.velocity_topic, msg.JointVelocities)
        self._position_publisher = node.publisher(config.position_topic, msg.JointPositions)
        self._gripper_publisher = node.publisher(config.gripper_topic, msg.JointPositions)
        self._image_publisher = node.publisher("discs/image/compressed", msg.CompressedImage)
        self._camera = CameraSubscriber(
            node, CameraTopics(config.image_topic, config.info_topic, config.depth_topic), self._on_image
        )
        node.subscribe("joint_states", msg.JointState, self._on_joints)

    @property
    def joint1_velocity(self) -> float:
        """Velocity of the first joint [rad/s]; infinite if it is unknown."""
        return float(self._velocities[0]) if np.isfinite(self._velocities[0]) else np.inf

    # -- requests ------------------------------------------------------------------------------------------------------
    def start(self, request: SkillRequest) -> SkillResult | None:
        """Start a request; returns the result if it is done at once, else ``on_finished`` is called later."""
        if isinstance(request, ThesisStopRequest):
            self._publish_velocities(np.zeros(len(self._joints)))
            return SUCCESS
        self._request, self._has_sent_position = request, False
        timeout = {ThesisDetectRequest: self._config.image_timeout, DelayRequest: 0.0}.get(
            type(request), self._config.motion_timeout
        )
        if isinstance(request, DelayRequest):
            timeout = request.duration
        self._deadline_ns = self._node.now_ns + round(timeout * 1e9)
        if isinstance(request, ThesisDetectRequest):
            self._camera.set_enabled()
            self._publish_velocities(np.array([request.speed, *[0.0] * (len(self._joints) - 1)]))
        elif isinstance(request, ThesisJointRequest):
            self._camera.set_enabled(False)
            self._goal = np.zeros(0)
        elif isinstance(request, GripperRequest):
            self._goal = np.clip(0.5 * (1e3 * request.opening) / _MAX_FINGER_OPENING_MM, 0.0, 1.0) * np.array(
                list(self._finger_openings.values())
            )
            self._finger_progress = (np.inf, self._node.now_ns)
            self._gripper_publisher.publish(_joint_positions_msg(tuple(self._finger_openings), self._goal, "m"))
        return None

    def cancel(self, result: SkillResult) -> None:
        """Stop all joints, as the thesis's `stop`."""
        if self._request is not None:
            self._publish_velocities(np.zeros(len(self._joints)))
            self._finish(result)

    def update(self) -> None:
        """Run one cycle of the loops in GelenkPos and GreiferPos."""
        request = self._request
        if request is None:
            return
        if self._is_finished(request):
            self._finish(SUCCESS)
        elif self._node.now_ns >= self._deadline_ns:
            self._finish(SUCCESS if isinstance(request, DelayRequest) else self._timeout_result(request))

    def _is_finished(self, request: SkillRequest) -> bool:
        if isinstance(request, ThesisJointRequest):
            return bool(np.isfinite(self._positions).all()) and self._control_joints(request)
        return isinstance(request, GripperRequest) and self._are_fingers_done()

    def _timeout_result(self, request: SkillRequest) -> SkillResult:
        if isinstance(request, ThesisDetectRequest):
            stale_topic = self._camera.find_stale_topic(self._deadline_ns - round(self._config.image_timeout * 1e9))
            cause, message = next((one for one in (self._camera.error, stale_topic) if one[0]), ("", "no image"))
            return SkillResult(SkillResultCode.CAMERA_SILENT, f"{cause}: {message}" if cause else message)
        self._publish_velocities(np.zeros(len(self._joints)))
        joint_words = "the fingers" if isinstance(request, GripperRequest) else "the joints"
        return SkillResult(
            SkillResultCode.TIMED_OUT,
            f"{joint_words} did not reach their goal within {self._config.motion_timeout:g} s",
        )

    def _finish(self, result: SkillResult) -> None:
        self._request = None
        self._on_finished(result)

    # -- joints --------------------------------------------------------------------------------------------------------
    def _control_joints(self, request: ThesisJointRequest) -> bool:
        if not self._goal.size:
            self._goal = self._joint_scale.to_joints(request.degrees, self._positions)
        if self._has_sent_position:
            return float(np.abs(self._velocities).sum()) < _MAX_STOPPED_SPEED
        if _JOINT_CONTROLLER.is_at_goal(self._goal, self._positions, self._velocities):
            self._publish_velocities(np.zeros(len(self._joints)))
            self._position_publisher.publish(_joint_positions_msg(self._joints, self._goal, "rad"))
            self._has_sent_position = True
        else:
            self._publish_velocities(_JOINT_CONTROLLER.compute_velocities(self._goal, self._positions))
        return False

    def _are_fingers_done(self) -> bool:
        error_sum = float(np.abs(self._goal - self._finger_positions).sum())
        if error_sum < 2.0 * _FINGER_TOLERANCE:
            return True
        min_error, progress_ns = self._finger_progress
        if error_sum < min_error - _FINGER_TOLERANCE:
            self._finger_progress = (error_sum, self._node.now_ns)
            return False
        return self._node.now_ns - progress_ns >= _FINGER_STALL_TIMEOUT_NS

    def _publish_velocities(self, velocities: Array) -> None:
        values = [
            msg.JointValue(joint_uri=name, unit="s^-1 rad", value=float(speed))
            for name, speed in zip(self._joints, velocities, strict=True)
        ]
        self._velocity_publisher.publish(msg.JointVelocities(velocities=values))

    def _on_joints(self, message: Any) -> None:
        positions = dict(zip(message.name, message.position, strict=False))
        velocities = dict(zip(message.name, message.velocity, strict=False))
        self._positions = np.array([positions.get(name, np.nan) for name in self._joints])
        self._velocities = np.array([velocities.get(name, np.nan) for name in self._joints])
        self._finger_positions = np.array([positions.get(name, np.nan) for name in self._finger_openings])

    # -- images --------------------------------------------------------------------------------------------------------
    def _on_image(self, image: CameraImage) -> None:
        request = self._request
        if not isinstance(request, ThesisDetectRequest) or image.depth is None:
            return
        thesis = self._config
        discs = detect_discs_thesis(
            image.image, image.depth, thesis.disc_config(request.polarity, request.mode), thesis.camera
        )
        detections = _to_detections(discs)
        if request.max_place_distance > 0.0:
            places = detect_discs_thesis(image.image, image.depth, thesis.disc_config("black", "pair"), thesis.camera)
            detections = detections_on_places(detections, _to_detections(places), request.max_place_distance)
        if request.is_published:
            self._image_publisher.publish(
                jpeg_to_msg(draw_thesis_discs(image.image, discs), image.frame_id, image.time_ns)
            )
        self._finish(SkillResult(detections=detections))

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the request under way as plain data."""
        return {
            "request": self._request,
            "deadline_ns": self._deadline_ns,
            "goal": self._goal,
            "has_sent_position": self._has_sent_position,
            "finger_progress": self._finger_progress,
            "positions": self._positions,
            "velocities": self._velocities,
            "finger_positions": self._finger_positions,
            "camera": self._camera.save_state(),
            "is_camera_enabled": self._camera.is_enabled,
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned."""
        self._request, self._deadline_ns, self._goal = saved["request"], saved["deadline_ns"], saved["goal"]
        self._has_sent_position, self._finger_progress = saved["has_sent_position"], saved["finger_progress"]
        self._positions, self._velocities, self._finger_positions = (
            saved["positions"],
            saved["velocities"],
            saved["finger_positions"],
        )
        self._camera.load_state(saved["camera"])
        self._camera.set_enabled(saved["is_camera_enabled"])


def _joint_positions_msg(names: tuple[str, ...], values: Array, unit: str) -> Any:
    pairs = zip(names, values, strict=True)
    return msg.JointPositions(positions=[msg.JointValue(joint_uri=n, unit=unit, value=float(v)) for n, v in pairs])


def _to_detections(discs: list[ThesisDisc]) -> tuple[TargetDetection, ...]:
    rows = [(one.position.tolist(), one) for one in discs]
    return tuple(TargetDetection((x, y, z), one.diameter, one.distance) for (x, y, z), one in rows)
