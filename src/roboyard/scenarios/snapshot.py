"""Saves and restores the whole state of a run: scenario, models, bus with all nodes, metrics, recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from roboyard.errors import ConfigError, InputError, RoboyardError
from roboyard.scenarios.provenance import collect_provenance
from roboyard.scenarios.resolve import ResolvedScenario
from roboyard.scenarios.run import Run
from roboyard.scenarios.snapshot_file import read_snapshot_file, write_snapshot_file
from roboyard.simulation import ModelOptions

_CHANGEABLE_KEYS = ("summary", "duration", "criteria", "stop_when", "video", "variants", "provenance")
"""Keys of a scenario that do not change what happens up to a moment: they may be others when a run goes on."""


def save_snapshot(run: Run, scenario: ResolvedScenario, path: Path) -> None:
    """Save ``run`` as it stands between two instants.

    Args:
        run: Standing still: between two calls of `Run.advance_to`.
        scenario: What it was built from.
        path: Of the file; one that is there is replaced.

    Raises:
        RunError: a node cannot be saved (it is named), or the file cannot be written.
        RecordingError: the recording so far cannot be read.
    """
    simulation = run.simulation
    handles = simulation.models
    state = {
        "scenario": _essential_config(scenario),
        "made": collect_provenance().metadata(),
        "models": [
            (name, handle.namespace, handle.model, simulation.world.addresses(name).entry.T_world_model, handle.robot)
            for name, handle in handles.items()
        ],
        "robots": list(run.robots),
        "bus": run.bus.save_state(),
        "metrics": run.evaluation.save_state(),
        "has_drawn": simulation.renderer.is_used,
        "recorder": run.recorder.save_state() if run.recorder is not None else None,
    }
    write_snapshot_file(path, state)


def restore_snapshot(run: Run, scenario: ResolvedScenario, path: Path) -> tuple[str, ...]:
    """Restore the state of a saved run in a run that was just assembled.

    Args:
        run: At time zero, with all its nodes.
        scenario: What it was built from.
        path: Of the state's file.

    Returns:
        Reasons why the run may not continue byte for byte (another processor, other versions), in words.

    Raises:
        InputError: the file is no state, is damaged, or belongs to another scenario.
    """
    state = read_snapshot_file(path)
    try:
        _check_scenario(state["scenario"], _essential_config(scenario))
        _restore_models(run, state)
        run.bus.load_state(state["bus"])
        run.evaluation.load_state(state["metrics"])
        run.simulation.renderer.is_used |= bool(state["has_drawn"])
        if run.recorder is not None:
            if state["recorder"] is None:
                raise InputError("was saved by a run without a recording", valid="run without a recording")
            run.recorder.load_state(state["recorder"])
    except RoboyardError as error:
        location = f"{path}, {error.location}" if error.location else f"{path}"
        raise InputError(error.message, location=location, valid=error.valid) from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(
            f"is no state of a run: {type(error).__name__}: {error}", location=str(path), valid="what a run saved"
        ) from error
    run.start_ns = run.bus.now_ns
    current = collect_provenance().metadata()
    changed = sorted(key for key in current | state["made"] if current.get(key) != state["made"].get(key))
    return tuple(f"the state was saved with another {key}: its continuation may differ in last bits" for key in changed)


def _essential_config(scenario: ResolvedScenario) -> dict[str, Any]:
    """What of a scenario decides what happens, with scripts written out."""
    data = scenario.to_dict()
    return {key: value for key, value in data.items() if key not in _CHANGEABLE_KEYS}


def _check_scenario(saved: dict[str, Any], current: dict[str, Any]) -> None:
    changed = [key for key in dict.fromkeys([*saved, *current]) if saved.get(key) != current.get(key)]
    if changed:
        raise ConfigError(
            f"belongs to another scenario: {', '.join(changed)} differ",
            valid="the scenario that saved it; " + ", ".join(_CHANGEABLE_KEYS[:5]) + " may differ",
        )


def _restore_models(run: Run, state: dict[str, Any]) -> None:
    """Take out what had gone, and put in what had come, in the same order."""
    saved_models = {name: entry for name, *entry in state["models"]}
    for name in [name for name in run.simulation.models if name not in saved_models]:
        run.remove(name)
    for name, (namespace, model, T_world_model, robot) in saved_models.items():
        if name not in run.simulation.models:
            run.simulation.add(model, name, T_world_model, namespace, ModelOptions(robot=robot))
    if list(run.simulation.models) != list(saved_models) or list(run.robots) != state["robots"]:
        raise InputError(
            f"holds the models {', '.join(saved_models)}", valid=f"here are {', '.join(run.simulation.models)}"
        )
