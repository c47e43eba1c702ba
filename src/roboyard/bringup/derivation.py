"""Derive a robot's configuration from a bare description: drive, joint controllers, arms, limits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from roboyard.bringup.catalog import NODES
from roboyard.bringup.plugins.controllers import GRIPPER_NODE
from roboyard.bringup.plugins.drives import differential_drive_mapping
from roboyard.bringup.plugins.joints import trajectory_node_config
from roboyard.bringup.plugins.mapping import map_plugins
from roboyard.bringup.plugins.odometry import OdometryOutput
from roboyard.bringup.plugins.plugin_mapping import PluginMapping
from roboyard.bringup.robot_config import RobotConfig, RobotNodeConfig, RobotPackage
from roboyard.bringup.servo_gains import JointServoGains, with_servo_gains
from roboyard.bringup.wheel_geometry import infer_differential_drive
from roboyard.control.drive_config import DriveConfig, DriveLimits
from roboyard.description import Model, ModelLoader
from roboyard.description.joint_interfaces import command_modes
from roboyard.errors import ConfigError, DescriptionError
from roboyard.manipulation import load_groups

_GROUPS_FILE_SUFFIXES = (".groups.yaml", ".srdf", ".srdf.xacro")
"""What a description's name ends in, instead of its own suffixes, where its groups lie beside it."""

_MIN_JOINT_STATE_RATE = 50.0


def derive_package(path: Path, arguments: dict[str, str], *, repair: bool = False) -> RobotPackage:
    """Derive the package of a bare description.

    Raises:
        DescriptionError: It cannot be read, or its drive is invalid.
    """
    loader = ModelLoader(path)
    return replace(derive_package_from_model(loader.load(arguments, repair=repair), path, arguments), loader=loader)


def derive_package_from_model(model: Model, path: Path, arguments: dict[str, str] | None = None) -> RobotPackage:
    """Derive the package of a loaded model.

    The simulator plugins of the model determine its drive and the nodes that command its joints; without plugins, its
    wheels and its position interfaces do.
    """
    mapping = map_plugins(model)
    root_link = model.roots[0].name if model.roots else "base_link"
    movable_joints = [joint for joint in model.joints if joint.type != "fixed"]
    findings = list(mapping.findings)
    if not mapping.is_drive:
        try:
            inferred = infer_differential_drive(model)
        except (ConfigError, DescriptionError) as error:  # a guess that does not work out keeps no robot from running
            inferred = None
            findings.append(f"no drive is guessed: {error.message}")
        if inferred is not None:
            drive, finding = inferred
            odometry = OdometryOutput({"base_frame": root_link}, {}, None, None, True)
            inferred_drive = differential_drive_mapping(drive, DriveLimits(), odometry, (finding,))
            mapping = replace(mapping, nodes={**inferred_drive.nodes, **mapping.nodes}, is_drive=True, drive=drive)
            findings.append(finding)
        elif movable_joints and not mapping.command_groups:
            findings.append("no drive was found: the robot stands where it is put")
    arm_node_configs, declared_gains = derive_arm_nodes(model, find_groups_file(path), mapping)
    mapping = replace(mapping, nodes={**mapping.nodes, **arm_node_configs})
    mapping, trajectory_findings = _add_trajectory_node(model, mapping)
    nodes: dict[str, RobotNodeConfig] = {}
    if movable_joints:
        nodes["joint_states"] = RobotNodeConfig(
            "joint_states", {"rate": min(max(_MIN_JOINT_STATE_RATE, mapping.min_joint_state_rate or 0.0), 1000.0)}
        )
    nodes["robot_state"] = RobotNodeConfig("robot_state")
    nodes |= _rename_ground_truth_odometry(mapping.nodes, findings)
    rejected = _find_unsupported_nodes(
        with_servo_gains(model, {**declared_gains, **mapping.gains}), nodes, mapping.drive
    )
    config = RobotConfig(
        description=Path(path.name),
        summary=f"{model.name}, brought up by its description",
        xacro_args=arguments or {},
        base_frame=mapping.base_frame or root_link,
        drive=mapping.drive,
        limits=mapping.limits or DriveLimits(),
        gains=mapping.gains,
        topics=mapping.topics,
        nodes=nodes,
        autostart=tuple(name for name in nodes if name not in (*mapping.inactive_nodes, *rejected)),
    )
    all_findings = (*findings, *trajectory_findings, *rejected.values())
    return RobotPackage(model.name, config, path, all_findings, node_registry=NODES)


