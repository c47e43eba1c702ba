"""``import roboyard as ry``: each room names first what most users need, and bad input is one clear error."""

import inspect
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.live_bus import run_cli

import roboyard as ry
from roboyard.grids import FREE, OCCUPIED, GridGeometry, OccupancyGrid, simulate_scans

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "navigation", "mapping", "localization", "vision", "walking", "behavior", "kinematics", "manipulation",
    "task_planning",
)  # fmt: skip
N_FIRST = 10
CELL = 0.05


def first_names(room: str) -> list[str]:
    return list(getattr(ry, room).__all__[:N_FIRST])


def make_office(door: bool = True) -> OccupancyGrid:
    """6 m by 4 m with a wall across, which has a door at the top."""
    cells = np.full((80, 120), FREE, dtype=np.int8)
    cells[[0, -1]] = cells[:, [0, -1]] = OCCUPIED
    cells[: 50 if door else 80, 60] = OCCUPIED
    return OccupancyGrid(cells, GridGeometry(CELL, cells.shape))


def drive_scans(office: OccupancyGrid, n: int = 30) -> list[ry.mapping.LaserScan]:
    """Scans along a line with exact odometry."""
    angles = np.linspace(-2.0, 2.0, 121)
    poses = [ry.SE2(1.0 + 0.1 * k, 3.0, 0.0) for k in range(n)]
    rows = [[pose.x, pose.y, pose.theta] for pose in poses]
    ranges = simulate_scans(office.cells == OCCUPIED, office.geometry, rows, angles, 20.0)
    return [
        ry.mapping.LaserScan(
            k * 10**8, row.astype(np.float32), angles[0], angles[1] - angles[0], 0.05, 20.0, odometry=pose
        )
        for k, (pose, row) in enumerate(zip(poses, ranges, strict=True))
    ]


# -- names and pages ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("room", ROOMS)
def test_docstring_names_the_first_names_in_their_order(room: str) -> None:
    paragraph = (getattr(ry, room).__doc__ or "").split("\n\n")[1]
    assert paragraph.startswith("The names that most users need:")
    assert re.findall(r"`(\w+)`", paragraph) == first_names(room)


@pytest.mark.parametrize("room", ROOMS)
def test_page_shows_every_first_name_before_the_generated_part(room: str) -> None:
    page = (
        (ROOT / "docs" / "reference" / f"{room.replace('_', '-')}.md").read_text("utf-8").split("\n:::", maxsplit=1)[0]
    )
    assert "| what | one line |" in page
    assert [name for name in first_names(room) if not re.search(rf"\b{name}\b", page)] == []


@pytest.mark.parametrize("room", ROOMS)
def test_first_names_have_docstrings_and_types(room: str) -> None:
    for name in first_names(room):
        found = getattr(getattr(ry, room), name)
        assert inspect.getdoc(found), name
        if inspect.isfunction(found):
            signature = inspect.signature(found)
            assert signature.return_annotation is not inspect.Signature.empty, name
            assert all(one.annotation is not one.empty for one in signature.parameters.values()), name


def test_every_room_that_the_package_names_can_be_imported() -> None:
    assert set(ROOMS) <= set(ry.__all__)
    assert [name for name in ry.__all__ if not hasattr(ry, name)] == []


# -- one implementation ------------------------------------------------------------------------------------------------
def test_plan_is_the_path_of_the_command(tmp_path: Path) -> None:
    file = ry.mapping.save_map(tmp_path / "office.yaml", make_office())
    path = ry.navigation.plan(file, (1.0, 1.0, 0.0), (5.0, 1.0), planner="a_star", footprint=0.25)
    completed = run_cli(
        "plan", "path", str(file), "--start", "1,1", "--goal", "5,1", "--planner", "a_star", "--robot-radius", "0.25",
        "--json",
    )  # fmt: skip
    assert completed.code == 0, completed.err
    np.testing.assert_array_equal(path.poses, json.loads(completed.out)["path"])


def test_plan_explains_why_there_is_no_path() -> None:
    with pytest.raises(ry.navigation.NavigationError, match="the robot needs") as caught:
        ry.navigation.plan(make_office(door=False), (1.0, 1.0), (5.0, 1.0))
    assert caught.value.cause == "no_path"
    assert getattr(caught.value, "explanation") is not None  # noqa: B009


