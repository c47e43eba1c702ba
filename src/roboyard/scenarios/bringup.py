"""Brings up a robot that has no package of ours: which nodes run, with which parameters, by its description alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from roboyard.description import ModelLoader
from roboyard.description.joint_interfaces import command_modes
from roboyard.description.model import Model
from roboyard.errors import DescriptionError
from roboyard.scenarios.arms import arm_nodes
from roboyard.scenarios.gains import with_gains
from roboyard.scenarios.plugins import Part, map_plugins
from roboyard.scenarios.plugins.controllers.joints import GRIPPER
from roboyard.scenarios.plugins.differential import drive_parameters, two_sided
from roboyard.scenarios.plugins.joints import trajectories
from roboyard.scenarios.plugins.odometry import OdometryPlace
from roboyard.scenarios.plugins.speeds import Speeds
from roboyard.scenarios.robot_groups import groups_beside
from roboyard.scenarios.robot_package import Limits, NodeSpec, RobotFile, RobotPackage
from roboyard.scenarios.wheels import find_wheels

_JOINT_RATE = 50.0
_JOINT_KEYS = ("joints", "left_joints", "right_joints", "left_steered_joints", "right_steered_joints")


def derive_package(path: Path, arguments: dict[str, str], *, repair: bool = False) -> RobotPackage:
    """The package of a bare description.

    Raises:
        DescriptionError: it cannot be read, or its drive makes no sense.
    """
    loader = ModelLoader(path)
    return replace(package_of(loader.load(arguments, repair=repair), path, arguments), loader=loader)


def package_of(model: Model, path: Path, arguments: dict[str, str] | None = None) -> RobotPackage:
    """The package of a model that is loaded already.

    Its plugins say what drives it and what commands its joints; without any, its wheels and its position interfaces do.
    """
    part = map_plugins(model)
    root = model.roots[0].name if model.roots else "base_link"
    movable = [joint for joint in model.joints if joint.type != "fixed"]
    findings = list(part.findings)
    if not part.drives:
        try:
            drive = find_wheels(model)
        except DescriptionError as error:  # a guess that does not work out keeps no robot from running
            drive = None
            findings.append(f"no drive is guessed: {error.message}")
        if drive is not None:
            place = OdometryPlace({"base_frame": root}, {}, None, None, True)
            guess = two_sided(drive_parameters(drive), drive.axle_x, Speeds(), place, drive.findings)
            part = replace(part, nodes={**guess.nodes, **part.nodes}, drives=True)
            findings += drive.findings
        elif movable and not part.groups:
            findings.append("no drive was found: the robot stands where it is put")
    arms, stated = arm_nodes(model, groups_beside(path), part)
    part = replace(part, nodes={**part.nodes, **arms})
    part, added = _with_trajectories(model, part)
    nodes: dict[str, NodeSpec] = {}
    if movable:
        nodes["joint_states"] = NodeSpec(
            "joint_states", {"rate": min(max(_JOINT_RATE, part.joint_rate or 0.0), 1000.0)}
        )
    nodes["robot_state"] = NodeSpec("robot_state")
    nodes |= _apart(part.nodes, findings)
    refused = _refused(with_gains(model, {**stated, **part.gains}), nodes)
    file = RobotFile(
        description=Path(path.name),
        summary=f"{model.name}, brought up by its description",
        arguments=arguments or {},
        base_frame=part.base_frame or root,
        limits=part.limits or Limits(),
        base=part.base if any(link.name == root for link in model.roots) else None,
        gains=part.gains,
        topics=part.topics,
        nodes=nodes,
        default=tuple(name for name in nodes if name not in (*part.standby, *refused)),
    )
    return RobotPackage(model.name, file, path, (*findings, *added, *refused.values()))


def _with_trajectories(model: Model, part: Part) -> tuple[Part, tuple[str, ...]]:
    """A group of the joints whose interfaces say that they take positions, unless something commands them already."""
    taken = {joint for group in part.groups for joint in group.joints}
    for spec in part.nodes.values():
        for value in spec.parameters.values():
            taken.update(value if isinstance(value, list) and all(isinstance(one, str) for one in value) else ())
    declared = {i.joint for i in model.interfaces if any(mode == "position" for mode, _, _ in i.commands)}
    free = tuple(
        joint.name
        for joint in model.joints
        if joint.name in declared and joint.name not in taken and "position" in command_modes(model, joint.name)
    )
    if not free or "joint_trajectory_controller" in part.nodes:
        return part, ()
    finding = f"joint_trajectory_controller holds the joints that take positions: {', '.join(free)}"
    nodes = {**part.nodes, "joint_trajectory_controller": trajectories(free)}
    return replace(part, nodes=nodes), (finding,)


def _apart(nodes: dict[str, NodeSpec], findings: list[str]) -> dict[str, NodeSpec]:
    """Truth under another name than the wheels' odometry, if both would be told as ``odom``."""
    if "odometry" not in nodes or "odometry_truth" not in nodes:
        return nodes
    spec = nodes["odometry_truth"]
    remap = spec.remap if spec.remap.get("odom", "odom") != "odom" else {"odom": "odom_truth"}
    if remap is not spec.remap:
        findings.append("the true pose is on odom_truth, since the wheels' odometry is on odom")
    return {**nodes, "odometry_truth": replace(spec, remap=remap, parameters={**spec.parameters, "publish_tf": False})}


def _refused(model: Model, nodes: dict[str, NodeSpec]) -> dict[str, str]:
    """Nodes that command joints in a way their interfaces do not offer, and why: they stay down."""
    found: dict[str, str] = {}
    for name, spec in nodes.items():
        if name in ("joint_states", "robot_state", "odometry", "arbiter"):
            continue
        mode: Any = spec.parameters.get("mode", "position" if spec.use == GRIPPER else "velocity")
        for key in _JOINT_KEYS:
            bad = [joint for joint in spec.parameters.get(key, ()) if mode not in command_modes(model, joint)]
            if bad:
                found[name] = f"{name} stays down: joint {bad[0]} takes no {mode} commands"
    return found
