"""Reading groups from a file: our YAML, or an SRDF as MoveIt has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from roboyard.config import load, parameter
from roboyard.config.wording import did_you_mean
from roboyard.description import Model
from roboyard.errors import ConfigError, RoboyardError
from roboyard.geometry import SE3
from roboyard.kinematics.chain import build_chain
from roboyard.manipulation.groups.guessing import neighbours, pair
from roboyard.manipulation.groups.model import Gripper, Group, Groups, Reason, Tool

_ROBOT = "link of the robot"


@dataclass(frozen=True)
class ToolFile:
    """A tool of a group."""

    link: str | None = parameter(None, doc=f"{_ROBOT}; the group's tip unless given")
    xyz: tuple[float, float, float] = parameter((0.0, 0.0, 0.0), unit="m", doc="where it is on the link")
    rpy: tuple[float, float, float] = parameter((0.0, 0.0, 0.0), unit="rad", doc="how it is turned")


@dataclass(frozen=True)
class GroupFile:
    """A group."""

    base: str = parameter(doc=f"{_ROBOT} in whose frame poses are")
    tip: str = parameter(doc=f"{_ROBOT} or frame that is the tool")
    joints: tuple[str, ...] = parameter((), doc="those between that are free; all unless given")
    tool_axis: tuple[float, float, float] = parameter((0.0, 0.0, 1.0), doc="in which tools approach, in their frames")
    tools: dict[str, ToolFile] = parameter(factory=dict, doc="further tools")
    poses: dict[str, tuple[float, ...]] = parameter(factory=dict, doc="named positions of its joints [rad or m]")
    gripper: str | None = parameter(None, doc="the one it carries")
    start: str | None = parameter(None, doc="the pose that joints begin in whose description says nothing")

    def __post_init__(self) -> None:
        if sum(x * x for x in self.tool_axis) < 1e-12:
            raise ConfigError("is no direction", location="tool_axis", valid="three numbers, not all zero")


@dataclass(frozen=True)
class GripperFile:
    """A gripper."""

    joints: tuple[str, ...] = parameter(doc="that are commanded; mimic joints follow")
    closed: tuple[float, ...] = parameter(doc="their positions with the fingers together")
    open: tuple[float, ...] = parameter(doc="their positions when it is open")
    width: tuple[float, float] = parameter(unit="m", low=0.0, doc="between the fingers, closed and open")
    links: tuple[str, ...] = parameter((), doc="that may touch what is held")
    force: float | None = parameter(None, unit="N", low=0.0, doc="greatest between the fingers")

    def __post_init__(self) -> None:
        if not self.joints or not len(self.joints) == len(self.closed) == len(self.open):
            raise ConfigError(
                f"{len(self.joints)} joints, {len(self.closed)} closed and {len(self.open)} open positions",
                valid="as many of each, and at least one",
            )
        if self.width[0] >= self.width[1] or self.closed[0] == self.open[0]:
            raise ConfigError("does not open", location="width", valid="closed, then open; the first joint moves")


@dataclass(frozen=True)
class RatesFile:
    """What a joint can do that descriptions do not tell."""

    acceleration: float | None = parameter(None, low=1e-6, doc="greatest [rad/s² or m/s²]")
    jerk: float | None = parameter(None, low=1e-6, doc="greatest [rad/s³ or m/s³]")


@dataclass(frozen=True)
class AllowedFile:
    """Pairs of links that need not be looked at for collisions. Links joined by a joint need not be named."""

    adjacent: tuple[tuple[str, str], ...] = parameter((), doc="joined")
    never: tuple[tuple[str, str], ...] = parameter((), doc="never near each other")
    always: tuple[tuple[str, str], ...] = parameter((), doc="always touching")
    stated: tuple[tuple[str, str], ...] = parameter((), doc="may touch")


@dataclass(frozen=True)
class GroupsFile:
    """What `groups.yaml` may say."""

    extends: Path | None = parameter(None, doc="another such file: what is not said here is as there")
    groups: dict[str, GroupFile] = parameter(factory=dict, doc="by name; the first is taken unless another is named")
    grippers: dict[str, GripperFile] = parameter(factory=dict, doc="by name")
    joints: dict[str, RatesFile] = parameter(factory=dict, doc="by name")
    gains: dict[str, dict[str, float]] = parameter(
        factory=dict, doc="of joints' servos: {elbow: {pos_kp: 50, pos_kd: 2}}, as in ros2_control"
    )
    allowed_collisions: AllowedFile = parameter(AllowedFile(), doc="pairs of links, by reason")

    def laid_over(self, other: GroupsFile) -> GroupsFile:
        """This file, added to another one; pairs of both count."""
        pairs = {
            one.name: (*getattr(other.allowed_collisions, one.name), *getattr(self.allowed_collisions, one.name))
            for one in fields(AllowedFile)
        }
        return replace(
            self,
            extends=None,
            groups={**other.groups, **self.groups},
            grippers={**other.grippers, **self.grippers},
            joints={**other.joints, **self.joints},
            gains={**other.gains, **self.gains},
            allowed_collisions=AllowedFile(**pairs),
        )


def load_groups(path: Path, model: Model) -> Groups:
    """The groups of a robot from a file.

    Args:
        path: A YAML file, or an SRDF (``.srdf``, ``.srdf.xacro``).
        model: The robot that it speaks of.

    Raises:
        ConfigError: the YAML says something it may not, or names what the robot has not; with file, key and what
            would be right.
        DescriptionError: the same of an SRDF.
    """
    if any(suffix.lower() == ".srdf" for suffix in path.suffixes):
        from roboyard.manipulation.groups.srdf import load_srdf

        return load_srdf(path, model)
    said = load(GroupsFile, path)
    if said.extends is not None:
        other = path.parent / said.extends
        if not other.is_file():
            raise ConfigError(
                f"there is no file {said.extends}", location=f"{path}, extends", valid="a path beside this file"
            )
        base = load(GroupsFile, other)
        if base.extends is not None:
            raise ConfigError(
                f"{said.extends} extends another one", location=f"{path}, extends", valid="the file of that one"
            )
        said = said.laid_over(base)
    return made_of(said, model, str(path))


def made_of(said: GroupsFile, model: Model, where: str) -> Groups:
    """The groups that a file's content means. Raises ConfigError."""
    joints = [joint.name for joint in model.joints]
    links = [link.name for link in model.links]
    for name in said.joints:
        _known("joint", name, joints, f"{where}, joints")
    for name, gains in said.gains.items():
        _known("joint", name, joints, f"{where}, gains")
        for key, value in gains.items():
            if not key.startswith(("pos_", "vel_")) or not value >= 0.0:
                raise ConfigError(
                    f"{key} is {value:g}", location=f"{where}, gains.{name}", valid="pos_… or vel_…, zero or larger"
                )
    for name, gripper in said.grippers.items():
        for joint in gripper.joints:
            _known("joint", joint, joints, f"{where}, grippers.{name}.joints")
        for link in gripper.links:
            _known("link", link, links, f"{where}, grippers.{name}.links")
    allowed: dict[tuple[str, str], Reason] = {}
    for reason, pairs in _by_reason(said.allowed_collisions):
        for one, other in pairs:
            for link in (one, other):
                _known("link", link, links, f"{where}, allowed_collisions.{reason}")
            allowed[pair(one, other)] = reason
    groups = {name: _group(name, one, said, model, f"{where}, groups.{name}") for name, one in said.groups.items()}
    return Groups(
        model,
        groups,
        {
            name: Gripper(name, one.joints, one.closed, one.open, one.width, one.links, one.force)
            for name, one in said.grippers.items()
        },
        {name: one.acceleration for name, one in said.joints.items() if one.acceleration is not None},
        {name: one.jerk for name, one in said.joints.items() if one.jerk is not None},
        said.gains,
        {**neighbours(model), **allowed},
    )