def test_slam_finds_the_drive_and_saves_it(tmp_path: Path) -> None:
    scans = drive_scans(make_office())
    result = ry.mapping.slam(scans)
    truth = np.array([[0.1 * k, 0.0, 0.0] for k in range(len(scans))])
    np.testing.assert_allclose(result.trajectory.poses, truth, atol=0.03)
    paths = result.save(tmp_path / "new" / "folder")
    assert {"map", "trajectory", "graph", "metrics", "report", "pose_graph"} == set(paths)
    assert all(path.is_file() for path in paths.values())
    np.testing.assert_array_equal(ry.mapping.read_tum(paths["trajectory"]).times_ns, result.trajectory.times_ns)
    localizer = ry.mapping.GraphLocalizer(paths["pose_graph"])
    for scan in scans:
        pose = localizer.process(scan)
    assert pose is not None
    assert pose.distance(result.trajectory.pose(-1)) < 0.1


def test_slam_of_a_file_is_the_map_of_the_command(tmp_path: Path) -> None:
    log = tmp_path / "hall.log"
    log.write_text(
        "PARAM robot_frontlaser_offset 0.1 host 0\n"
        + "".join(
            f"FLASER 5 2.0 2.1 2.5 2.1 2.0 {0.1 * k + 0.1} 0 0 {0.1 * k} 0 0 {10 + 0.2 * k:.1f} host 0\n"
            for k in range(20)
        )
    )
    saved = ry.mapping.slam(log).save(tmp_path / "ours")
    completed = run_cli("map", str(log), "--out", str(tmp_path / "command"), "--json")
    assert completed.code == 0, completed.err
    for name, path in saved.items():
        if name not in ("metrics", "report"):  # these state the processing time
            assert path.read_bytes() == (tmp_path / "command" / path.name).read_bytes(), name


def test_localize_finds_the_pose_in_the_map_despite_drift() -> None:
    office = make_office()
    scans = drive_scans(office)
    truth = ry.SE2(1.0, 3.0, 0.0)
    for initial_pose in (None, (1.1, 2.9, 0.05)):
        result = ry.localization.localize(scans, office, initial_pose)
        assert result.n_scans == len(scans) == len(result.trajectory)
        assert result.trajectory.pose(-1).distance(truth @ ry.SE2(0.1 * (len(scans) - 1), 0.0, 0.0)) < 0.06
    repeated = ry.localization.localize(scans, office, (1.1, 2.9, 0.05))
    np.testing.assert_array_equal(repeated.trajectory.poses, result.trajectory.poses)


def test_plan_motion_takes_named_poses_joint_positions_and_poses_of_the_tool() -> None:
    scene, goal = _make_scene(), np.array([0.6, 0.4])
    tool = ry.SE3.from_matrix(scene.chain.forward(goal))
    plans = [
        ry.manipulation.plan_motion(scene, start, one)
        for start, one in (
            ("zero", goal),
            ([0.0, 0.0], goal.tolist()),
            ("zero", ry.manipulation.PoseGoal(tool)),
            ("zero", tool),
        )
    ]
    for plan in plans:
        np.testing.assert_allclose(scene.chain.forward(plan.goal), tool.matrix(), atol=1e-5)
        np.testing.assert_array_equal(plan.trajectory.start, [0.0, 0.0])
    back = ry.manipulation.plan_motion(scene, goal, "zero")
    np.testing.assert_allclose(back.goal, 0.0, atol=1e-12)


# -- bad input ---------------------------------------------------------------------------------------------------------
def _plan(**changes: Any) -> Any:
    arguments = {"map": make_office(), "start": (1.0, 1.0, 0.0), "goal": (2.0, 1.0, 0.0)} | changes
    return ry.navigation.plan(**arguments)


def _without_odometry() -> list[ry.mapping.LaserScan]:
    one = drive_scans(make_office(), 1)[0]
    return [ry.mapping.LaserScan(0, one.ranges, one.angle_min, one.angle_increment, 0.05, 20.0)]


