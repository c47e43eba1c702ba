"""Checks a scenario without running it: read it, find everything it names, put it together once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from roboyard.compute import compile_on_demand
from roboyard.scenarios.assemble import assemble, read_criteria
from roboyard.scenarios.metrics import metric_names
from roboyard.scenarios.spec import load_spec


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a scenario holds.

    Attributes:
        scenario: Its name.
        world: Name of its world.
        robots: With the names of their nodes.
        nodes: Full names of all nodes.
        topics: With their types.
        metrics: Names that criteria may use.
        findings: What was guessed or not understood in descriptions; no errors.
    """

    scenario: str
    world: str
    robots: dict[str, tuple[str, ...]]
    nodes: tuple[str, ...]
    topics: dict[str, str]
    metrics: tuple[str, ...]
    findings: tuple[str, ...]


def check_scenario(
    name: str | Path,
    *,
    overrides: Sequence[str] = (),
    smoke: bool = False,
    robot: str | None = None,
    world: str | None = None,
) -> CheckReport:
    """Read a scenario and assemble it, physics and nodes included, without letting time pass.

    Args:
        name: Its name or a path.
        overrides: ``key.path=value``.
        smoke: Check the smoke variant.
        robot: Instead of the main robot's model.
        world: Instead of the world.

    Raises:
        InputError and its kinds: the first thing that is not right.
    """
    spec = load_spec(name, overrides=overrides, smoke=smoke, robot=robot, world=world)
    read_criteria(spec)
    with compile_on_demand(), assemble(spec, record=False) as run:
        findings = [str(finding) for finding in run.world.warnings]
        for handle in run.robots.values():
            findings += [f"{handle.name}: {finding}" for finding in handle.package.findings]
            findings += [str(finding) for finding in handle.model.warnings]
        findings += list(run.simulation.notes)
        return CheckReport(
            spec.name,
            run.world.name,
            {handle.name: tuple(handle.nodes) for handle in run.robots.values()},
            tuple(run.bus.nodes),
            {topic: run.bus.topics[topic].type_name for topic in sorted(run.bus.topics)},
            metric_names(tuple(spec.scenario.robots)),
            tuple(dict.fromkeys(findings)),
        )