def _add_trajectory_node(model: Model, mapping: PluginMapping) -> tuple[PluginMapping, tuple[str, ...]]:
    """Add a trajectory node for the joints that take positions and that no other node commands."""
    commanded = {joint for group in mapping.command_groups for joint in group.joints}
    if mapping.drive is not None:
        commanded.update((*mapping.drive.wheel_joints, *mapping.drive.steering_joints))
    for spec in mapping.nodes.values():
        for value in spec.parameters.values():
            commanded.update(value if isinstance(value, list) and all(isinstance(one, str) for one in value) else ())
    position_joints = {i.joint for i in model.interfaces if any(mode == "position" for mode, _, _ in i.commands)}
    uncommanded = tuple(
        joint.name
        for joint in model.joints
        if joint.name in position_joints
        and joint.name not in commanded
        and "position" in command_modes(model, joint.name)
    )
    if not uncommanded or "joint_trajectory_controller" in mapping.nodes:
        return mapping, ()
    finding = f"joint_trajectory_controller holds the joints that take positions: {', '.join(uncommanded)}"
    nodes = {**mapping.nodes, "joint_trajectory_controller": trajectory_node_config(uncommanded)}
    return replace(mapping, nodes=nodes), (finding,)


def _rename_ground_truth_odometry(nodes: dict[str, RobotNodeConfig], findings: list[str]) -> dict[str, RobotNodeConfig]:
    """Rename the topic of ground-truth odometry where the odometry of the wheels is published as ``odom`` too."""
    if "odometry" not in nodes or "odometry_truth" not in nodes:
        return nodes
    node_config = nodes["odometry_truth"]
    remap = node_config.remap if node_config.remap.get("odom", "odom") != "odom" else {"odom": "odom_truth"}
    if remap is not node_config.remap:
        findings.append("the true pose is on odom_truth, since the wheels' odometry is on odom")
    return {
        **nodes,
        "odometry_truth": replace(node_config, remap=remap, parameters={**node_config.parameters, "publish_tf": False}),
    }


def _find_unsupported_nodes(
    model: Model, nodes: dict[str, RobotNodeConfig], drive: DriveConfig | None
) -> dict[str, str]:
    """Return the reasons, by node, why nodes are not started: the interfaces of their joints offer no such commands."""
    reasons: dict[str, str] = {}
    for name, node_config in nodes.items():
        if name in ("joint_states", "robot_state", "odometry", "arbiter"):
            continue
        mode: Any = node_config.parameters.get("mode", "position" if node_config.type == GRIPPER_NODE else "velocity")
        joints = [*node_config.parameters.get("joints", ())]
        if name == "drive" and drive is not None:
            joints += drive.wheel_joints
        unsupported = [joint for joint in joints if mode not in command_modes(model, joint)]
        if unsupported:
            reasons[name] = f"{name} stays down: joint {unsupported[0]} takes no {mode} commands"
    return reasons


def find_groups_file(description: Path) -> Path | None:
    """Return the file of joint groups beside a description: for ``arm.v2.urdf`` that of ``arm.v2`` or of ``arm``."""
    parts = description.name.split(".")
    names = (".".join(parts[:count]) for count in range(max(1, len(parts) - 1), 0, -1))
    candidates = (description.with_name(name + suffix) for name in names for suffix in _GROUPS_FILE_SUFFIXES)
    return next((candidate for candidate in candidates if candidate.is_file()), None)


_TRAJECTORY_PARAMETERS: dict[str, Any] = {"command_lead_time": 0.01, "path_tolerance": 0.1, "start_tolerance": 0.05}


def derive_arm_nodes(
    model: Model, groups_file: Path | None, mapping: PluginMapping
) -> tuple[dict[str, RobotNodeConfig], dict[str, JointServoGains]]:
    """Derive the nodes of arms, by name, and return them with the servo gains that the file of joint groups states.

    Node ``arm`` follows trajectories of the first group, nodes with the names of the groups those of the others;
    ``move_group`` plans for the first. Where a plugin of the description already commands the joints of a group, its
    node is used.

    Args:
        model: Description of the robot.
        groups_file: File of joint groups; None where there is none.
        mapping: Nodes of the description's plugins.

    Raises:
        ConfigError, DescriptionError: As `load_groups`.
    """
    if groups_file is None:
        return {}, {}
    joint_groups = load_groups(groups_file, model)
    nodes: dict[str, RobotNodeConfig] = {}
    for number, group in enumerate(joint_groups.groups.values()):
        commanding_nodes = (
            name for name, spec in mapping.nodes.items() if set(group.joints) <= set(spec.parameters.get("joints", ()))
        )
        name = next(commanding_nodes, "arm" if number == 0 else group.name)
        if name not in mapping.nodes:
            nodes[name] = RobotNodeConfig("joint_trajectory", {"joints": list(group.joints), **_TRAJECTORY_PARAMETERS})
        if number == 0:
            nodes["move_group"] = RobotNodeConfig("move_group", {"controller": f"{name}/follow_joint_trajectory"})
    return nodes, {name: dict(gains) for name, gains in joint_groups.gains.items()}
