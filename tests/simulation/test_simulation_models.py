"""Models that come and go leave the others alone."""

from pathlib import Path

import numpy as np
import pytest
from tests.harness.models import (
    IDENTITY,
    RIDE_HEIGHT,
    free_box,
    ground_plane,
    make_pose,
    make_world,
    room_walls,
    rover_model,
    static_box,
)

from roboyard.description.model import Model
from roboyard.description.sensors import EncoderSpec, Sensor
from roboyard.errors import DescriptionError, InputError, RunError, UnknownNameError
from roboyard.hardware import JointCommand
from roboyard.simulation import ModelOptions, Simulation


def drive_wheels(sim: Simulation, name: str, left: float, right: float) -> None:
    hardware = sim.hardware(name)
    hardware.write(JointCommand("velocity", hardware.joint_names, np.array([left, right, left, right])))


def joints_of(sim: Simulation, name: str) -> np.ndarray:
    body = sim.world.addresses(name).bodies[0]
    q, v = (
        sim.world.model.jnt_qposadr[sim.world.model.body_jntadr[body]],
        sim.world.model.jnt_dofadr[sim.world.model.body_jntadr[body]],
    )
    return np.concatenate(
        [sim.world.data.qpos[q : q + 11], sim.world.data.qvel[v : v + 10], sim.world.data.qacc_warmstart[v : v + 10]]
    )


def test_adding_a_model_keeps_other_states_bit_for_bit() -> None:
    sim = Simulation(make_world(ground_plane(), *room_walls()))
    sim.add(rover_model(), "rover", make_pose(z=RIDE_HEIGHT))
    drive_wheels(sim, "rover", 2.0, 3.0)
    sim.step(300)
    before, ctrl = joints_of(sim, "rover"), sim.world.data.ctrl.copy()
    integrals = sim.world.servos.floats.copy()
    sim.add(free_box(), "crate", make_pose(2.0, 2.0, 0.1))
    np.testing.assert_array_equal(joints_of(sim, "rover"), before)
    np.testing.assert_array_equal(sim.world.data.ctrl, ctrl)
    np.testing.assert_array_equal(sim.world.servos.floats, integrals)
    assert sim.time_ns == 600_000_000


@pytest.mark.parametrize("remove", [False, True])
def test_added_model_moves_as_in_a_world_built_with_it(remove: bool) -> None:
    def start() -> Simulation:
        sim = Simulation(make_world(ground_plane(), *room_walls()))
        if remove:
            sim.add(free_box(), "crate", make_pose(2.0, 2.0, 0.1))
        sim.add(rover_model(), "rover", make_pose(z=RIDE_HEIGHT))
        drive_wheels(sim, "rover", 2.0, 3.0)
        sim.step(300)
        return sim

    changed, other = start(), start()
    if remove:
        changed.remove("crate")
    else:
        changed.add(free_box(), "crate", make_pose(2.0, 2.0, 0.1))
    built = Simulation(make_world(ground_plane(), *room_walls()))
    built.add(rover_model(), "rover", make_pose(z=RIDE_HEIGHT))
    if not remove:
        built.add(free_box(), "crate", make_pose(2.0, 2.0, 0.1))
    state = changed.save_state()
    built.load_state(state)
    changed.step(400)
    built.step(400)
    np.testing.assert_array_equal(joints_of(changed, "rover"), joints_of(built, "rover"))
    # And far from the new thing, the rover's path is that of a rover alone but for the solver's tolerance.
    other.step(400)
    np.testing.assert_allclose(joints_of(changed, "rover")[:11], joints_of(other, "rover")[:11], atol=2e-4)


def test_several_robots_have_independent_states() -> None:
    def path(names: tuple[str, ...]) -> np.ndarray:
        sim = Simulation(make_world(ground_plane()))
        for i, name in enumerate(names):
            sim.add(rover_model(name), name, make_pose(0.0, 3.0 * i, RIDE_HEIGHT), namespace=name)
        drive_wheels(sim, names[0], 2.0, 3.0)
        sim.step(500)
        if len(names) > 1:
            np.testing.assert_allclose(sim.hardware(names[1]).read().velocity, 0.0, atol=1e-6)
        return sim.ground_truth(names[0]).T_world_base.matrix()

    np.testing.assert_allclose(path(("a",)), path(("a", "b")), atol=2e-4)


def test_static_model_can_be_added_and_removed() -> None:
    sim = Simulation(make_world(ground_plane()))
    sim.add(rover_model(), "rover", make_pose(z=RIDE_HEIGHT))
    wall = static_box("wall", (0.1, 2.0, 1.0), make_pose())
    sim.add(wall.model, "wall", make_pose(1.0, 0, 0.5))
    lidar = sim.sensors("rover")[0]
    assert lidar.read().ranges[0, 360] == pytest.approx(0.85, abs=0.01)
    sim.step()
    sim.remove("wall")
    assert lidar.read().ranges[0, 360] == np.inf


def test_model_names_are_unique_and_unknown_ones_refused() -> None:
    sim = Simulation(make_world(ground_plane()))
    handle = sim.add(rover_model(), namespace="one")
    assert (handle.name, handle.namespace) == ("rover", "one")
    with pytest.raises(InputError, match="already a model named 'rover'"):
        sim.add(rover_model())
    with pytest.raises(InputError, match="name"):
        sim.add(rover_model(), "")
    with pytest.raises(UnknownNameError, match="ground_plane, rover"):
        sim.remove("crate")
    with pytest.raises(UnknownNameError):
        sim.ground_truth("crate")
    with pytest.raises(DescriptionError, match="two models"):
        Simulation(make_world(ground_plane(), ground_plane()))


