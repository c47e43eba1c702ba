"""Driving an arm by hand: the tip follows, no limit is passed, nothing is touched, and it always stops."""

from __future__ import annotations

import numpy as np
import pytest

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.manipulation import box_obstacle
from roboyard.manipulation.collision import CoalChecker
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.servo import (
    ArmServo,
    ArmServoConfig,
    ServoCode,
    braking_motion,
    condition_number,
    joint_velocities_for_twist,
)
from roboyard.manipulation.time_parameterization import JointLimits
from roboyard.messages import msg

Z = np.array([0.0, 0.0, 1.0])


def make_scene(robot: str, **options: object) -> PlanningScene:
    return PlanningScene.create(load_joint_groups(robot), margin=0.005, **options)  # type: ignore[arg-type]


def sample_regular_state(scene: PlanningScene) -> np.ndarray:
    """A state far from singular positions and limits."""
    rng = np.random.default_rng(5)
    for q in scene.chain.sample_positions(rng, 2000):
        limit_distance = np.minimum(q - scene.chain.lower, scene.chain.upper - q).min()
        if limit_distance > 0.4 and condition_number(scene.chain, q, 0.3) < 15.0 and scene.distance(q, 0.2) > 0.012:
            return np.array(q)
    raise AssertionError("there is none")


def make_servo(scene: PlanningScene, q: np.ndarray, speed: float = 1.0, **settings: float) -> ArmServo:
    limits = JointLimits.from_chain(scene.chain)
    rate = np.where(np.isfinite(limits.acceleration), limits.acceleration, 2.0 * limits.velocity)
    return ArmServo(scene.chain, speed * np.asarray(limits.velocity), np.asarray(rate), q, ArmServoConfig(**settings))


@pytest.mark.parametrize("robot", ["iisy", "scitos_arm", "youbot_arm"])
def test_tip_follows_a_twist(robot: str) -> None:
    scene = make_scene(robot)
    q = sample_regular_state(scene)
    servoing = make_servo(scene, q)
    start = scene.chain.forward(q)[:3, 3]
    twist = np.array([0.0, 0.0, -0.02, 0.0, 0.0, 0.0])
    for _ in range(150):
        found = servoing.step_twist(scene, twist, Z, 0.02)
        assert found.code == ServoCode.NO_WARNING, found.message
    displacement = scene.chain.forward(found.position)[:3, 3] - start
    J = scene.chain.jacobian(found.position)
    np.testing.assert_allclose(J[:3] @ found.velocity, twist[:3], atol=1e-3)
    assert abs(displacement[0]) < 1e-3
    assert abs(displacement[1]) < 1e-3
    assert -0.06 - 1e-3 < displacement[2] < -0.04  # it takes a while to get as fast


def test_joint_velocities_of_six_and_five_joints_follow_the_twist() -> None:
    rng = np.random.default_rng(2)
    for robot, joints in (("iisy", 6), ("scitos_arm", 5)):
        scene = make_scene(robot)
        q = sample_regular_state(scene)
        J = scene.chain.jacobian(q)
        for _ in range(20):
            twist = rng.uniform(-0.1, 0.1, 6)
            speeds = joint_velocities_for_twist(scene.chain, q, twist, Z)
            np.testing.assert_allclose(J[:3] @ speeds, twist[:3], atol=1e-6)
            if joints == 6:
                np.testing.assert_allclose(J @ speeds, twist, atol=1e-6)
            # turning about the tool's axis is done as well where the last joint does just that
            axis = scene.chain.forward(q)[:3, 2]
            assert axis @ (J[3:] @ speeds) == pytest.approx(float(axis @ twist[3:]), abs=1e-6)