BAD_INPUT: list[tuple[str, Callable[[], Any], str]] = [
    ("plan: no file", lambda: _plan(map="no.yaml"), "no.yaml: cannot be read"),
    ("plan: no map", lambda: _plan(map=3), "map: an object of type int is no map"),
    ("plan: start is not finite", lambda: _plan(start=(math.nan, 1.0)), "start: (nan, 1.0) is no pose"),
    ("plan: goal of four numbers", lambda: _plan(goal=(1, 2, 3, 4)), "goal: (1, 2, 3, 4) is no pose"),
    ("plan: goal is text", lambda: _plan(goal="kitchen"), "goal: 'kitchen' is no pose"),
    ("plan: start in a wall", lambda: _plan(start=(3.0, 1.0)), "the start (3.00, 1.00) lies in an obstacle"),
    ("plan: start outside", lambda: _plan(start=(90.0, 1.0)), "lies outside of the map"),
    ("plan: unknown planner", lambda: _plan(planner="a_starr"), "no planner 'a_starr'; did you mean 'a_star'?"),
    ("plan: negative radius", lambda: _plan(footprint=-1.0), "footprint: a radius of -1.0"),
    ("plan: footprint of one corner", lambda: _plan(footprint=[(0.0, 0.0)]), "footprint: corners of shape (1, 2)"),
    ("plan: inflation", lambda: _plan(inflation_radius=math.nan), "inflation: radii"),
    ("slam: no file", lambda: ry.mapping.slam("no.bag"), "no.bag: does not exist"),
    ("slam: no scan", lambda: ry.mapping.slam([]), "scans: there is no scan"),
    ("slam: no log", lambda: ry.mapping.slam(3), "scans: an object of type int is no log"),  # type: ignore[arg-type]
    ("slam: not a scan", lambda: ry.mapping.slam([1]), "element 0 is of type int"),  # type: ignore[list-item]
    ("slam: order", lambda: ry.mapping.slam(drive_scans(make_office(), 3)[::-1]), "times of the scans do not ascend"),
    ("slam: algorithm", lambda: ry.mapping.slam([], algorithm="gmapping"), "'gmapping'"),
    ("slam: resolution", lambda: ry.mapping.slam([], resolution=-0.05), "slam: resolution -0.05"),
    ("load_map: no file", lambda: ry.mapping.load_map("no.yaml"), "no.yaml: cannot be read"),
    ("localize: no map", lambda: ry.localization.localize([], 3), "map: an object of type int is no map"),  # type: ignore[arg-type]
    ("localize: pose", lambda: ry.localization.localize([], make_office(), (1.0, 2.0)), "initial_pose: (1.0, 2.0)"),
    ("localize: odometry", lambda: ry.localization.localize(_without_odometry(), make_office()), "no odometry"),
    (
        "localize: covariance",
        lambda: ry.localization.localize([], make_office(), (1.0, 2.0, 0.0), initial_covariance=np.eye(2)),
        "covariance of shape (2, 2)",
    ),
    (
        "detect_fiducials: shape",
        lambda: ry.vision.detect_fiducials(np.zeros(5, np.uint8), "4x4_50"),
        "an image of uint8 (5,)",
    ),
    (
        "detect_fiducials: family",
        lambda: ry.vision.detect_fiducials(np.zeros((9, 9), np.uint8), "4x4"),
        "family '4x4'",
    ),
    ("footprint: crossed", lambda: ry.navigation.Footprint(np.array([(0, 0), (1, 1), (1, 0), (0, 1)])), "crosses"),
    ("path: shape", lambda: ry.navigation.Path(np.zeros((3, 2))), "poses of shape (3, 2)"),
    ("absolute_error: times", lambda: ry.mapping.absolute_error(_one_pose(0), _one_pose(10**12)), "no time in common"),
    ("GraphLocalizer: no file", lambda: ry.mapping.GraphLocalizer("no.npz"), "no.npz: cannot be read"),
    ("SensorFusion: filter", lambda: ry.localization.SensorFusion(filter_type="kf"), "'kf'; did you mean 'ukf'?"),
    ("AmclConfig: particles", lambda: ry.localization.AmclConfig(max_particles=-1), "max_particles: -1"),
    ("fit_slip_factor: one rotation", lambda: ry.localization.fit_slip_factor([1.0], [1.0]), "rotations of shapes"),
    ("render_marker: number", lambda: ry.vision.render_marker("4x4_50", 77), "marker 77 of 4x4_50 (0 to 49)"),
    ("load_camera_info: no file", lambda: ry.vision.load_camera_info("no.yaml"), "no.yaml: cannot be read"),
    ("load_movement: no file", lambda: ry.walking.load_movement(Path("no.xml")), "no.xml: no such file"),
    ("load_tree: no file", lambda: ry.behavior.load_tree("no.xml"), "no.xml"),
    ("read_tree: no tree", lambda: ry.behavior.read_tree("<root/>"), ""),
    ("plan: no task file", lambda: ry.task_planning.plan("no.yaml", "goal"), "no.yaml: cannot be read"),
    ("plan: no tasks", lambda: ry.task_planning.plan(3, "goal"), "tasks: an object of type int is no task file"),  # type: ignore[arg-type]
    ("plan: unknown goal", lambda: ry.task_planning.plan(make_tasks(), "open"), "no goal 'open'"),
    ("plan: goal is a list", lambda: ry.task_planning.plan(make_tasks(), []), "goal: an object of type list"),  # type: ignore[arg-type]
    ("plan: empty goal", lambda: ry.task_planning.plan(make_tasks(), {}), "goal: the desired state is empty"),
    ("plan: state", lambda: ry.task_planning.plan(make_tasks(), "out", 3), "initial_state: an object of type int"),  # type: ignore[arg-type]
    ("plan: impossible", lambda: ry.task_planning.plan(make_tasks(), {"door": "gone"}), "no action makes door = gone"),
    ("load_pddl: no file", lambda: ry.task_planning.load_pddl("no.pddl", "no.pddl"), "no.pddl: cannot be read"),
    ("build_chain: no link", lambda: ry.kinematics.build_chain(make_arm(), "base", "hand"), "hand"),
    ("load_groups: no file", lambda: ry.manipulation.load_groups(Path("no.yaml"), make_arm()), "no.yaml"),
    ("plan_motion: planner", lambda: _plan_motion(planner="rrt_conect"), "no planner 'rrt_conect'; did you mean"),
    ("plan_motion: setting", lambda: _plan_motion(planner_settings={"stepp": 1}), "did you mean 'step'?"),
    ("plan_motion: setting out of bounds", lambda: _plan_motion(planner_settings={"step": -1}), "step: -1"),
    ("plan_motion: budget", lambda: _plan_motion(max_states=0), "max_states: 0"),
    ("plan_motion: scaling", lambda: _plan_motion(velocity_scaling=1.5), "velocity_scaling: 1.5"),
    ("plan_motion: named goal", lambda: _plan_motion("ahaed"), "no pose 'ahaed'"),
    ("plan_motion: named start", lambda: _plan_motion(start="fold"), "no pose 'fold'"),
    ("plan_motion: no goal", lambda: _plan_motion(None), "goal: an object of type NoneType is no goal"),
    ("plan_motion: goal is a mapping", lambda: _plan_motion({}), "goal: an object of type dict is no goal"),
    ("plan_motion: goal is not finite", lambda: _plan_motion([math.nan, 0.0]), "is not finite"),
    ("plan_motion: shape", lambda: _plan_motion([0.0] * 3), "shape (3,)"),
    ("plan_motion: beyond limits", lambda: _plan_motion([9.0, 0.0]), "the goal has shoulder at 9 (-2 to 2)"),
    ("plan_motion: start beyond limits", lambda: _plan_motion(start=[9.0, 0.0]), "the start has shoulder at 9"),
    ("plan_motion: unreachable", lambda: _plan_motion(ry.SE3(translation=(9.0, 0.0, 0.0))), "no joint positions put"),
    ("plan_motion: in collision", lambda: _plan_motion([1.5, 0.0], has_wall=True), "at the goal forearm touches wall"),
    ("create: group", lambda: ry.manipulation.PlanningScene.create(make_groups(), "leg"), "no group 'leg'"),
    ("create: margin", lambda: ry.manipulation.PlanningScene.create(make_groups(), margin=-1.0), "a margin of -1.0 m"),
    ("create: obstacles", lambda: _make_scene().with_obstacles([_WALL, _WALL]), "two obstacles are called 'wall'"),
    (
        "plan_cartesian_path: no poses",
        lambda: ry.manipulation.plan_cartesian_path(_make_scene(), [0.0] * 2, []),
        "pose",
    ),
    ("time_parameterize: method", lambda: _time_parameterize("time_optimum"), "did you mean 'time_optimal'?"),
    ("time_parameterize: no jerk limits", lambda: _time_parameterize("jerk_limited"), "shoulder has no limit of jerk"),
    (
        "solve_ik: not finite",
        lambda: ry.kinematics.solve_ik(ry.kinematics.build_chain(make_arm(), "base", "tip"), np.full((4, 4), np.nan)),
        "finite",
    ),
]