def make_invalid_rover(kind: str) -> Model:
    """A rover that is refused late: when its servos, its sensors or its listeners are made."""
    if kind == "gain":
        return rover_model(parameters=(("vel_kp", "much"),))
    if kind == "sensor":
        return rover_model(
            sensors=(Sensor("e", "encoder", "base_link", IDENTITY, 50.0, "e", "base_link", EncoderSpec(("nose",))),)
        )
    return rover_model()


@pytest.mark.parametrize("kind", ["gain", "sensor", "place", "listener"])
def test_refused_model_leaves_the_world_unchanged(kind: str) -> None:
    def run(disturbed: bool) -> tuple[bytes, ...]:
        sim = Simulation(make_world(ground_plane(), *room_walls()), seed=4)
        sim.add(rover_model(), "rover", make_pose(z=RIDE_HEIGHT))
        drive_wheels(sim, "rover", 2.0, 3.0)
        sim.step(100)
        if disturbed:
            received_models: list[tuple[str, ...]] = []

            def listen() -> None:
                received_models.append(tuple(sim.models))
                if "second" in sim.models and kind == "listener":
                    raise InputError("no such topic")

            stop = sim.on_models_changed(listen)
            with pytest.raises(InputError):
                sim.add(make_invalid_rover(kind), "second", make_pose(x=1e9 if kind == "place" else 1.0))
            stop()
            assert "second" not in sim.models
            assert received_models == [] or received_models[-1] == tuple(sim.models)
            with pytest.raises(UnknownNameError):
                sim.ground_truth("second")
        sim.step(100)
        readings = [repr(sensor.read()).encode() for sensor in sim.sensors("rover")]
        return sim.world.data.qpos.tobytes(), sim.hardware("rover").read().position.tobytes(), *readings

    assert run(disturbed=True) == run(disturbed=False)


def test_unknown_links_and_base_motions_of_model_options_are_refused() -> None:
    sim = Simulation(make_world(ground_plane()))
    with pytest.raises(InputError, match="motion of a base 'flying' .planar, free or None"):
        ModelOptions(base="flying")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="'rover' has no link 'wing'"):
        sim.add(rover_model(), "rover", options=ModelOptions(off_ground_links=frozenset({"wing"})))
    assert list(sim.models) == [model.name for model in sim.environment.models]


@pytest.mark.parametrize("steps", [-1, 1.5, float("nan")])
def test_numbers_of_steps_that_are_none_are_refused(steps: float) -> None:
    sim = Simulation(make_world(ground_plane()))
    with pytest.raises(InputError, match="physics steps .a whole number, 0 or more"):
        sim.step(steps)  # type: ignore[arg-type]
    assert sim.time_ns == 0


def test_listeners_are_called_at_every_change() -> None:
    sim = Simulation(make_world(ground_plane()))
    received_models: list[tuple[str, ...]] = []
    stop = sim.on_models_changed(lambda: received_models.append(tuple(sim.models)))
    sim.add(free_box(), "crate")
    sim.remove("crate")
    stop()
    sim.add(free_box(), "crate")
    assert received_models == [("ground_plane", "crate"), ("ground_plane",)]


def test_diverging_world_is_an_error_with_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sim = Simulation(make_world())
    sim.add(free_box(), "crate")
    sim.world.data.qvel[0] = 1e12
    with pytest.raises(RunError, match="diverged at"):
        sim.step(100)
    assert not list(tmp_path.iterdir())


def test_closed_simulation_is_an_error() -> None:
    sim = Simulation(make_world(ground_plane()))
    sim.add(rover_model(), "rover", make_pose(z=RIDE_HEIGHT))
    sim.step(3)
    hardware, world = sim.hardware("rover"), sim.world
    sim.close()
    sim.close()
    for use in (sim.step, hardware.read, world.save_state, lambda: sim.ground_truth("rover")):
        with pytest.raises(RunError, match="closed"):
            use()
    assert sim.time_ns == 3 * sim.timestep_ns


def test_all_parts_follow_the_simulation_into_its_next_world() -> None:
    sim = Simulation(make_world(ground_plane(), *room_walls()))
    sim.add(rover_model(), "rover", make_pose(z=RIDE_HEIGHT), options=ModelOptions(base="planar"))
    hardware, base, sensors = sim.hardware("rover"), sim.velocity_base("rover"), sim.sensors("rover")
    first_world = sim.world
    sim.add(free_box(), "first", make_pose(-2.0, z=0.1))
    sim.remove("first")
    sim.add(free_box(), "crate", make_pose(2.0, z=0.1))
    assert sim.world is not first_world
    assert sim.hardware("rover") is hardware
    assert sim.velocity_base("rover") is base
    assert sim.sensors("rover") == sensors
    assert all(sensor.context.world is sim.world for sensor in sensors)
    assert base is not None
    base.set_velocity((0.5, 0.0, 0.0), (0.0, 0.0, 0.0))
    sim.step(200)
    assert sim.ground_truth("rover").linear_velocity[0] == pytest.approx(0.5, abs=0.05)
    assert hardware.read().time_ns == sim.time_ns
    assert hardware.read().velocity.min() > 1.0, "its wheels roll"
    assert {reading.time_ns for reading in (sensor.read() for sensor in sensors)} == {sim.time_ns}
    assert sim.visual_scene().model.nbody >= sim.world.model.nbody