def test_braking_ends_where_decelerating_joints_stop() -> None:
    position, velocity, rate = np.array([0.1, -0.2, 0.3]), np.array([0.4, -0.3, 0.0]), np.array([0.5, 1.0, 2.0])
    pieces = braking_motion(position, velocity, rate)
    assert sum(length for _, length in pieces) == pytest.approx(0.8)
    rows, length = pieces[-1]
    end = rows[0] + length * rows[1] + length**2 * rows[2]
    np.testing.assert_allclose(end, position + 0.5 * velocity * np.abs(velocity) / rate, atol=1e-12)


@pytest.mark.parametrize("kind", ["twist", "joints"])
@pytest.mark.parametrize("robot", ["iisy", "youbot_arm"])
def test_random_commands_keep_limits_and_avoid_collisions(robot: str, kind: str) -> None:
    """Wild commands, sampled each millisecond; coal has the last word on what is touched."""
    wall = [
        box_obstacle("wall", (0.05, 1.0, 1.0), (0.35, 0.0, 0.4)),
        box_obstacle("floor", (2, 2, 0.02), (0, 0, -0.05)),
    ]
    scene = make_scene(robot, obstacles=wall)
    rng, chain = np.random.default_rng(8), scene.chain
    checker = CoalChecker(scene)
    start = next(q for q in chain.sample_positions(rng, 4000) if checker.signed_distance(q, 0.05)[0] > 0.015)
    servoing = make_servo(scene, start)
    rate, max_velocity = servoing._max_acceleration, servoing._max_velocity
    before, speed = servoing.position.copy(), servoing.velocity.copy()
    closest, dt, codes = 1.0, 0.01, set()
    for k in range(300):
        if k % 60 == 0:
            twist, jog = rng.uniform(-1.0, 1.0, 6), rng.uniform(-2.0, 2.0, chain.dof) * max_velocity
        found = servoing.step_twist(scene, twist, Z, dt) if kind == "twist" else servoing.step_joints(scene, jog, dt)
        codes.add(found.code)
        assert (np.abs(found.velocity) <= max_velocity * (1 + 1e-9)).all()
        assert (np.abs(found.velocity - speed) <= rate * dt * (1 + 1e-9)).all()
        assert chain.is_within_limits(found.position)
        # between set-points the joints change their speeds evenly, but for those that come to stand
        for s in np.arange(0.001, dt, 0.001):
            assert chain.is_within_limits(before + s * speed + 0.5 * s**2 / dt * (found.velocity - speed), 2e-5)
        if k % 15 == 0:
            closest = min(closest, checker.signed_distance(found.position, 0.1)[0])
        before, speed = found.position, found.velocity
    assert closest > 0.002
    assert len(codes) > 1
    for _ in range(400):
        found = servoing.step_joints(scene, np.zeros(chain.dof), dt)
    assert servoing.is_stopped


def test_servo_stops_before_a_wall_and_leaves_it() -> None:
    free = make_scene("iisy")
    q = sample_regular_state(free)
    x, y, z = free.chain.forward(q)[:3, 3]
    out = np.array([x, y, 0.0]) / np.hypot(x, y)
    place = np.array([x, y, z]) + 0.12 * out
    scene = free.with_obstacles([box_obstacle("wall", (0.02, 1.0, 1.0), place, float(np.arctan2(y, x)))])
    servoing = make_servo(scene, q, speed=0.3)
    toward = np.array([*(0.1 * out), 0.0, 0.0, 0.0])
    codes = [servoing.step_twist(scene, toward, Z, 0.01).code for _ in range(500)]
    assert ServoCode.DECELERATE_FOR_COLLISION in codes
    assert codes[-1] == ServoCode.HALT_FOR_COLLISION
    assert servoing.is_stopped
    halted_distance = scene.world_distance(servoing.position)
    assert 0.015 < halted_distance < 0.035
    # it does not tremble: once it stands it stays, since it goes on only when there is more room
    halted_position = servoing.position.copy()
    for _ in range(50):
        servoing.step_twist(scene, toward, Z, 0.01)
    np.testing.assert_array_equal(servoing.position, halted_position)
    for _ in range(100):
        found = servoing.step_twist(scene, -toward, Z, 0.01)
    assert found.code == ServoCode.NO_WARNING
    assert scene.world_distance(servoing.position) > halted_distance + 0.02


