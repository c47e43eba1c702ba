"""A robot of meshes has the distributed masses and one valid joint for each part."""

import math
from pathlib import Path

import numpy as np
import pytest
from tests.description.mesh_samples import (
    BALL,
    make_box,
    make_cylinder,
)

from roboyard.description import Box, Cylinder, load_model
from roboyard.description.meshes import (
    LinkAttachment,
    combine_mass_properties,
    compute_mass_properties,
    distribute_mass,
    write_robot_urdf,
)
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE3


def test_robot_from_meshes_keeps_mass_and_center_of_mass(tmp_path: Path) -> None:
    parts = {
        "body": make_box(0.4, 0.3, 0.1),
        "wheel": make_cylinder(0.1, 0.05).transformed(SE3.from_xyz_rpy((0.1, 0.2, 0), (1.57, 0, 0))),
    }
    masses = distribute_mass({name: part.volume for name, part in parts.items()}, 5.0, {"wheel": 0.5})
    assert masses == {"body": 4.5, "wheel": 0.5}
    write_robot_urdf(parts, masses, {"wheel": LinkAttachment("continuous", "y")}, tmp_path, "cart", max_triangles=200)
    model = load_model(tmp_path / "cart.urdf")
    assert not model.warnings
    assert model.mass == pytest.approx(5.0)
    joint = model.joint("wheel_joint")
    assert (joint.type, joint.axes[0].xyz) == ("continuous", (0.0, 1.0, 0.0))
    expected = combine_mass_properties(
        [compute_mass_properties(part, mass=masses[name]) for name, part in parts.items()]
    )
    weighted_center = sum(
        link.inertial.mass * (link.T_model_link @ link.inertial.T_link_com.translation) for link in model.links
    )
    body = model.link("body").T_model_link  # the model frame is that of the base, at its center of mass
    shift = compute_mass_properties(parts["body"], mass=1.0).com - body.translation
    np.testing.assert_allclose(weighted_center / 5.0 + shift, expected.com, atol=1e-6)
    assert [type(c.geometry) for link in model.links for c in link.collisions] == [Box, Cylinder]
    assert all(link.visuals[0].geometry.file.is_file() for link in model.links)


def test_invalid_masses_and_joints_are_refused(tmp_path: Path) -> None:
    volumes = {"a": 1.0, "b": 2.0}
    assert distribute_mass(volumes, 3.0, {}) == pytest.approx({"a": 1.0, "b": 2.0})
    for total, stated_masses in ((None, {}), (1.0, {"a": 2.0}), (3.0, {"a": -1.0}), (math.nan, {})):
        with pytest.raises(InputError):
            distribute_mass(volumes, total, stated_masses)
    with pytest.raises(UnknownNameError, match="a, b"):
        distribute_mass(volumes, 1.0, {"c": 0.1})
    parts = {"a": make_box(), "b": BALL, "c": make_box()}
    cyclic_attachments = {"b": LinkAttachment(parent="c"), "c": LinkAttachment(parent="b")}
    with pytest.raises(InputError, match="its own ancestor"):
        write_robot_urdf(parts, dict.fromkeys(parts, 1.0), cyclic_attachments, tmp_path, "ring", max_triangles=100)
    with pytest.raises(UnknownNameError):
        write_robot_urdf(parts, dict.fromkeys(parts, 1.0), {"d": LinkAttachment()}, tmp_path, "ring")
    with pytest.raises(UnknownNameError):
        LinkAttachment("welded")
    with pytest.raises(UnknownNameError):
        LinkAttachment("fixed", "w")
