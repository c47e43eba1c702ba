"""People of a scenario: body sizes, initial poses, animations, and their schedule, patrol or mission."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from roboyard.compute import expect_kernels
from roboyard.config import parameter
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2, SE3
from roboyard.people import BodyDimensions, make_person_model
from roboyard.people.body import SHIRT_COLOR
from roboyard.people.clip import AnimationClip
from roboyard.people.clip_library import find_clip
from roboyard.people.skeleton import compute_part_poses, solve_two_bone_ik
from roboyard.scenarios.missions import MISSION, MissionConfig, create_mission_node
from roboyard.scenarios.nodes.actors import PersonScheduleNode, PersonTask
from roboyard.scenarios.run_builder import SimulatedRunBuilder
from roboyard.simulation import ModelOptions
from roboyard.simulation.nodes import CrowdNode, PersonNode
from roboyard.simulation.walking_map import SimulationWalkingMap

_DEFAULT_HEIGHT = 1.75


@dataclass(frozen=True)
class PersonConfig:
    """A person."""

    pose: tuple[float, float, float] = parameter((0.0, 0.0, 0.0), low=-1e4, high=1e4, doc="[x, y, yaw] in m and rad")
    height: float | None = parameter(
        None, unit="m", low=0.8, high=2.5, doc="body height; default: 1.75 m, or by percentile and sex"
    )
    percentile: float | None = parameter(
        None, low=0.1, high=99.9, doc="percentage of people of this sex who are shorter"
    )
    sex: Literal["female", "male"] | None = parameter(None, doc="sex to which the percentile belongs")
    mass: float | None = parameter(
        None, unit="kg", low=5.0, high=400.0, doc="body mass; default: 24 kg/m² times the squared height"
    )
    shirt_color: tuple[float, float, float] = parameter(
        SHIRT_COLOR[:3], low=0.0, high=1.0, doc="color of the shirt: red, green, blue"
    )
    animations: dict[str, str] = parameter(factory=dict, doc="further animations: {name: file}")
    schedule: tuple[PersonTask, ...] = parameter((), doc="tasks in order")
    repeat: bool = parameter(False, doc="whether the schedule is repeated")
    patrol: tuple[tuple[float, float], ...] = parameter(
        (), doc="[[x, y], ...]: points of a closed path that is walked repeatedly, among other people on patrol"
    )
    mission: str | MissionConfig | None = parameter(None, doc="behavior tree (XML) instead of a schedule")
    speed_factor: float = parameter(1.0, low=0.2, high=3.0, doc="factor on the speed of all animations")
    rate: float = parameter(50.0, unit="Hz", low=5.0, high=1000.0, doc="rate of the body's motion and of feedback")
    body_publish_rate: float = parameter(
        10.0, unit="Hz", low=0.0, high=1000.0, doc="rate of the ground truth of the body; 0: never"
    )

    def __post_init__(self) -> None:
        if sum((bool(self.patrol), bool(self.schedule), self.mission is not None)) > 1:
            raise ConfigError(
                "only one of schedule, patrol and mission is allowed",
                location="mission, patrol, schedule",
                valid="one of them",
            )
        if not all(math.isfinite(value) for waypoint in self.patrol for value in waypoint):
            raise ConfigError(f"{self.patrol} is not finite", location="patrol", valid="finite coordinates")
        if self.height is not None and self.percentile is not None:
            raise ConfigError(
                "height and percentile exclude each other", location="percentile, height", valid="one of them"
            )
        if (self.percentile is None) != (self.sex is None):
            raise ConfigError("percentile and sex require each other", location="percentile, sex", valid="both or none")

    def to_body_dimensions(self) -> BodyDimensions:
        """Return height and mass. Raises ConfigError."""
        if self.percentile is not None and self.sex is not None:
            return BodyDimensions.from_percentile(self.percentile, self.sex, self.mass)
        return BodyDimensions.from_height(self.height or _DEFAULT_HEIGHT, self.mass)


def make_clip_lookup(clips: Mapping[str, str], base: Path | None) -> Callable[[str], AnimationClip]:
    """Return a function that finds clips by the names that a scenario gives them, and all others as `find_clip` does.

    Raises:
        InputError and its kinds: One of the files does not exist or is damaged.
    """
    scenario_clips = {name: find_clip(file, base) for name, file in clips.items()}
    return partial(_find_named_clip, scenario_clips, base)


def _find_named_clip(scenario_clips: Mapping[str, AnimationClip], base: Path | None, name: str) -> AnimationClip:
    return scenario_clips[name] if name in scenario_clips else find_clip(name, base)


def add_person(run: SimulatedRunBuilder, name: str, config: PersonConfig) -> PersonNode:
    """Add a person to a run.

    Raises:
        ConfigError: A human body cannot have this size.
        InputError and its kinds: The name is taken, or the file of a clip does not exist or is damaged.
    """
    expect_kernels(solve_two_bone_ik, compute_part_poses)
    clips = make_clip_lookup(config.animations, run.base_folder)
    for task in config.schedule:
        for clip in (task.animate, task.walk_animation):
            if clip is not None:
                clips(clip)
    red, green, blue = config.shirt_color
    body = make_person_model(config.to_body_dimensions(), name, (red, green, blue, 1.0))
    x, y, yaw = config.pose
    if name in run.simulation.models:
        raise InputError(f"the name {name!r} is taken", valid="another name")
    run.simulation.add(
        body.model,
        name,
        SE3.from_xyz_rpy((x, y, 0.0), (0.0, 0.0, yaw)),
        options=ModelOptions(robot=False, compliant_parts=body.compliant_parts),
    )
    walking_map = next((node.walking_map for node in run.people.values()), None) or SimulationWalkingMap(run.simulation)
    node = PersonNode(
        simulation=run.simulation,
        body=body,
        walking_map=walking_map,
        find_clip=clips,
        start_pose=SE2(x, y, yaw),
        model=name,
        rate=config.rate,
        body_publish_rate=config.body_publish_rate,
        speed_factor=config.speed_factor,
    )
    run.add_person_node(name, node)
    if config.mission is not None:
        mission, remap = create_mission_node(config.mission, run.resources(), run.base_folder)
        run.bus.add(mission, MISSION, namespace=f"/{name}", remap=remap)
    if config.schedule:
        schedule = PersonScheduleNode(person=name, tasks=config.schedule, repeat=config.repeat)
        run.bus.add(schedule, f"{name}_errands")
    return node


def add_crowd(run: SimulatedRunBuilder, people: Mapping[str, PersonConfig]) -> None:
    """Add the node that moves all people with a patrol; nothing if there is none."""
    patrols = {name: entry.patrol for name, entry in people.items() if entry.patrol}
    if patrols:
        nodes = tuple(run.people[name] for name in patrols)
        crowd = CrowdNode(
            simulation=run.simulation, people=nodes, waypoints=tuple(patrols.values()), walking_map=nodes[0].walking_map
        )
        run.bus.add(crowd, "crowd")