def test_servo_slows_towards_a_singularity_only() -> None:
    scene = make_scene("iisy")
    q = sample_regular_state(scene)
    servoing = make_servo(scene, q, speed=0.5)
    x, y, _ = scene.chain.forward(q)[:3, 3]
    out = np.array([x, y, 0.0, 0.0, 0.0, 0.0]) / np.hypot(x, y)
    codes = [servoing.step_twist(scene, 0.2 * out, Z, 0.01).code for _ in range(900)]
    slowed = {ServoCode.DECELERATE_FOR_APPROACHING_SINGULARITY, ServoCode.HALT_FOR_SINGULARITY}
    assert slowed & set(codes) or ServoCode.JOINT_BOUND in codes
    assert condition_number(scene.chain, servoing.position, 0.3) < 1.5 * ArmServoConfig.hard_stop_singularity_threshold
    for _ in range(100):
        found = servoing.step_twist(scene, -0.2 * out, Z, 0.01)
    assert found.code == ServoCode.NO_WARNING
    assert scene.chain.forward(servoing.position)[:3, 3] @ out[:3] < np.hypot(x, y) + 1.0


def test_joint_slows_before_its_limit_while_others_go_on() -> None:
    scene = make_scene("scitos_arm")
    q = np.clip(sample_regular_state(scene), scene.chain.lower + 0.3, scene.chain.upper - 0.3)
    q[4] = scene.chain.upper[4] - 0.1
    servoing = make_servo(scene, q)
    jog = np.array([0.05, 0.0, 0.0, 0.0, 0.3])
    codes = {servoing.step_joints(scene, jog, 0.01).code for _ in range(200)}
    assert ServoCode.JOINT_BOUND in codes
    assert servoing.position[4] <= scene.chain.upper[4]
    assert servoing.position[4] == pytest.approx(scene.chain.upper[4], abs=2e-3)
    assert servoing.position[0] > q[0] + 0.08


def test_arm_within_the_margin_can_leave_the_obstacle() -> None:
    free = make_scene("youbot_arm")
    q = sample_regular_state(free)
    tip = free.chain.forward(q)[:3, 3]
    for wall_distance in np.arange(0.3, 0.0, -0.001):
        scene = free.with_obstacles([box_obstacle("wall", (0.02, 1.0, 1.0), tip + np.array([wall_distance, 0.0, 0.0]))])
        if scene.world_distance(q) < 0.003:
            break
    distance = scene.world_distance(q)
    assert 0.0 < distance < scene.margin
    servoing = make_servo(scene, q)
    for _ in range(60):
        servoing.step_twist(scene, np.array([-0.05, 0.0, 0.0, 0.0, 0.0, 0.0]), Z, 0.02)
    assert scene.world_distance(servoing.position) > distance + 0.02


@pytest.mark.parametrize("robot", ["iisy", "youbot_arm"])
@pytest.mark.parametrize("n_steps", [1, 7, 40])
def test_arm_without_commands_stops_within_its_braking_time(robot: str, n_steps: int) -> None:
    """Whenever commands cease, each joint brakes to rest at once, within its limits, where it was proven to stop."""
    scene = make_scene(robot)
    servo, dt = make_servo(scene, sample_regular_state(scene)), 0.01
    rng = np.random.default_rng(n_steps)
    command = rng.uniform(-1.0, 1.0, scene.chain.dof) * servo._max_velocity
    for _ in range(n_steps):
        servo.step_joints(scene, command, dt)
    assert not servo.is_stopped
    stop_position = servo.position + 0.5 * servo.velocity * np.abs(servo.velocity) / servo._max_acceleration
    braking_time = float((np.abs(servo.velocity) / servo._max_acceleration).max())
    for _ in range(int(np.ceil(braking_time / dt - 1e-9)) + 1):  # one step more for rounding
        speeds = np.abs(servo.velocity)
        servo.brake(dt)
        assert (np.abs(servo.velocity) <= speeds).all()
        assert scene.chain.is_within_limits(servo.position)
    assert servo.is_stopped
    np.testing.assert_allclose(servo.position, stop_position, atol=1e-9)


