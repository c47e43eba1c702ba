"""Legs for tests: chains of random proportions, built from URDF text, and the hexapods of the package."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from roboyard.bringup.legged_robot import load_legged_robot
from roboyard.bringup.robot_loader import load_robot
from roboyard.description import Model, load_model
from roboyard.kinematics import build_chain
from roboyard.walking.leg import Leg
from roboyard.walking.legged_robot import LeggedRobot


def random_leg(rng: np.random.Generator, tmp_path: Path, *, wide: bool = True) -> Leg:
    """A leg of any proportions: mounted anywhere, with offsets beside its plane, its third axis either way round."""

    def triple(values: object) -> str:
        return " ".join(f"{float(x)!r}" for x in np.asarray(values, dtype=float))

    yaw, flip = rng.uniform(-np.pi, np.pi), rng.choice([-1.0, 1.0])
    limit = 3.1 if wide else 1.0
    hip = triple(rng.uniform(-0.3, 0.3, 3)), triple([*rng.uniform(-0.3, 0.3, 2), yaw]), "0 0 1"
    knee = triple([rng.uniform(0.02, 0.1), *rng.uniform(-0.03, 0.03, 2)]), triple([0, 0, rng.uniform(-0.5, 0.5)])
    ankle = triple([rng.uniform(0.05, 0.2), *rng.uniform(-0.03, 0.03, 2)]), triple([0, rng.uniform(-1, 1), 0])
    joints = [hip, (*knee, "0 1 0"), (*ankle, f"0 {flip} 0")]
    text = ['<robot name="legged"><link name="body"/>']
    for k, (xyz, rpy, axis) in enumerate(joints):
        parent = "body" if k == 0 else f"l{k}"
        text.append(
            f'<link name="l{k + 1}"/><joint name="j{k + 1}" type="revolute"><parent link="{parent}"/>'
            f'<child link="l{k + 1}"/><origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
            f'<limit lower="{-limit}" upper="{limit}" effort="5" velocity="5"/></joint>'
        )
    foot = triple([rng.uniform(0.1, 0.3), *rng.uniform(-0.03, 0.03, 2)])
    text.append(
        '<link name="foot"/><joint name="tip" type="fixed"><parent link="l3"/><child link="foot"/>'
        f'<origin xyz="{foot}"/></joint></robot>'
    )
    path = tmp_path / "leg.urdf"
    path.write_text("".join(text))
    return Leg.from_chain("one", build_chain(load_model(path), "body", "foot"))


HEXAPODS = ("akrobat", "lauron")


@cache
def model_named(name: str) -> Model:
    """The description of a robot of ours."""
    package = load_robot(name)
    return load_model(package.description, arguments=package.config.xacro_args)


@cache
def legged_robot_named(name: str) -> LeggedRobot:
    """A robot of ours on its legs."""
    return load_legged_robot(name)
