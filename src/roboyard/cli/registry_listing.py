"""Listing of registries for ``roboyard list``: every kind of thing that a file or a command can name."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from roboyard.config.registry import Registry

Entry = dict[str, Any]
"""One row: name, summary, and what else ``--json`` tells."""


class RegistryKind(enum.StrEnum):
    """Kinds of things that can be listed."""

    ROBOTS = "robots"
    WORLDS = "worlds"
    DEVICES = "devices"
    OBJECTS = "objects"
    SCENARIOS = "scenarios"
    NODES = "nodes"
    SENSORS = "sensors"
    PLANNERS = "planners"
    CONTROLLERS = "controllers"
    LAYERS = "layers"
    FAULTS = "faults"
    TERRAINS = "terrains"
    TREE_NODES = "tree-nodes"
    WORLD_SOURCES = "world-sources"
    RUNS = "runs"


SHOWN_WITHOUT_KIND = (RegistryKind.ROBOTS, RegistryKind.WORLDS, RegistryKind.SCENARIOS, RegistryKind.RUNS)
"""Kinds that ``roboyard list`` shows when none is named."""


def list_entries_of(kind: RegistryKind) -> list[Entry]:
    """Return all entries of a kind, sorted as the registry sorts them.

    Raises:
        ConfigError: An installed package does not offer what its entry point says.
    """
    match kind:
        case RegistryKind.ROBOTS | RegistryKind.WORLDS | RegistryKind.DEVICES | RegistryKind.OBJECTS:
            return _file_entries(kind)
        case RegistryKind.SCENARIOS:
            return _file_entries(kind)
        case RegistryKind.NODES:
            from roboyard.bringup.catalog import NODES

            return list(_registry_entries(NODES))
        case RegistryKind.SENSORS:
            return _sensor_entries()
        case RegistryKind.PLANNERS:
            from roboyard.navigation.planning.choice import PLANNERS

            return list(_registry_entries(PLANNERS))
        case RegistryKind.CONTROLLERS:
            from roboyard.navigation.controllers.choice import CONTROLLERS

            return list(_registry_entries(CONTROLLERS))
        case RegistryKind.LAYERS:
            from roboyard.navigation.driving.costmap_settings import LayerSettings

            return list(_typed_entries(LayerSettings))
        case RegistryKind.FAULTS:
            from roboyard.scenarios.faults.schema import FaultConfig

            return list(_typed_entries(FaultConfig))
        case RegistryKind.TERRAINS:
            from roboyard.grids.terrain import TERRAIN_TYPES

            return [_entry(name, generate) for name, (generate, _) in TERRAIN_TYPES.items()]
        case RegistryKind.TREE_NODES:
            from roboyard.behavior import Factory

            factory = Factory(plugins=True)
            return [_entry(name, factory.find(name)) for name in factory.names]
        case RegistryKind.WORLD_SOURCES:
            from roboyard.bringup.catalog import WORLD_SOURCES

            return list(_registry_entries(WORLD_SOURCES))
        case RegistryKind.RUNS:
            from roboyard.bus.socket import live_runs

            return [{"name": run.name, "summary": f"pid {run.pid}", "pid": run.pid} for run in live_runs()]


def _file_entries(kind: RegistryKind) -> list[Entry]:
    from roboyard.bringup import catalog

    registry: Mapping[str, catalog.CatalogEntry] = {
        RegistryKind.ROBOTS: catalog.ROBOTS,
        RegistryKind.WORLDS: catalog.WORLDS,
        RegistryKind.DEVICES: catalog.DEVICES,
        RegistryKind.OBJECTS: catalog.OBJECTS,
        RegistryKind.SCENARIOS: catalog.SCENARIOS,
    }[kind]
    return [
        {"name": one.name, "summary": one.summary, "path": str(one.path), "origin": one.origin}
        for one in registry.values()
    ]


def _registry_entries(registry: Registry[Any]) -> Iterator[Entry]:
    """Give name and first line of the docstring of each object; read from its source, so that nothing is imported."""
    from roboyard.bringup.node_documentation import read_docstring

    points = registry.entry_points()
    for name in registry.names():
        if name not in points:
            yield _entry(name, registry[name])
            continue
        docstring = read_docstring(points[name].module, points[name].attr)
        summary = _first_line(registry[name].__doc__ if docstring is None else docstring)
        yield {"name": name, "summary": summary, "class": points[name].value}


def _typed_entries(union: Any) -> Iterator[Entry]:
    """Give the types that the key ``type`` of a configuration may name, from a union of classes."""
    for cls in get_args(union):
        hint = get_type_hints(cls)["type"]
        for name in get_args(hint) if get_origin(hint) is Literal else ():
            yield _entry(str(name), cls)


def _sensor_entries() -> list[Entry]:
    from roboyard.description.sensor_presets import PRESETS
    from roboyard.description.sensor_reader import plugin_sensor_kinds

    presets = [{"name": name, "summary": one.summary, "kind": one.kind} for name, one in PRESETS.items()]
    plugin_kinds = sorted(plugin_sensor_kinds())
    return presets + [{"name": name, "summary": "sensor of another package", "kind": name} for name in plugin_kinds]


def _entry(name: str, documented: Any) -> Entry:
    return {"name": name, "summary": _first_line(inspect.getdoc(documented))}


def _first_line(text: str | None) -> str:
    return (text or "").strip().split("\n", 1)[0].partition("  in:")[0].rstrip()