def test_scaling_of_people_never_raises_a_speed() -> None:
    scene = make_scene("iisy")
    servo = make_servo(scene, sample_regular_state(scene))
    demand = servo.demand_from_joints(0.3 * servo._max_velocity, 0.01)
    for scaling in (0.0, 0.25, 1.0, 2.0):
        scaled = demand.scaled(scaling)
        np.testing.assert_allclose(scaled.velocities, min(scaling, 1.0) * demand.velocities)
        is_slower = scaling < 1.0
        assert (scaled.code in (ServoCode.DECELERATE_FOR_COLLISION, ServoCode.HALT_FOR_COLLISION)) == is_slower


def follow_pose(scene: PlanningScene, servo: ArmServo, T: np.ndarray, n_steps: int, dt: float = 0.01) -> list:
    """Follow a pose target for a number of steps, asserting every limit, and return the set-points."""
    setpoints = []
    before = servo.velocity.copy()
    for _ in range(n_steps):
        setpoint = servo.step(scene, servo.demand_to_pose(T, Z, dt), dt)
        assert scene.chain.is_within_limits(setpoint.position)
        assert (np.abs(setpoint.velocity) <= servo._max_velocity * (1 + 1e-9)).all()
        assert (np.abs(setpoint.velocity - before) <= servo._max_acceleration * dt * (1 + 1e-9)).all()
        before = setpoint.velocity
        setpoints.append(setpoint)
    return setpoints