def make_tasks() -> Any:
    from roboyard.task_planning.task_file import ActionConfig, GoalConfig

    return ry.task_planning.TaskFile(
        {"open": ActionConfig({"door": "open"}, cost=2.0), "leave": ActionConfig({"robot": "out"}, {"door": "open"})},
        {"out": GoalConfig({"robot": "out"})},
        initial_state={"door": "closed", "robot": "in"},
    )


def test_plan_reaches_the_goal_from_the_given_state() -> None:
    plan = ry.task_planning.plan(make_tasks(), "out")
    assert ([step.name for step in plan.steps], plan.cost) == (["open", "leave"], 3.0)
    assert [step.name for step in ry.task_planning.plan(make_tasks(), "out", {"door": "open"}).steps] == ["leave"]
    assert ry.task_planning.plan(make_tasks(), {"door": "closed"}).steps == ()


_WALL = ry.manipulation.box_obstacle("wall", (0.02, 1.0, 1.0), (0.9, 0.0, 0.0))


def make_groups() -> ry.manipulation.SemanticDescription:
    """An arm of two parallel joints and links of 0.5 m, upright at zero."""
    link = '<collision><origin xyz="0 0 0.25"/><geometry><box size="0.02 0.02 0.4"/></geometry></collision>'
    joints = "".join(
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/><axis xyz="0 1 0"/>'
        f'<origin xyz="0 0 {z}"/><limit lower="-2" upper="2" effort="50" velocity="2"/></joint>'
        for name, parent, child, z in (("shoulder", "base", "upper_arm", 0.0), ("elbow", "upper_arm", "forearm", 0.5))
    )
    links = "".join(f'<link name="{name}">{link}</link>' for name in ("upper_arm", "forearm"))
    return ry.manipulation.guess_groups(ry.load_model(f'<robot name="arm"><link name="base"/>{links}{joints}</robot>'))


