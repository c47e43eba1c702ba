"""Parameter files of ROS nodes, as the nodes of localization and fusion take them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.localization.estimation_harness import EstimationHarness

from roboyard.config.ros_parameters import read_ros_parameters
from roboyard.errors import ConfigError
from roboyard.localization.nodes import AmclNode, EkfNode


def test_ros_parameter_files_are_accepted(tmp_path: Path) -> None:
    two = tmp_path / "nav2.yaml"
    two.write_text(
        "amcl:\n  ros__parameters:\n    alpha1: 0.2\n    max_beams: 30\n    laser_model_type: likelihood_field\n"
        "    set_initial_pose: true\n    initial_pose: {x: 3.0, y: 1.5, z: 0.0, yaw: 0.4}\n    save_pose_rate: 0.5\n"
        "    robot_model_type: nav2_amcl::DifferentialMotionModel\n    laser_importance_factor: 2.0\n"
    )
    node = AmclNode(params_file=str(two), alpha1=0.3)
    assert (
        node.config.filter.alpha1,
        node.config.filter.max_beams,
        node.config.initial_pose_x,
        node.config.initial_pose_yaw,
    ) == (
        0.3,
        30,
        3.0,
        0.4,
    )
    with EstimationHarness(node, "amcl") as harness:
        assert any("laser_importance_factor" in record.msg for record in harness.published("/rosout").messages)
    one = tmp_path / "amcl.yaml"
    one.write_text("odom_model_type: omni-corrected\nodom_alpha5: 0.1\nlaser_z_hit: 0.9\nkld_err: 0.01\nalpha: 3\n")
    old = AmclNode(params_file=str(one))
    assert (
        old.config.filter.robot_model_type,
        old.config.filter.alpha5,
        old.config.filter.z_hit,
        old.config.filter.pf_err,
    ) == (
        "omni-corrected",
        0.1,
        0.9,
        0.01,
    )
    three = tmp_path / "ekf.yaml"
    flags = ", ".join(["true"] * 3 + ["false"] * 12)
    three.write_text(
        f"/**:\n  ros__parameters: {{frequency: 20}}\n/robot/ekf_filter_node:\n  ros__parameters:\n"
        f"    two_d_mode: true\n    odom0: wheel/odom\n    odom0_config: [{flags}]\n    odom0_differential: true\n"
        f"    initial_estimate_covariance: [{', '.join(['1e-9'] * 15)}]\n"
    )
    ekf = EkfNode(params_file=str(three))
    assert ekf.config.filter.initial_estimate_covariance == (1e-9,) * 15  # text in YAML 1.1, numbers in ROS
    assert (ekf.config.frequency, ekf.config.filter.two_d_mode, ekf.parameters()["odom0_differential"]) == (
        20.0,
        True,
        True,
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("other:\n  ros__parameters: {a: 1}\n", "no section for amcl"),
        ("- 1\n", "no mapping"),
        ("a: [\n", "no YAML"),
        ("amcl: {ros__parameters: {alpha1: fast}}\n", "alpha1"),
    ],
    ids=["other_node", "list", "syntax", "wrong_type"],
)
def test_invalid_parameter_files_are_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words):
        AmclNode(params_file=str(path))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_ros_parameters(tmp_path / "none.yaml", ("amcl",))
