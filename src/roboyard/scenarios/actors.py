"""Actors of SDF worlds come alive: people take the places of the figures that stand for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roboyard.errors import RoboyardError
from roboyard.geometry import SE2
from roboyard.simulation.nodes import ActorNode
from roboyard.simulation.people import Physique, make_body
from roboyard.simulation.people.clip import Clip
from roboyard.simulation.people.library import read_clip
from roboyard.simulation.people.scripted import Scripted

if TYPE_CHECKING:
    from roboyard.description.model import ActorScript
    from roboyard.scenarios.run import Run

HEIGHT = 1.75
"""Of actors [m]."""


def bring_to_life(run: Run) -> None:
    """Have each actor of the run's world follow its script.

    An animation whose file is not there or broken is told in the log; our own walk is shown in its place.
    """
    for name, handle in run.simulation.models.items():
        acting = handle.model.actor_script
        if acting is None:
            continue
        T_world_actor = run.simulation.truth(name).T_world_base
        place = SE2.from_se3(T_world_actor)
        body = make_body(Physique.of_height(HEIGHT), name)
        run.simulation.remove(name)
        run.simulation.add(body.model, name, place.to_se3(), robot=False, flesh=body.flesh)
        scripted = Scripted(body.skeleton, acting, _clips(run, name, acting), (place.x, place.y, place.theta))
        node = ActorNode(simulation=run.simulation, scripted=scripted, model=name)
        run.bus.add(node, re.sub(r"[^A-Za-z0-9_]", "_", name))


def _clips(run: Run, actor: str, acting: ActorScript) -> dict[str, Clip]:
    found = {}
    for one in acting.clips:
        if one.file is None:
            continue
        try:
            found[one.name] = read_clip(one.file)
        except RoboyardError as error:
            run.bus.log.warn(f"actor {actor}, animation {one.name!r}: {error}")
    return found
