"""Observations of senses by laws and by independent computations; exchanged parts."""

from __future__ import annotations

import math
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from roboyard.geometry import SE3
from roboyard.gym import ArmReach, Joints, JointTargets, ReadRobot, Scan, Upright
from roboyard.messages import msg

ROVER = ReadRobot.of("rover")


@given(
    ranges=arrays(np.float32, 720, elements=st.sampled_from([0.1, 1.0, 7.5, 30.0, np.inf, -np.inf, np.nan])),
    beams=st.integers(1, 720),
)
def test_scan_sectors_keep_the_nearest_range(ranges: np.ndarray, beams: int) -> None:
    sense = Scan(beams=beams)
    observed = np.asarray(sense.reader(ROVER)([SimpleNamespace(ranges=ranges)]))
    is_known = np.where(np.isnan(ranges), np.inf, np.maximum(ranges, 0.0))
    assert observed.shape == sense.space(ROVER).shape
    assert observed.min() == is_known.min()
    sector = np.searchsorted(np.arange(beams) * 720 // beams, np.arange(720), side="right") - 1
    assert (observed[sector] <= is_known).all()
    assert np.isin(observed, is_known).all()


@given(st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=4).filter(lambda q: np.linalg.norm(q) > 0.1))
def test_up_is_the_vertical_in_the_body(quaternion: list[float]) -> None:
    T_world_body = SE3(np.array(quaternion) / np.linalg.norm(quaternion))
    w, x, y, z = T_world_body.quaternion
    up = Upright().reader(ROVER)([msg.Imu(orientation=msg.Quaternion(x, y, z, w))])
    np.testing.assert_allclose(up, T_world_body.rotation_matrix().T @ [0.0, 0.0, 1.0], atol=1e-12)


@given(st.lists(st.floats(-100.0, 100.0), min_size=4, max_size=4))
def test_continuous_joints_are_observed_within_a_turn(angles: list[float]) -> None:
    sense = Joints()
    names = list(reversed(ROVER.moving))
    observed = np.asarray(sense.reader(ROVER)([SimpleNamespace(name=names, position=np.array(angles))]))
    assert (np.abs(observed) <= math.pi).all()
    np.testing.assert_allclose(np.exp(1j * observed[::-1]), np.exp(1j * np.array(angles)), atol=1e-9)


def test_arm_commanded_to_the_floor_collides() -> None:
    home = dict(zip((f"joint_{k}" for k in range(1, 7)), (0.0, -1.5708, 1.5708, 0.0, 1.5708, 0.0), strict=True))
    env = ArmReach(command=JointTargets(home, span=2.0))
    env.reset(seed=0, options={"goal": (-0.4, 0.0, 0.6)})
    for _ in range(60):
        _, reward, over, _, info = env.step([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
        if over:
            break
    env.close()
    assert (over, info["collided"], info["success"]) == (True, True, False)
    assert reward < -9.0


def test_missing_gymnasium_is_an_error_with_advice() -> None:
    code = "import sys; sys.modules['gymnasium'] = None; import roboyard.gym"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "roboyard.gym needs the extra 'gym'" in done.stderr
    assert "pip install 'roboyard[gym]'" in done.stderr


def test_import_of_the_room_is_cheap() -> None:
    code = "import sys, roboyard.gym; print(sorted({'mujoco', 'numba', 'scipy', 'rosbags'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
