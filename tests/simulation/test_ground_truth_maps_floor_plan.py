"""Floor plans: areas and positions agree with formulas, cells with an independent inside test."""

import math

import mujoco
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roboyard.description import load_world
from roboyard.errors import ConfigError
from roboyard.grids.floor_plan import FloorPlan
from roboyard.simulation.ground_truth_maps import make_floor_plan

BOX = """<collision name='c'><pose>{x} {y} 0.5 0 0 {yaw}</pose>
  <geometry><box><size>{a} {b} 1</size></box></geometry></collision>"""
BALL = """<collision name='c'><pose>0 0 0.5 0 0 0</pose>
  <geometry><sphere><radius>0.5</radius></sphere></geometry></collision>"""


def world_of(*collisions: str, static: bool = True):
    return load_world(
        f"""<sdf version="1.9"><world name="w">
        <model name="ground"><static>true</static><link name="l"><collision name="c"><geometry>
          <plane><normal>0 0 1</normal></plane></geometry></collision></link></model>
        <model name="thing"><static>{str(static).lower()}</static><link name="l">{"".join(collisions)}</link></model>
        </world></sdf>"""
    )


def cell_centers(plan: FloorPlan) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = plan.occupied.shape
    x = plan.origin[0] + (np.arange(columns) + 0.5) * plan.resolution
    y = plan.origin[1] + (np.arange(rows) + 0.5) * plan.resolution
    return np.meshgrid(x, y)


@example(0.0, 0.99999, 0.0, 1.0, 0.3, 0.02)  # the centers of a row lie where the triangles of a side meet
@settings(max_examples=25)
@given(
    st.floats(-2, 2),
    st.floats(-2, 2),
    st.floats(-3.2, 3.2),
    st.floats(0.3, 2.0),
    st.floats(0.3, 2.0),
    st.floats(0.02, 0.08),
)
def test_floor_plan_of_a_box_has_the_cells_inside_it(x, y, yaw, a, b, resolution):
    plan = make_floor_plan(world_of(BOX.format(x=x, y=y, yaw=yaw, a=a, b=b)), resolution=resolution)
    px, py = cell_centers(plan)
    u = np.abs(math.cos(yaw) * (px - x) + math.sin(yaw) * (py - y)) - a / 2
    v = np.abs(-math.sin(yaw) * (px - x) + math.cos(yaw) * (py - y)) - b / 2
    inside = (u < -1e-6) & (v < -1e-6)
    outside = (u > 0.7072 * resolution) | (v > 0.7072 * resolution)  # farther than a cell's corner from its center
    assert plan.occupied[inside].all()
    assert not plan.occupied[outside].any()


def test_box_on_cell_borders_fills_exactly_its_cells():
    box = BOX.format(x=1, y=0.5, yaw=0, a=1, b=0.5)
    plan = make_floor_plan(world_of(box), resolution=0.05, bounds=(0, 2, 0, 1))
    expected = np.zeros((20, 40), bool)
    expected[5:15, 10:30] = True
    assert (plan.occupied == expected).all()
    assert plan.extent == pytest.approx((0, 2, 0, 1))


def test_ball_section_is_a_circle_of_its_height():
    for height in (0.2, 0.5, 0.8):
        plan = make_floor_plan(world_of(BALL), height=height, resolution=0.005)
        radius = math.sqrt(0.25 - (height - 0.5) ** 2)
        assert plan.occupied.sum() * 0.005**2 == pytest.approx(math.pi * radius**2, rel=0.03)
    assert not make_floor_plan(world_of(BALL), height=1.2).occupied.any()


def test_wall_thinner_than_a_cell_stays_closed():
    plan = make_floor_plan(world_of(BOX.format(x=0.01, y=0, yaw=0.4, a=0.004, b=2)), resolution=0.05)
    rows = plan.occupied.any(1)
    assert rows[np.flatnonzero(rows)[0] : np.flatnonzero(rows)[-1]].all()
    assert plan.occupied.sum() > 35


def test_overlapping_solids_form_one_area():
    boxes = (BOX.format(x=0, y=0, yaw=0, a=1, b=1), BOX.format(x=0.3, y=0.2, yaw=0.5, a=1, b=1).replace("'c'", "'d'"))
    both = make_floor_plan(world_of(*boxes), bounds=(-2, 2, -2, 2))
    each = [make_floor_plan(world_of(box), bounds=(-2, 2, -2, 2)) for box in boxes]
    assert (both.occupied == (each[0].occupied | each[1].occupied)).all()


def test_movable_models_count_only_on_request():
    world = world_of(BOX.format(x=0, y=0, yaw=0, a=1, b=1), static=False)
    assert not make_floor_plan(world).occupied.any()
    assert make_floor_plan(world, include_moving=True).occupied.any()
    assert not make_floor_plan(world, include_moving=True, excluded_models=("thing",)).occupied.any()


def test_floor_plan_shows_the_present_state():
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body name='b'><freejoint/><geom name='b::g' type='box' size='.2 .2 .5' group='3'/></body>"
        "</worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    data.qpos[:2] = 3.0, -1.0
    mujoco.mj_forward(model, data)
    plan = make_floor_plan(model, data, include_moving=True, resolution=0.02)
    x, y = cell_centers(plan)
    assert x[plan.occupied].mean() == pytest.approx(3.0, abs=0.01)
    assert y[plan.occupied].mean() == pytest.approx(-1.0, abs=0.01)


@pytest.mark.parametrize("resolution", [0.0, -1.0, float("nan"), 1e-6])
def test_impossible_floor_plan_resolutions_are_refused(resolution):
    with pytest.raises(ConfigError):
        make_floor_plan(world_of(BOX.format(x=0, y=0, yaw=0, a=1, b=1)), resolution=resolution)
