"""``roboyard list KIND`` prints every registry, with a summary of each entry."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Command

from roboyard.bringup.catalog import DEVICES, NODES, OBJECTS, ROBOTS, SCENARIOS, WORLD_SOURCES, WORLDS
from roboyard.cli.commands.catalog import RegistryKind
from roboyard.navigation.plugins import CONTROLLERS, PLANNERS

REGISTRIES = {
    "robots": ROBOTS, "worlds": WORLDS, "devices": DEVICES, "objects": OBJECTS, "scenarios": SCENARIOS,
    "planners": PLANNERS.names(), "controllers": CONTROLLERS.names(), "world-sources": WORLD_SOURCES.names(),
    "nodes": NODES.names(),
}  # fmt: skip
SOME = {
    "step-planners": {"splitting", "ara-star"},
    "layers": {"obstacles", "voxels", "ranges"},
    "behaviors": {"spin", "back_up", "wait", "escape"},
    "slam": {"graph", "rbpf"},
    "motion-models": {"differential", "omni"},
    "motion-planners": {"rrt_connect", "ompl:RRTConnect"},
    "time-parameterizations": {"jerk_limited", "time_optimal"},
    "laser-models": {"likelihood_field", "beam"},
    "state-estimators": {"ekf", "ukf"},
    "skills": {"look", "align", "pick", "place", "loop"},
    "skill-methods": {"collision_aware", "thesis"},
    "zone-actions": {"stop", "slowdown", "limit", "approach"},
    "faults": {"spawn", "sensor_dropout", "sensor_frozen", "low_friction_area"},
    "gaits": {"metachronal", "ripple", "tripod", "wave"},
    "terrains": {"rough", "stairs"},
    "tree-nodes": {"Sequence", "Sleep", "NavigateToPose"},
    "sensors": {"sick_lms200"},
    "metrics": {"path_length", "sim_time"},
}


@pytest.mark.parametrize("kind", [kind.value for kind in RegistryKind if kind is not RegistryKind.RUNS])
def test_every_kind_lists_its_names_with_summaries(command: Command, kind: str) -> None:
    entries = command("list", kind, "--json").json[kind]
    names = [entry["name"] for entry in entries]
    assert len(set(names)) == len(names)
    assert all(entry["summary"] for entry in entries), [one["name"] for one in entries if not one["summary"]]
    if kind in REGISTRIES:
        assert set(names) == set(REGISTRIES[kind])
    else:
        assert SOME[kind] <= set(names)
    text = command("list", kind).out
    assert all(name in text for name in names)


def test_unknown_kind_is_refused_with_all_kinds(command: Command) -> None:
    result = command("list", "planers")
    assert result.code == 2
    assert "planners" in result.err
