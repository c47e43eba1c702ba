"""Roboyard's worlds: plain SDF without findings, stable, and free of obstacles where robots start and drive."""

import math
from importlib import resources

import numpy as np
import pytest
from lxml import etree
from scipy.ndimage import distance_transform_edt

from roboyard.description import load_world
from roboyard.simulation import Simulation
from roboyard.simulation.ground_truth_maps import make_floor_plan

NAMES = ("arena", "corridor", "empty")


def world_path(name):
    return resources.files("roboyard") / "worlds" / f"{name}.sdf"


@pytest.fixture(scope="module")
def worlds():
    return {name: load_world(world_path(name)) for name in NAMES}


def clearance(world, x, y, height=0.2):
    """Distance [m] from places to the nearest solid thing."""
    plan = make_floor_plan(world, height=height, resolution=0.05, bounds=(-7, 29, -6, 9), include_moving=True)
    free = distance_transform_edt(~plan.occupied) * plan.resolution
    columns = ((np.asarray(x) - plan.origin[0]) / plan.resolution).astype(int)
    rows = ((np.asarray(y) - plan.origin[1]) / plan.resolution).astype(int)
    return free[rows, columns]


@pytest.mark.parametrize("name", NAMES)
def test_world_is_read_without_findings(worlds, name):
    assert worlds[name].warnings == ()
    assert worlds[name].name == name
    assert worlds[name].lights


@pytest.mark.parametrize("name", NAMES)
def test_world_file_is_plain_self_contained_sdf(name):
    root = etree.parse(str(world_path(name))).getroot()
    assert root.tag == "sdf"
    assert root.get("version") == "1.10"
    assert not root.findall(".//uri")
    assert not root.findall(".//plugin")
    for owner in root.iter("model", "link"):
        for kind in ("link", "collision", "visual"):
            names = [child.get("name") for child in owner.findall(kind)]
            assert len(names) == len(set(names))
    for collision in root.iter("collision"):
        # Every collision has a visual of the same name.
        assert collision.getparent().find(f"visual[@name='{collision.get('name')}']") is not None


@pytest.mark.parametrize("name", NAMES)
def test_world_models_stay_at_their_poses(worlds, name):
    simulation = Simulation(worlds[name])
    before = np.array(simulation.world.data.qpos)
    simulation.step(1000)
    assert np.abs(simulation.world.data.qpos - before).max(initial=0.0) < 2e-3


@pytest.mark.parametrize(("name", "radius"), [("arena", 0.9), ("corridor", 1.05)])
def test_world_origin_is_free(worlds, name, radius):
    for height in (0.05, 0.2, 0.6, 1.5):
        assert clearance(worlds[name], 0.0, 0.0, height) >= radius


def test_arena_course_is_free(worlds):
    angle = np.linspace(0, 2 * math.pi, 90)
    for side in (-3.0, 3.0):
        for height in (0.1, 0.2, 0.5):
            assert clearance(worlds["arena"], side + 1.95 * np.cos(angle), 1.95 * np.sin(angle), height).min() >= 0.6
    assert clearance(worlds["arena"], 4.0, 2.0) >= 0.6


def test_arena_is_twelve_by_eight_meters_and_closed(worlds):
    plan = make_floor_plan(worlds["arena"], height=0.5, resolution=0.05, margin=0.5)
    x0, x1, y0, y1 = plan.extent
    assert (x1 - x0 - 1, y1 - y0 - 1) == pytest.approx((12.3, 8.3), abs=0.1)
    center_row = plan.occupied.shape[0] // 2
    inside = np.flatnonzero(~plan.occupied[center_row])
    inner = [c for c in inside if 10 + 5 < c < plan.occupied.shape[1] - 15]
    assert len(inner) * 0.05 > 9.0


def test_corridor_has_its_width_niches_and_a_lab_door(worlds):
    plan = make_floor_plan(worlds["corridor"], height=0.2, resolution=0.05, bounds=(-4, 28, -2, 8))
    column = {x: plan.occupied[:, int((x + 4) / 0.05)] for x in (-1.0, 2.2, 0.6, 19.8)}
    wide = {x: (~c[:80]).nonzero()[0] for x, c in column.items()}
    free = {x: np.sum((rows * 0.05 - 2 > -1.5) & (rows * 0.05 - 2 < 1.5)) * 0.05 for x, rows in wide.items()}
    assert free[-1.0] == pytest.approx(2.2, abs=0.06)
    assert free[2.2] == pytest.approx(2.45, abs=0.06)
    assert free[0.6] == pytest.approx(2.45, abs=0.06)
    door = plan.occupied[int((1.3 + 2) / 0.05), :]
    assert (~door[int((19.3 + 4) / 0.05) : int((20.3 + 4) / 0.05)]).all()
    assert clearance(worlds["corridor"], 21.0, 3.0) > 0.9  # inside the lab
    assert (
        clearance(
            worlds["corridor"], [0.0, 3.0, 5.0, 9.0, 12.0, 17.0, 19.8, 19.8], [0.0, 0, 0, -0.4, 0, 0.1, 0.8, 1.3]
        ).min()
        > 0.45
    )


def test_transport_box_can_be_pushed_and_leaves_a_passage(worlds):
    (placed,) = [m for m in worlds["corridor"].models if not m.model.static]
    assert placed.name == "transport_box"
    link = placed.model.links[0]
    size = link.collisions[0].geometry.size
    assert size == pytest.approx((0.6, 0.4, 0.4))
    ixx, iyy, izz, *mixed = link.inertial.inertia
    assert 3 < link.inertial.mass < 20
    assert (ixx, iyy, izz) == pytest.approx(
        tuple(link.inertial.mass / 12 * (a * a + b * b) for a, b in ((0.4, 0.4), (0.6, 0.4), (0.6, 0.4))), rel=1e-3
    )
    assert mixed == pytest.approx([0, 0, 0])
    y = np.arange(-1.075, placed.T_world_model.y, 0.05)
    free = clearance(worlds["corridor"], np.full(len(y), placed.T_world_model.x), y) > 0.04
    assert 1.2 <= free.sum() * 0.05 <= 1.5


def test_lab_tables_appear_as_legs_to_a_level_laser(worlds):
    low = make_floor_plan(worlds["corridor"], height=0.2, resolution=0.02, bounds=(21.4, 23.8, 3.6, 4.8))
    top = make_floor_plan(worlds["corridor"], height=0.73, resolution=0.02, bounds=(21.4, 23.8, 3.6, 4.8))
    assert low.occupied.mean() < 0.03
    assert top.occupied.mean() > 0.6
