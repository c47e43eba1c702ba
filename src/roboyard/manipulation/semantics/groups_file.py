"""Files of joint groups: reading YAML or SRDF, and writing YAML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from roboyard.config import load, parameter
from roboyard.config.wording import did_you_mean
from roboyard.description import Model
from roboyard.errors import ConfigError, RoboyardError
from roboyard.geometry import SE3
from roboyard.kinematics.chain import build_chain
from roboyard.manipulation.semantics.planning_groups import (
    AllowedCollisionReason,
    GripperSpec,
    PlanningGroup,
    SemanticDescription,
    ToolFrame,
    adjacent_pairs,
    sorted_pair,
)

_ROBOT_LINK_TEXT = "link of the robot"


@dataclass(frozen=True)
class ToolFrameConfig:
    """A tool frame of a group."""

    link: str | None = parameter(None, doc=f"{_ROBOT_LINK_TEXT}; default: the group's tip")
    xyz: tuple[float, float, float] = parameter((0.0, 0.0, 0.0), unit="m", doc="position on the link")
    rpy: tuple[float, float, float] = parameter((0.0, 0.0, 0.0), unit="rad", doc="orientation on the link")


@dataclass(frozen=True)
class PlanningGroupConfig:
    """A planning group."""

    base: str = parameter(doc=f"{_ROBOT_LINK_TEXT} in whose frame poses are given")
    tip: str = parameter(doc=f"{_ROBOT_LINK_TEXT} or frame of the tool")
    joints: tuple[str, ...] = parameter((), doc="free joints between them; default: all")
    tool_axis: tuple[float, float, float] = parameter(
        (0.0, 0.0, 1.0), doc="direction in which tools approach an object, in their frames"
    )
    tools: dict[str, ToolFrameConfig] = parameter(factory=dict, doc="further tools")
    poses: dict[str, tuple[float, ...]] = parameter(factory=dict, doc="named positions of its joints [rad or m]")
    gripper: str | None = parameter(None, doc="name of the gripper that it carries")
    default_pose: str | None = parameter(None, doc="pose in which joints start if the description states no position")

    def __post_init__(self) -> None:
        if sum(x * x for x in self.tool_axis) < 1e-12:
            raise ConfigError("is no direction", location="tool_axis", valid="three numbers, not all zero")


@dataclass(frozen=True)
class GripperConfig:
    """A gripper."""

    joints: tuple[str, ...] = parameter(doc="commanded joints; mimic joints follow")
    closed: tuple[float, ...] = parameter(doc="their positions with the fingers together")
    open: tuple[float, ...] = parameter(doc="their positions when it is open")
    opening_range: tuple[float, float] = parameter(
        unit="m", low=0.0, doc="distance between the fingers, closed and open"
    )
    links: tuple[str, ...] = parameter((), doc="links that may touch the grasped object")
    force: float | None = parameter(None, unit="N", low=0.0, doc="maximum force between the fingers")

    def __post_init__(self) -> None:
        if not self.joints or not len(self.joints) == len(self.closed) == len(self.open):
            raise ConfigError(
                f"{len(self.joints)} joints, {len(self.closed)} closed and {len(self.open)} open positions",
                valid="as many of each, and at least one",
            )
        if self.opening_range[0] >= self.opening_range[1] or self.closed[0] == self.open[0]:
            raise ConfigError(
                "does not open", location="opening_range", valid="closed, then open; the first joint moves"
            )


@dataclass(frozen=True)
class JointRatesConfig:
    """Limits of a joint that descriptions do not state."""

    acceleration: float | None = parameter(None, low=1e-6, doc="maximum [rad/s² or m/s²]")
    jerk: float | None = parameter(None, low=1e-6, doc="maximum [rad/s³ or m/s³]")


@dataclass(frozen=True)
class AllowedCollisionsConfig:
    """Pairs of links that are not checked for collisions. Links that a joint connects need not be named."""

    adjacent: tuple[tuple[str, str], ...] = parameter((), doc="connected by a joint")
    never: tuple[tuple[str, str], ...] = parameter((), doc="never near each other")
    always: tuple[tuple[str, str], ...] = parameter((), doc="always in contact")
    user: tuple[tuple[str, str], ...] = parameter((), doc="permitted to touch")


@dataclass(frozen=True)
class SemanticDescriptionConfig:
    """Content of `groups.yaml`."""

    extends: Path | None = parameter(None, doc="another such file, which this one overrides")
    groups: dict[str, PlanningGroupConfig] = parameter(factory=dict, doc="by name; the first is the default")
    grippers: dict[str, GripperConfig] = parameter(factory=dict, doc="by name")
    joints: dict[str, JointRatesConfig] = parameter(factory=dict, doc="by name")
    gains: dict[str, dict[str, float]] = parameter(
        factory=dict, doc="of joints' servos: {elbow: {pos_kp: 50, pos_kd: 2}}, as in ros2_control"
    )
    allowed_collisions: AllowedCollisionsConfig = parameter(AllowedCollisionsConfig(), doc="pairs of links, by reason")

    def merge_onto(self, base_config: SemanticDescriptionConfig) -> SemanticDescriptionConfig:
        """Return the content of another file, overridden by this one; pairs of links of both count."""
        pairs = {
            one.name: (*getattr(base_config.allowed_collisions, one.name), *getattr(self.allowed_collisions, one.name))
            for one in fields(AllowedCollisionsConfig)
        }
        return replace(
            self,
            extends=None,
            groups={**base_config.groups, **self.groups},
            grippers={**base_config.grippers, **self.grippers},
            joints={**base_config.joints, **self.joints},
            gains={**base_config.gains, **self.gains},
            allowed_collisions=AllowedCollisionsConfig(**pairs),
        )


def load_groups(path: Path, model: Model) -> SemanticDescription:
    """Load the semantic description of a robot from a file.

    Args:
        path: A YAML file, or an SRDF (``.srdf``, ``.srdf.xacro``).
        model: Model of the robot.

    Raises:
        ConfigError: the YAML says something it may not, or names what the robot has not; with file, key and what
            would be right.
        DescriptionError: the same of an SRDF.
    """
    if any(suffix.lower() == ".srdf" for suffix in path.suffixes):
        from roboyard.manipulation.semantics.srdf import load_srdf

        return load_srdf(path, model)
    config = load(SemanticDescriptionConfig, path)
    if config.extends is not None:
        base_file = path.parent / config.extends
        if not base_file.is_file():
            raise ConfigError(
                f"there is no file {config.extends}", location=f"{path}, extends", valid="a path beside this file"
            )
        base_config = load(SemanticDescriptionConfig, base_file)
        if base_config.extends is not None:
            raise ConfigError(
                f"the file {config.extends} extends a file, too",
                location=f"{path}, extends",
                valid="a file that extends none",
            )
        config = config.merge_onto(base_config)
    return build_semantics(config, model, str(path))


def build_semantics(config: SemanticDescriptionConfig, model: Model, location: str) -> SemanticDescription:
    """Build the semantic description from the content of a file. Raises ConfigError."""
    joints = [joint.name for joint in model.joints]
    links = [link.name for link in model.links]
    for name in config.joints:
        _check_known("joint", name, joints, f"{location}, joints")
    for name, gains in config.gains.items():
        _check_known("joint", name, joints, f"{location}, gains")
        for key, value in gains.items():
            if not key.startswith(("pos_", "vel_")) or not value >= 0.0:
                raise ConfigError(
                    f"{key} is {value:g}", location=f"{location}, gains.{name}", valid="pos_… or vel_…, zero or larger"
                )
    for name, gripper in config.grippers.items():
        for joint in gripper.joints:
            _check_known("joint", joint, joints, f"{location}, grippers.{name}.joints")
        for link in gripper.links:
            _check_known("link", link, links, f"{location}, grippers.{name}.links")
    allowed: dict[tuple[str, str], AllowedCollisionReason] = {}
    for reason, pairs in _pairs_by_reason(config.allowed_collisions):
        for one, other in pairs:
            for link in (one, other):
                _check_known("link", link, links, f"{location}, allowed_collisions.{reason}")
            allowed[sorted_pair(one, other)] = reason
    groups = {
        name: _build_group(name, one, config, model, f"{location}, groups.{name}")
        for name, one in config.groups.items()
    }
    return SemanticDescription(
        model,
        groups,
        {
            name: GripperSpec(name, one.joints, one.closed, one.open, one.opening_range, one.links, one.force)
            for name, one in config.grippers.items()
        },
        {name: one.acceleration for name, one in config.joints.items() if one.acceleration is not None},
        {name: one.jerk for name, one in config.joints.items() if one.jerk is not None},
        config.gains,
        {**adjacent_pairs(model), **allowed},
    )


def _pairs_by_reason(
    config: AllowedCollisionsConfig,
) -> Iterable[tuple[AllowedCollisionReason, tuple[tuple[str, str], ...]]]:
    return (
        ("adjacent", config.adjacent),
        ("never", config.never),
        ("always", config.always),
        ("user", config.user),
    )


def _build_group(
    name: str, config: PlanningGroupConfig, semantics_config: SemanticDescriptionConfig, model: Model, location: str
) -> PlanningGroup:
    tools = {
        tool: ToolFrame(one.link if one.link is not None else config.tip, SE3.from_xyz_rpy(one.xyz, one.rpy))
        for tool, one in config.tools.items()
    }
    if config.gripper is not None:
        _check_known("gripper", config.gripper, list(semantics_config.grippers), f"{location}.gripper")
    try:
        chain = build_chain(model, config.base, config.tip, joints=config.joints or None)
        for one in tools.values():
            build_chain(model, config.base, one.link, joints=chain.joints)
    except RoboyardError as error:
        raise ConfigError(error.message, location=location, valid=error.valid) from None
    if config.joints and chain.joints != config.joints:
        raise ConfigError("joints are not in their order", location=f"{location}.joints", valid=", ".join(chain.joints))
    check_poses(chain.joints, config.poses, chain.lower.tolist(), chain.upper.tolist(), f"{location}.poses")
    if config.default_pose is not None and config.default_pose not in config.poses:
        valid = ", ".join(config.poses) or "a pose"
        raise ConfigError(f"there is no pose {config.default_pose!r}", location=f"{location}.default_pose", valid=valid)
    poses = dict(config.poses)
    return PlanningGroup(
        name, config.base, config.tip, chain.joints, config.tool_axis, tools, poses, config.gripper, config.default_pose
    )


def check_poses(
    joints: tuple[str, ...],
    poses: Mapping[str, tuple[float, ...]],
    lower: list[float],
    upper: list[float],
    location: str,
) -> None:
    """Raise ConfigError if a named pose has a wrong number of values, or a value outside its joint's limits."""
    for pose, values in poses.items():
        if len(values) != len(joints):
            raise ConfigError(
                f"has {len(values)} values", location=f"{location}.{pose}", valid=f"one each of {', '.join(joints)}"
            )
        for joint, value, low, high in zip(joints, values, lower, upper, strict=True):
            if not low - 1e-6 <= value <= high + 1e-6:
                raise ConfigError(
                    f"{joint} at {value:g} is beyond its limits",
                    location=f"{location}.{pose}",
                    valid=f"{low:g} to {high:g}",
                )


