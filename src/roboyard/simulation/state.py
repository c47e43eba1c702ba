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

VERSION = 5
_SIGNATURE = int(mujoco.mjtState.mjSTATE_INTEGRATION)


def save(simulation: Simulation) -> dict[str, Any]:
    """Everything that decides what comes next: the engine's state, the servos', every sensor's, contacts past, faults.

    Plain data, except for readings that faults of sensors hold back, which are as sensors give them.
    """
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
            name: {sensor.sensor.name: sensor.save_state() for sensor in simulation.sensors(name)}
            for name in simulation.models
        },
        "belts": [[*key, *velocity] for key, velocity in simulation.belts.items()],
        "flesh": simulation.flesh.save_state(),
        "holds": simulation.holds.save_state(),
        "faults": simulation.faults.save_state(),
    }


def load(simulation: Simulation, saved: dict[str, Any]) -> None:
    """Continue from `save`; a state that cannot be taken changes nothing.

    Raises:
        InputError: the state belongs to other models, another step, or another version, or parts of it are missing.
    """
    if not isinstance(saved, dict) or saved.get("version") != VERSION:
        version = saved.get("version") if isinstance(saved, dict) else None
        raise InputError(f"saved state of version {version!r}", valid=f"version {VERSION}")
    if saved.get("models") != list(simulation.models):
        of = ", ".join(map(str, saved.get("models") or ())) or "nothing"
        raise InputError(f"saved state of the models {of}", valid=f"here are {', '.join(simulation.models)}")
    if saved.get("timestep_ns") != simulation.timestep_ns:
        raise InputError(
            f"saved state with a step of {saved.get('timestep_ns')} ns", valid=f"{simulation.timestep_ns} ns"
        )
    before = save(simulation)
    try:
        _take(simulation, saved)
    except (KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        _take(simulation, before)
        what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(f"saved state cannot be read: {what}", valid="what save() gave") from None


def _take(simulation: Simulation, saved: dict[str, Any]) -> None:
    model, data = simulation.model, simulation.data
    physics = np.array(saved["physics"], float)
    if len(physics) != mujoco.mj_stateSize(model, _SIGNATURE):
        raise ValueError("its models are of another build")
    mujoco.mj_setState(model, data, physics, _SIGNATURE)
    servos = simulation.servos
    servos.ints[:, s.MODE] = saved["servo_modes"]
    servos.floats[:] = np.array(saved["servos"], float).reshape(servos.floats.shape)
    for servo in servos.servos.values():
        servos.engage(servo, model)
    simulation.bind_bases()
    simulation.set_steps(int(saved["steps"]))
    simulation.belts = {(model, link): (x, y, z) for model, link, x, y, z in saved["belts"]}
    simulation.flesh.load_state(saved["flesh"])
    simulation.holds.load_state(saved["holds"])
    simulation.faults.load_state(saved["faults"])
    simulation.running.evaluate(simulation.holds.table)
    simulation.watch.restore(tuple(Episode(*values) for values in saved["episodes"]))
    for name in simulation.models:
        for sensor in simulation.sensors(name):
            sensor.load_state(saved["sensors"][name][sensor.sensor.name])
