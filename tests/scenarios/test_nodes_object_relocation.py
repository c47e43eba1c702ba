"""The supply node waits while a person is near."""

from __future__ import annotations

import roboyard as ry
from roboyard.bringup.catalog import OBJECTS
from roboyard.description import load_model
from roboyard.scenarios.nodes.actors import ObjectRelocationNode

SOURCE, TARGET = (2.8, -0.4), (2.78, 0.5)


def is_part_relocated(anna: tuple[float, float, float]) -> bool:
    """Whether a part is moved from one end of the bench to the other, with somebody at a place."""
    run = ry.Run("work_cell", record=False)
    run.add_object(load_model(OBJECTS.resolve("workpiece")), "part", (*SOURCE, 0.921, 0, 0, 0))
    run.add_person("anna", pose=anna)
    sectors = {
        name: [x, y, 0.0, 0.02, -3.2, 3.2] for name, (x, y) in (("source_sector", SOURCE), ("target_sector", TARGET))
    }
    run.add_node(
        ObjectRelocationNode(
            simulation=run.simulation, objects=["part"], settle_time=1.0, height_offset=0.03, **sectors
        ),
        "supply",
    )
    run.run_for(3.0)
    y = run.simulation.ground_truth("part").T_world_base.y
    run.close()
    return abs(y - TARGET[1]) < 0.1


def test_supply_waits_while_a_person_is_there() -> None:
    assert is_part_relocated((2.0, 0.0, 0.0))
    assert not is_part_relocated((2.62, 0.5, 0.0))
    assert not is_part_relocated((2.62, -0.4, 0.0))