def _by_reason(said: AllowedFile) -> Iterable[tuple[Reason, tuple[tuple[str, str], ...]]]:
    return (
        ("adjacent", said.adjacent),
        ("never", said.never),
        ("always", said.always),
        ("stated", said.stated),
    )


def _group(name: str, said: GroupFile, file: GroupsFile, model: Model, where: str) -> Group:
    tools = {
        tool: Tool(one.link if one.link is not None else said.tip, SE3.from_xyz_rpy(one.xyz, one.rpy))
        for tool, one in said.tools.items()
    }
    if said.gripper is not None:
        _known("gripper", said.gripper, list(file.grippers), f"{where}.gripper")
    try:
        chain = build_chain(model, said.base, said.tip, joints=said.joints or None)
        for one in tools.values():
            build_chain(model, said.base, one.link, joints=chain.joints)
    except RoboyardError as error:
        raise ConfigError(error.message, location=where, valid=error.valid) from None
    if said.joints and chain.joints != said.joints:
        raise ConfigError("joints are not in their order", location=f"{where}.joints", valid=", ".join(chain.joints))
    check_poses(chain.joints, said.poses, chain.lower.tolist(), chain.upper.tolist(), f"{where}.poses")
    if said.start is not None and said.start not in said.poses:
        valid = ", ".join(said.poses) or "a pose"
        raise ConfigError(f"there is no pose {said.start!r}", location=f"{where}.start", valid=valid)
    poses = dict(said.poses)
    return Group(name, said.base, said.tip, chain.joints, said.tool_axis, tools, poses, said.gripper, said.start)


def check_poses(
    joints: tuple[str, ...],
    poses: Mapping[str, tuple[float, ...]],
    lower: list[float],
    upper: list[float],
    where: str,
) -> None:
    """Raises ConfigError where a named pose has another number of values, or one beyond its joint's limits."""
    for pose, values in poses.items():
        if len(values) != len(joints):
            raise ConfigError(
                f"has {len(values)} values", location=f"{where}.{pose}", valid=f"one each of {', '.join(joints)}"
            )
        for joint, value, low, high in zip(joints, values, lower, upper, strict=True):
            if not low - 1e-6 <= value <= high + 1e-6:
                raise ConfigError(
                    f"{joint} at {value:g} is beyond its limits",
                    location=f"{where}.{pose}",
                    valid=f"{low:g} to {high:g}",
                )


def _known(kind: str, name: str, names: list[str], where: str) -> None:
    if name not in names:
        raise ConfigError(
            f"no {kind} {name!r}{did_you_mean(name, names)}", location=where, valid=f"{kind}s: {', '.join(names)}"
        )
