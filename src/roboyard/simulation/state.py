"""The complete state of a simulation as plain data."""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from roboyard.errors import InputError
from roboyard.simulation import servo_loop as s
from roboyard.simulation.contacts import Episode

if TYPE_CHECKING:
    from roboyard.simulation.engine import Simulation

VERSION = 1
_SIGNATURE = int(mujoco.mjtState.mjSTATE_INTEGRATION)


def save(simulation: Simulation) -> dict[str, Any]:
    """Everything that decides what comes next: the engine's state, the servos', every sensor's, the contact past."""
    model, data = simulation.model, simulation.data
    physics = np.zeros(mujoco.mj_stateSize(model, _SIGNATURE))
    mujoco.mj_getState(model, data, physics, _SIGNATURE)
    servos = simulation.servos
    return {
        "version": VERSION,
        "timestep_ns": simulation.timestep_ns,
        "models": list(simulation.models),
        "steps": simulation.time_ns // simulation.timestep_ns,
        "physics": physics.tolist(),
        "servo_modes": servos.ints[:, s.MODE].tolist(),
        "servos": servos.floats.tolist(),
        "episodes": [list(astuple(episode)) for episode in simulation.contact_episodes()],
        "sensors": {
            name: {sensor.sensor.name: sensor.save() for sensor in simulation.sensors(name)}
            for name in simulation.models
        },
    }


def load(simulation: Simulation, saved: dict[str, Any]) -> None:
    """Continue from `save`.

    Raises:
        InputError: the state belongs to other models, another step, or another version.
    """
    if saved.get("version") != VERSION:
        raise InputError(f"saved state of version {saved.get('version')!r}", valid=f"version {VERSION}")
    if saved["models"] != list(simulation.models):
        raise InputError(
            f"saved state of the models {', '.join(saved['models'])}", valid=f"here are {', '.join(simulation.models)}"
        )
    if saved["timestep_ns"] != simulation.timestep_ns:
        raise InputError(f"saved state with a step of {saved['timestep_ns']} ns", valid=f"{simulation.timestep_ns} ns")
    model, data = simulation.model, simulation.data
    physics = np.array(saved["physics"], float)
    if len(physics) != mujoco.mj_stateSize(model, _SIGNATURE):
        raise InputError("saved state of models of another build")
    mujoco.mj_setState(model, data, physics, _SIGNATURE)
    servos = simulation.servos
    servos.ints[:, s.MODE] = saved["servo_modes"]
    servos.floats[:] = np.array(saved["servos"], float).reshape(servos.floats.shape)
    for servo in servos.servos.values():
        servos.engage(servo, model)
    simulation.set_steps(saved["steps"])
    simulation.running.evaluate()
    simulation.watch.restore(tuple(Episode(*values) for values in saved["episodes"]))
    for name, sensors in saved["sensors"].items():
        for sensor in simulation.sensors(name):
            sensor.load(sensors[sensor.sensor.name])