def _make_scene(*obstacles: Any) -> ry.manipulation.PlanningScene:
    return ry.manipulation.PlanningScene.create(make_groups(), obstacles=obstacles)


def _plan_motion(goal: Any = (0.5, 0.5), *, start: Any = "zero", has_wall: bool = False, **options: Any) -> Any:
    scene = _make_scene(*([_WALL] if has_wall else []))
    return ry.manipulation.plan_motion(scene, start, goal, ry.manipulation.PlanConfig(**options))


def _time_parameterize(method: str) -> Any:
    from roboyard.manipulation.time_parameterization import JointLimits, JointPath

    path = JointPath.from_points(("shoulder", "elbow"), [[0.0, 0.0], [1.0, 0.5]])
    limits = JointLimits.from_chain(_make_scene().chain)
    return ry.manipulation.time_parameterize(path, limits, method=method)


def _one_pose(time_ns: int) -> ry.mapping.PoseTrajectory:
    return ry.mapping.PoseTrajectory(np.array([time_ns]), np.zeros((1, 3)))


def make_arm() -> Any:
    return ry.load_model(
        '<robot name="arm"><link name="base"/><link name="tip"/><joint name="shoulder" type="revolute">'
        '<parent link="base"/><child link="tip"/><axis xyz="0 1 0"/>'
        '<limit lower="-3" upper="3" effort="5" velocity="2"/></joint></robot>'
    )


@pytest.mark.parametrize(("call", "expected"), [pytest.param(call, text, id=name) for name, call, text in BAD_INPUT])
def test_bad_input_is_one_clear_error(call: Callable[[], Any], expected: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ry.RoboyardError) as caught:
        call()
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


WALKING_ERRORS = [
    ({"start": (math.nan, 0.0)}, "start: (nan, 0.0)"),
    ({"goal": "there"}, "goal: 'there'"),
    ({"goal": (0.0, 0.0, 0.0)}, "goal: [0.0, 0.0, 0.0]"),
    ({"planner": "spliting"}, "no step planner 'spliting'; did you mean 'splitting'?"),
    ({"terrain": 3}, "an object of type int is no terrain"),
    ({"max_events": 0}, "budget 0"),
    ({"start": (0.0, 0.0, math.inf)}, "start: (0.0, 0.0, inf)"),
]


@pytest.mark.parametrize(("changed", "expected"), WALKING_ERRORS, ids=lambda value: str(value)[:30])
def test_step_planning_explains_bad_input(changed: dict[str, Any], expected: str) -> None:
    from roboyard.bringup.legged_robot import load_free_gait_model
    from roboyard.grids.terrain import generate_terrain

    terrain = generate_terrain("flat", (1.0, 1.0), np.random.default_rng(0))
    arguments = {"terrain": terrain, "start": (0.0, 0.0), "goal": (0.4, 0.0), "max_events": 100} | changed
    with pytest.raises(ry.RoboyardError) as caught:
        ry.walking.plan_steps_on_terrain(load_free_gait_model("akrobat"), **arguments)
    assert expected in str(caught.value)