def nearby_target(scene: PlanningScene, q: np.ndarray, seed: int) -> np.ndarray:
    """The pose (4, 4) of the tool at joint positions near to others."""
    offset = np.random.default_rng(seed).uniform(-0.3, 0.3, scene.chain.dof)
    return np.array(scene.chain.forward(np.clip(q + offset, scene.chain.lower + 0.1, scene.chain.upper - 0.1)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("robot", ["iisy", "scitos_arm", "youbot_arm"])
def test_pose_target_is_reached_within_limits_and_stops_the_arm(robot: str, seed: int) -> None:
    scene = make_scene(robot)
    q = sample_regular_state(scene)
    T, servo = nearby_target(scene, q, seed), make_servo(scene, q, speed=0.5)
    setpoints = follow_pose(scene, servo, T, 400)
    assert servo.is_stopped
    assert (setpoints[-1].code, setpoints[-1].message) == (ServoCode.NO_WARNING, "the pose target is reached")
    reached = scene.chain.forward(servo.position)
    assert np.linalg.norm(reached[:3, 3] - T[:3, 3]) <= servo._config.linear_tolerance
    cosine = (
        0.5 * (np.trace(reached[:3, :3].T @ T[:3, :3]) - 1.0) if scene.chain.dof == 6 else reached[:3, 2] @ T[:3, 2]
    )
    assert np.arccos(min(cosine, 1.0)) <= servo._config.angular_tolerance
    np.testing.assert_array_equal(follow_pose(scene, servo, T, 5)[-1].position, servo.position)


def test_tool_speed_towards_a_pose_target_is_limited() -> None:
    scene = make_scene("iisy")
    q = sample_regular_state(scene)
    T, speeds = nearby_target(scene, q, 1), []
    servo = make_servo(scene, q, max_linear_speed=0.05, max_angular_speed=0.1)
    for setpoint in follow_pose(scene, servo, T, 600):
        twist = scene.chain.jacobian(setpoint.position) @ setpoint.velocity
        speeds.append((np.linalg.norm(twist[:3]), np.linalg.norm(twist[3:])))
    assert servo.is_stopped
    assert (np.max(speeds, axis=0) < (0.052, 0.104)).all()
    assert (np.max(speeds, axis=0) > (0.03, 0.08)).any()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("robot", ["iisy", "scitos_arm", "youbot_arm"])
def test_unreachable_pose_target_ends_in_a_stop_and_says_so(robot: str, seed: int) -> None:
    scene = make_scene(robot)
    q = sample_regular_state(scene)
    T = nearby_target(scene, q, seed)
    T[:3, 3] *= 3.0 / np.linalg.norm(T[:3, 3])
    servo = make_servo(scene, q, speed=0.5)
    last = follow_pose(scene, servo, T, 3000)[-1]
    assert servo.is_stopped
    if last.code in (ServoCode.HALT_FOR_SINGULARITY, ServoCode.JOINT_BOUND):
        assert last.message.startswith("stopped before the pose target: ")
        assert last.message.endswith("rad remain")
    else:
        assert last.code == ServoCode.HALT_FOR_COLLISION
        assert last.message


def test_arm_stretched_by_an_unreachable_target_follows_the_next_target() -> None:
    scene = make_scene("iisy")
    q = sample_regular_state(scene)
    reachable, servo = nearby_target(scene, q, 0), make_servo(scene, q, speed=0.5)
    unreachable = reachable.copy()
    unreachable[:3, 3] *= 5.0
    assert follow_pose(scene, servo, unreachable, 1500)[-1].code == ServoCode.HALT_FOR_SINGULARITY
    assert follow_pose(scene, servo, reachable, 1500)[-1].message == "the pose target is reached"


def test_restored_servo_continues_to_the_pose_target_as_the_uninterrupted_one() -> None:
    scene = make_scene("iisy")
    q = sample_regular_state(scene)
    T = nearby_target(scene, q, 2)
    T[:3, 3] *= 5.0  # the stall detection is a part of the state
    uninterrupted = make_servo(scene, q)
    expected_setpoints = follow_pose(scene, uninterrupted, T, 400)
    for n_steps in (3, 60, 140):
        first, second = make_servo(scene, q), make_servo(scene, np.zeros(scene.chain.dof))
        follow_pose(scene, first, T, n_steps)
        second.load_state(first.save_state())
        continued = follow_pose(scene, second, T, 400 - n_steps)
        for expected, setpoint in zip(expected_setpoints[n_steps:], continued, strict=True):
            assert setpoint.position.tobytes() == expected.position.tobytes()
            assert (setpoint.code, setpoint.message) == (expected.code, expected.message)


@pytest.mark.parametrize("wall_distance", [0.06, 0.1])
def test_wall_before_the_pose_target_stops_the_arm(wall_distance: float) -> None:
    free = make_scene("iisy")
    q = sample_regular_state(free)
    T = np.array(free.chain.forward(q))
    x, y, z = T[:3, 3]
    out = np.array([x, y, 0.0]) / np.hypot(x, y)
    place = np.array([x, y, z]) + wall_distance * out
    scene = free.with_obstacles([box_obstacle("wall", (0.02, 1.0, 1.0), place, float(np.arctan2(y, x)))])
    T[:3, 3] += 0.12 * out
    servo = make_servo(scene, q, speed=0.3)
    last = follow_pose(scene, servo, T, 600)[-1]
    assert servo.is_stopped
    assert last.code == ServoCode.HALT_FOR_COLLISION
    assert scene.world_distance(servo.position) > 0.01


def test_servo_codes_are_those_of_the_message() -> None:
    assert {one.name: int(one) for one in ServoCode} == {
        name: getattr(msg.moveit_msgs.ServoStatus, name) for name in dir(msg.moveit_msgs.ServoStatus) if name.isupper()
    }
