"""Terrain by its type or by the scenario that has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from roboyard.bringup.catalog import SCENARIOS
from roboyard.config import load, yaml_from_data
from roboyard.errors import InputError, UnknownNameError
from roboyard.grids.terrain import TERRAINS, TerrainConfig


def find_terrain(name: str, seed: int | None, overrides: Mapping[str, float]) -> tuple[TerrainConfig, int]:
    """Find a terrain.

    Args:
        name: Type of the terrain, or name or file of a scenario with a terrain.
        seed: Seed of the terrain; None: the scenario's, or 0.
        overrides: Keys of the terrain with other values.

    Returns:
        The terrain and its seed.

    Raises:
        InputError: The scenario has no terrain.
        UnknownNameError: There is no such type or scenario.
        ConfigError: A value is out of range.
    """
    from roboyard.scenarios.loading import load_scenario

    if name in SCENARIOS or Path(name).is_file():
        config = load_scenario(name).config
        if config.terrain is None:
            raise InputError(f"scenario {name} has no terrain", valid="a scenario with the key terrain")
        settings, number = asdict(config.terrain), config.seed if seed is None else seed
    elif name in TERRAINS:
        settings, number = {"type": name}, seed or 0
    else:
        names = ", ".join(TERRAINS.names())
        raise UnknownNameError(f"unknown terrain {name!r}", valid=f"{names}, or a scenario with one")
    stated = {key: value for key, value in {**settings, **overrides}.items() if value is not None}
    return load(TerrainConfig, yaml_from_data(stated)), number