def _check_known(kind: str, name: str, names: list[str], location: str) -> None:
    if name not in names:
        raise ConfigError(
            f"no {kind} {name!r}{did_you_mean(name, names)}", location=location, valid=f"{kind}s: {', '.join(names)}"
        )


_WRITTEN_REASONS: tuple[AllowedCollisionReason, ...] = ("never", "always", "user")
_MAX_LINE_LENGTH = 112


def format_groups(semantics: SemanticDescription, title: str) -> str:
    """Return the text of a YAML file, without pairs of adjacent links, which need not be stated."""
    lines = [f"# {title}", "groups:"]
    for group in semantics.groups.values():
        lines += [
            f"  {_quote_name(group.name)}:",
            f"    base: {_quote_name(group.base)}",
            f"    tip: {_quote_name(group.tip)}",
            f"    joints: [{_format_names(group.joints)}]",
            f"    tool_axis: [{_format_numbers(group.tool_axis)}]  # in which the tool approaches, in its own frame",
        ]
        if group.tools:
            lines.append("    tools:")
        for name, tool in group.tools.items():
            pose = f"xyz: [{_format_numbers(tool.T_link_tool.xyz)}], rpy: [{_format_numbers(tool.T_link_tool.rpy)}]"
            lines.append(f"      {_quote_name(name)}: {{link: {_quote_name(tool.link)}, {pose}}}")
        if group.poses:
            lines.append("    poses:")
        lines += [f"      {_quote_name(name)}: [{_format_numbers(values)}]" for name, values in group.poses.items()]
        if group.gripper is not None:
            lines.append(f"    gripper: {_quote_name(group.gripper)}")
        if group.default_pose is not None:
            lines.append(f"    default_pose: {_quote_name(group.default_pose)}")
    if semantics.grippers:
        lines.append("grippers:")
    for gripper in semantics.grippers.values():
        lines += [
            f"  {_quote_name(gripper.name)}:",
            f"    joints: [{_format_names(gripper.joints)}]",
            f"    closed: [{_format_numbers(gripper.closed)}]",
            f"    open: [{_format_numbers(gripper.open)}]",
            f"    opening_range: [{_format_numbers(gripper.opening_range)}]",
            f"    links: [{_format_names(gripper.links)}]",
        ]
        if gripper.force is not None:
            lines.append(f"    force: {gripper.force:g}")
    joints_with_rates = sorted({*semantics.max_acceleration, *semantics.max_jerk})
    if joints_with_rates:
        lines.append("joints:")
    for joint in joints_with_rates:
        rates = {"acceleration": semantics.max_acceleration.get(joint), "jerk": semantics.max_jerk.get(joint)}
        settings = ", ".join(f"{key}: {value:.6g}" for key, value in rates.items() if value is not None)
        lines.append(f"  {_quote_name(joint)}: {{{settings}}}")
    if semantics.gains:
        lines.append("gains:")
    for joint, gains in semantics.gains.items():
        lines.append(f"  {_quote_name(joint)}: {{{', '.join(f'{key}: {value:.6g}' for key, value in gains.items())}}}")
    if any(reason in _WRITTEN_REASONS for reason in semantics.allowed_collisions.values()):
        lines.append("allowed_collisions:")
    for reason in _WRITTEN_REASONS:
        pairs = [pair for pair, pair_reason in semantics.allowed_collisions.items() if pair_reason == reason]
        if pairs:
            lines += [f"  {reason}: [", *_wrap_words(f"[{_format_names(pair)}]," for pair in pairs), "  ]"]
    return "\n".join(lines) + "\n"


def _wrap_words(words: Iterable[str]) -> list[str]:
    lines = ["   "]
    for word in words:
        if len(lines[-1]) + len(word) > _MAX_LINE_LENGTH:
            lines.append("   ")
        lines[-1] += f" {word}"
    return lines


def _quote_name(name: str) -> str:
    """Return a name, in quotes if YAML would read it as another type."""
    is_plain = name.replace("_", "").replace("-", "").isalnum() and name[0].isalpha()
    return name if is_plain and name.lower() not in ("null", "true", "false") else json.dumps(name)


def _format_names(names: Iterable[str]) -> str:
    return ", ".join(map(_quote_name, names))


def _format_numbers(values: Iterable[float]) -> str:
    return ", ".join(f"{float(value):.9g}" for value in values)
