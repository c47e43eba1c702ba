"""Mesh tools keep to geometry: volumes add up, inertia is that of known solids, shapes hold what they stand for."""

import math
from pathlib import Path

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.description import Box, Cylinder, Sphere, load_model
from roboyard.description.meshes import (
    LinkAttachment,
    MeshDistance,
    TriangleMesh,
    approximate_collision,
    combine_mass_properties,
    compute_mass_properties,
    compute_origin_transform,
    concatenate_meshes,
    decompose_convex,
    distribute_mass,
    fit_primitive,
    fit_primitives,
    hausdorff_distance,
    hull_decomposition,
    merge_vertices,
    read_mesh,
    repair_mesh,
    simplify_to_count,
    simplify_to_error,
    split_by_boxes,
    split_by_planes,
    split_components,
    write_robot_urdf,
    write_stl,
)
from roboyard.description.meshes.primitives import signed_distance, smallest_enclosing_ball
from roboyard.description.meshes.repair import merge_narrow_gaps
from roboyard.errors import DescriptionError, InputError, UnknownNameError
from roboyard.geometry import SE3

numbers = st.floats(-2.0, 2.0)
poses = st.builds(
    SE3.from_xyz_rpy, st.tuples(numbers, numbers, numbers), st.tuples(numbers, st.floats(-1.5, 1.5), numbers)
)
some = settings(max_examples=15)


def surface(mesh: trimesh.Trimesh) -> TriangleMesh:
    return merge_vertices(TriangleMesh(np.asarray(mesh.vertices, float), np.asarray(mesh.faces, np.int64)))


def box(x: float = 1.0, y: float = 2.0, z: float = 3.0) -> TriangleMesh:
    return surface(trimesh.creation.box((x, y, z)))


def torus(major: int = 48, minor: int = 24) -> TriangleMesh:
    return surface(trimesh.creation.torus(1.0, 0.3, major_sections=major, minor_sections=minor))


def cylinder(radius: float = 0.5, height: float = 2.0, sections: int = 64) -> TriangleMesh:
    return surface(trimesh.creation.cylinder(radius, height, sections=sections))


BALL = surface(trimesh.creation.icosphere(subdivisions=3))
SMOOTH_BALL = surface(trimesh.creation.icosphere(subdivisions=5))


# -- mass and inertia ------------------------------------------------------------------------------------------------
@given(st.tuples(*[st.floats(0.1, 3.0)] * 3), poses, st.floats(0.1, 50.0))
@some
def test_box_mass_properties_agree_with_closed_forms(size: tuple[float, float, float], T: SE3, mass: float) -> None:
    x, y, z = size
    found = compute_mass_properties(box(x, y, z).transformed(T), mass=mass)
    own = np.diag([mass * (y * y + z * z), mass * (x * x + z * z), mass * (x * x + y * y)]) / 12.0
    turn = T.rotation_matrix()
    np.testing.assert_allclose(found.inertia, turn @ own @ turn.T, atol=1e-9 * mass * 10)
    np.testing.assert_allclose(found.com, T.translation, atol=1e-9)
    assert found.volume == pytest.approx(x * y * z)
    assert found.density == pytest.approx(mass / (x * y * z))


@pytest.mark.parametrize(
    ("made", "volume", "moments"),
    [
        (SMOOTH_BALL, 4 / 3 * math.pi, (0.4, 0.4, 0.4)),
        (cylinder(sections=256), math.pi * 0.25 * 2, (1 / 16 + 4 / 12, 1 / 16 + 4 / 12, 1 / 8)),
        (torus(128, 64), 2 * math.pi**2 * 0.09, (0.5 + 5 / 8 * 0.09, 0.5 + 5 / 8 * 0.09, 1 + 3 / 4 * 0.09)),
    ],
    ids=["sphere", "cylinder", "torus"],
)
def test_round_solid_mass_properties_approach_closed_forms(
    made: TriangleMesh, volume: float, moments: tuple[float, ...]
) -> None:
    found = compute_mass_properties(made, mass=1.0)
    assert found.volume == pytest.approx(volume, rel=0.003)
    np.testing.assert_allclose(found.inertia, np.diag(moments), atol=0.003)
    np.testing.assert_allclose(found.principal_moments, sorted(moments), atol=0.003)


@given(poses, st.tuples(numbers, numbers, numbers))
@some
def test_mesh_inertia_obeys_the_parallel_axis_theorem(T: SE3, point: tuple[float, float, float]) -> None:
    """Halves of a body together are the body; moving the body moves its inertia; about a point both ways agree."""
    whole = compute_mass_properties(box(1, 1, 2).transformed(T), density=3.0)
    halves = [
        compute_mass_properties(box(1, 1, 1).transformed(T @ SE3(translation=(0, 0, z))), density=3.0)
        for z in (-0.5, 0.5)
    ]
    both = combine_mass_properties(halves)
    assert both.mass == pytest.approx(whole.mass)
    np.testing.assert_allclose(both.inertia, whole.inertia, atol=1e-9)
    np.testing.assert_allclose(
        both.inertia_at(np.array(point)), sum(half.inertia_at(np.array(point)) for half in halves), atol=1e-7
    )
    back = whole.transformed(T.inverse())
    np.testing.assert_allclose(back.inertia, compute_mass_properties(box(1, 1, 2), density=3.0).inertia, atol=1e-9)


def test_mass_properties_agree_with_trimesh() -> None:
    mesh = trimesh.creation.annulus(0.3, 0.5, 1.0)
    mesh.density = 2.0
    found = compute_mass_properties(surface(mesh), density=2.0)
    np.testing.assert_allclose(found.inertia, mesh.moment_inertia, rtol=1e-6, atol=1e-9)


def test_meshes_without_volume_are_refused() -> None:
    for options in ({}, {"mass": 1.0, "density": 1.0}, {"mass": -1.0}, {"mass": math.nan}, {"density": 0.0}):
        with pytest.raises(InputError, match="above zero"):
            compute_mass_properties(BALL, **options)
    with pytest.raises(InputError, match="outwards"):
        compute_mass_properties(TriangleMesh(BALL.vertices, BALL.faces[:, ::-1]), mass=1.0)


# -- open and crooked ------------------------------------------------------------------------------------------------
def test_open_surfaces_are_refused_or_closed_with_a_finding() -> None:
    holed = TriangleMesh(SMOOTH_BALL.vertices, np.delete(SMOOTH_BALL.faces, [0, 100, 101], axis=0))
    with pytest.raises(DescriptionError, match="open: .* hole.*--repair"):
        repair_mesh(holed, False, "ball.stl")
    mended, done = repair_mesh(holed, True, "ball.stl")
    assert mended.is_closed
    assert any("capped" in line for line in done)
    assert mended.volume == pytest.approx(SMOOTH_BALL.volume, rel=1e-3)


@given(st.sets(st.integers(0, len(BALL.faces) - 1), max_size=300))
@some
def test_flipped_triangles_are_repaired(crooked: set[int]) -> None:
    faces = BALL.faces.copy()
    faces[list(crooked)] = faces[list(crooked)][:, ::-1]
    mended, _ = repair_mesh(TriangleMesh(BALL.vertices, faces), True, "ball")
    assert mended.is_closed
    assert mended.volume == pytest.approx(BALL.volume)


def test_other_mesh_faults_are_repaired_or_named() -> None:
    inside_out, done = repair_mesh(TriangleMesh(BALL.vertices, BALL.faces[:, ::-1]), False, "ball")
    assert inside_out.volume == pytest.approx(BALL.volume)
    assert "inside out" in done[0]
    doubled = TriangleMesh(BALL.vertices, np.concatenate([BALL.faces, BALL.faces[:1], BALL.faces[:1, ::-1]]))
    assert repair_mesh(doubled, False, "ball")[0].volume == pytest.approx(BALL.volume)
    half = BALL.submesh(BALL.triangles.mean(axis=1)[:, 2] > 0.0)
    with pytest.raises(DescriptionError, match="guess"):
        repair_mesh(half, True, "half")
    fan = TriangleMesh(
        np.array([[0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [-1, -1, 0.0]]),
        np.array([[0, 1, 2], [0, 1, 3], [0, 1, 4]]),
    )
    with pytest.raises(DescriptionError):
        repair_mesh(fan, True, "fan")
    flat = TriangleMesh(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.0]]), np.array([[0, 1, 2], [0, 2, 1]]))
    with pytest.raises(DescriptionError, match="no volume"):
        repair_mesh(flat, True, "flat")


# -- split -----------------------------------------------------------------------------------------------------------
@given(poses, st.lists(st.tuples(numbers, numbers, numbers, st.floats(-0.5, 0.5)), min_size=1, max_size=3))
@some
def test_cut_meshes_are_closed_and_keep_volume_and_inertia(
    T: SE3, planes: list[tuple[float, float, float, float]]
) -> None:
    whole = torus().transformed(T)
    cuts = []
    for a, b, c, d in planes:
        normal = np.array([a, b, c + 0.01])
        normal /= np.linalg.norm(normal)
        cuts.append((normal, float(normal @ T.translation) + d))
    parts = split_by_planes(whole, cuts)
    assert all(part.is_closed for part in parts)
    assert sum(part.volume for part in parts) == pytest.approx(whole.volume, rel=1e-6)
    together = combine_mass_properties([compute_mass_properties(part, density=1.0) for part in parts])
    np.testing.assert_allclose(
        together.inertia, compute_mass_properties(whole, density=1.0).inertia, rtol=1e-5, atol=1e-6
    )


def test_box_cut_selects_its_interior() -> None:
    inner, rest = split_by_boxes(box(2, 2, 2), [(np.array([0, 0, 0.0]), np.array([5, 5, 5.0]))])
    assert inner.volume == pytest.approx(1.0)
    assert rest.volume == pytest.approx(7.0)
    with pytest.raises(DescriptionError, match="manifold"):
        split_by_planes(TriangleMesh(BALL.vertices, BALL.faces[1:]), [(np.eye(3)[0], 0.0)])


def test_components_split_and_join_again() -> None:
    parts = [box(), BALL.transformed(SE3(translation=(5, 0, 0))), torus().transformed(SE3(translation=(-5, 0, 0)))]
    found = split_components(concatenate_meshes(parts))
    assert [part.volume for part in found] == pytest.approx(sorted((part.volume for part in parts), reverse=True))
    assert len(concatenate_meshes(found).faces) == sum(len(part.faces) for part in parts)


def test_cavity_stays_with_its_body() -> None:
    cavity = TriangleMesh(BALL.vertices * 0.2, BALL.faces[:, ::-1])
    hollow, other = split_components(concatenate_meshes([box(), cavity, box().transformed(SE3(translation=(9, 0, 0)))]))
    assert sorted([hollow.volume, other.volume]) == pytest.approx([6.0 - 0.008 * BALL.volume, 6.0])


# -- distances and reduction -----------------------------------------------------------------------------------------
@given(st.tuples(numbers, numbers, numbers))
@settings(max_examples=50)
def test_mesh_distances_agree_with_a_box(point: tuple[float, float, float]) -> None:
    p, half = np.array(point), np.array([0.5, 1.0, 1.5])
    outside = np.linalg.norm(np.maximum(np.abs(p) - half, 0.0))
    truth = outside if outside > 0.0 else (half - np.abs(p)).min()
    assert MeshDistance(box()).distances(p[None])[0] == pytest.approx(truth, abs=1e-12)


def test_hausdorff_distance_is_a_metric() -> None:
    ball = surface(trimesh.creation.icosphere(subdivisions=4))
    larger = TriangleMesh(ball.vertices * 1.1, ball.faces)
    assert hausdorff_distance(ball, ball, 100) == pytest.approx(0.0, abs=1e-12)
    distance = hausdorff_distance(ball, larger, 1000)
    assert distance == hausdorff_distance(larger, ball, 1000)
    assert distance == pytest.approx(0.1, abs=1e-3)


def test_simplification_keeps_face_count_and_error_bound() -> None:
    whole = torus(36, 18)
    errors = []
    for triangles in (100, 300, 900):
        light = simplify_to_count(whole, triangles)
        assert len(light.mesh.faces) <= 1.02 * triangles
        # judged by other points than those it was measured at
        points = trimesh.sample.sample_surface(trimesh.Trimesh(whole.vertices, whole.faces), 5000, seed=3)[0]
        assert MeshDistance(light.mesh).distances(np.asarray(points)).max() <= 1.02 * light.error + 1e-9
        errors.append(light.error)
    assert errors[0] > errors[1] > errors[2]
    assert simplify_to_count(whole, len(whole.faces)).error == 0.0
    simplified = simplify_to_error(whole, 0.03)
    assert simplified.error <= 0.03
    assert len(simplified.mesh.faces) < len(whole.faces) / 2
    for invalid in (
        lambda: simplify_to_count(whole, 3),
        lambda: simplify_to_error(whole, 0.0),
        lambda: simplify_to_error(whole, math.nan),
    ):
        with pytest.raises(InputError):
            invalid()


# -- shapes ----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@given(poses)
@settings(max_examples=3)
def test_fitted_shapes_recover_their_own_parameters(T: SE3) -> None:
    boxed, rolled, rounded = (
        fit_primitive(box().transformed(T)),
        fit_primitive(cylinder().transformed(T)),
        fit_primitive(BALL.transformed(T)),
    )
    assert isinstance(boxed.shape, Box)
    np.testing.assert_allclose(sorted(boxed.shape.size), [1.0, 2.0, 3.0], atol=1e-6)
    assert isinstance(rolled.shape, Cylinder)
    assert (rolled.shape.radius, rolled.shape.length) == pytest.approx((0.5, 2.0), abs=1e-3)
    assert isinstance(rounded.shape, Sphere)
    assert rounded.shape.radius == pytest.approx(1.0, abs=1e-6)
    for found in (boxed, rolled, rounded):
        np.testing.assert_allclose(found.T_mesh_shape.translation, T.translation, atol=1e-5)


@given(st.integers(0, 10_000))
@settings(max_examples=8)
def test_fitted_shapes_enclose_the_mesh_and_give_their_error(seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(40, 3)) * [1.0, 0.5, 0.2]
    body = surface(trimesh.convex.convex_hull(points))
    for found in fit_primitives(body):
        beyond = signed_distance(found.shape, found.T_mesh_shape.inverse() @ body.vertices)
        assert beyond.max() <= 1e-9
        assert found.max_protrusion <= 1e-9
        assert found.volume_excess >= -1e-9
        assert found.volume == pytest.approx((1.0 + found.volume_excess) * body.volume)
        assert 0.0 <= found.max_gap < body.diagonal


@given(st.integers(0, 10_000), st.integers(2, 3))
@settings(max_examples=25)
def test_smallest_ball_touches_its_support_points(seed: int, dimensions: int) -> None:
    points = np.random.default_rng(seed).normal(size=(30, dimensions))
    centre, radius = smallest_enclosing_ball(points)
    away = np.linalg.norm(points - centre, axis=1)
    assert away.max() <= radius * (1 + 1e-9)
    carriers = points[away >= radius * (1 - 1e-7)] - centre
    # No step makes it smaller: whichever way the centre moves, some carrier gets farther.
    for direction in np.random.default_rng(seed + 1).normal(size=(200, dimensions)):
        assert (carriers @ direction).min() <= 1e-9


def test_hull_and_decomposition_enclose_the_mesh() -> None:
    hull = hull_decomposition(torus())
    assert hull.pieces[0].is_closed
    assert hull.max_protrusion <= 1e-9
    assert hull.volume_excess > 0.5
    assert decompose_convex(box(), 8).volume_excess == pytest.approx(0.0, abs=1e-9)  # convex already
    with pytest.raises(InputError):
        decompose_convex(torus(), 0)


@pytest.mark.slow
def test_decomposition_is_closer_than_the_hull_and_repeats() -> None:
    # An angle of two boxes, united: two pieces are enough.
    low, high = box(2.0, 1.0, 0.2), box(0.2, 1.0, 2.0).transformed(SE3(translation=(-0.9, 0, 0.9)))
    angle = surface(
        trimesh.boolean.union([trimesh.Trimesh(s.vertices, s.faces) for s in (low, high)], engine="manifold")
    )
    found, again = decompose_convex(angle, 4), decompose_convex(angle, 4)
    assert found.volume_excess < 0.1 < hull_decomposition(angle).volume_excess
    assert found.max_protrusion < 0.05
    assert len(found.pieces) <= 4
    assert all(np.array_equal(a.vertices, b.vertices) for a, b in zip(found.pieces, again.pieces, strict=True))
    boxes = approximate_collision(angle, ("box",), 2)
    assert len(boxes.shapes) == 2
    assert boxes.volume_excess < 0.1


def test_cover_takes_parts_one_by_one() -> None:
    pair = concatenate_meshes([box(), BALL.transformed(SE3(translation=(5, 0, 0)))])
    two = approximate_collision(pair, ("box", "sphere"), 2)
    assert {type(shape) for shape, _ in two.shapes} == {Box, Sphere}
    assert two.volume_excess < 0.01 < approximate_collision(pair, ("box",), 1).volume_excess
    assert two.max_protrusion < 1e-6
    for bad, error in ((("ball",), UnknownNameError), (("hull", "box"), InputError), ((), InputError)):
        with pytest.raises(error):
            approximate_collision(pair, bad)
    flat = TriangleMesh(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.0]]), np.array([[0, 1, 2]]))
    with pytest.raises(DescriptionError, match="flat"):
        approximate_collision(flat)


# -- place -----------------------------------------------------------------------------------------------------------
@given(poses, st.sampled_from(["com", "base", "centre"]), st.tuples(numbers, numbers, numbers))
@some
def test_changing_the_origin_is_an_isometry(T: SE3, at: str, rpy: tuple[float, float, float]) -> None:
    old = torus().transformed(T)
    new = old.transformed(compute_origin_transform(old, at, rpy))
    assert new.volume == pytest.approx(old.volume)
    assert new.area == pytest.approx(old.area)
    back = new.transformed(compute_origin_transform(old, at, rpy).inverse())
    np.testing.assert_allclose(back.vertices, old.vertices, atol=1e-9)
    if at == "com":
        np.testing.assert_allclose(compute_mass_properties(new, mass=1.0).com, 0.0, atol=1e-9)


def test_base_origin_lies_on_the_ground() -> None:
    old = box().transformed(SE3(translation=(3, 2, 1)))
    low, high = old.transformed(compute_origin_transform(old, "base")).bounds
    np.testing.assert_allclose([low, high], [[-0.5, -1, 0], [0.5, 1, 3]], atol=1e-12)
    np.testing.assert_allclose(compute_origin_transform(old, np.array([1.0, 2, 3])) @ np.array([1.0, 2, 3]), 0.0)
    for bad in ("top", np.array([1.0, 2.0]), np.array([0, 0, np.nan])):
        with pytest.raises(InputError):
            compute_origin_transform(old, bad)


# -- files -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["stl", "obj", "ply", "off", "glb", "ascii"])
def test_mesh_files_are_read_in_their_unit(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"ball.{'stl' if kind == 'ascii' else kind}"
    trimesh.Trimesh(BALL.vertices * 1000.0, BALL.faces).export(file, file_type="stl_ascii" if kind == "ascii" else kind)
    found = read_mesh(file, "mm")
    assert found.is_closed
    assert found.volume == pytest.approx(BALL.volume, rel=1e-4)


def test_written_meshes_are_read_back_unchanged(tmp_path: Path) -> None:
    write_stl(tmp_path / "sub" / "torus.stl", torus())
    found = read_mesh(tmp_path / "sub" / "torus.stl")
    assert len(found.faces) == len(torus().faces)
    assert found.volume == pytest.approx(torus().volume, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.stl", b"", "mesh"),
        ("cut.stl", b"\0" * 80 + (10**9).to_bytes(4, "little") + b"\0" * 100, "mesh"),
        ("crowd.stl", b"\0" * 80 + (3_000_000).to_bytes(4, "little"), "triangles"),
        ("points.stl", b"\0" * 80 + (2).to_bytes(4, "little") + b"\0" * 100, "area"),
        ("nan.stl", b"\0" * 80 + (1).to_bytes(4, "little") + b"\xff" * 50, "far"),
        ("text.obj", b"v 0 0 0\nf 1 2 99\n", "mesh|vertex|triangle"),
        ("noise.ply", bytes(range(256)), "mesh"),
        ("noise.glb", b"glTF" + bytes(range(200)), "mesh"),
        ("robot.urdf", b"<robot/>", "kind"),
    ],
)
def test_hostile_mesh_files_are_refused_with_a_reason(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    if name == "crowd.stl":
        with file.open("r+b") as stream:
            stream.truncate(84 + 50 * 3_000_000)
    with pytest.raises(DescriptionError, match=words):
        read_mesh(file)


@given(st.binary(max_size=300), st.sampled_from(["stl", "obj", "ply", "off", "glb"]))
@settings(max_examples=60)
def test_arbitrary_bytes_are_refused_or_a_mesh(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, kind: str
) -> None:
    file = tmp_path_factory.mktemp("noise") / f"a.{kind}"
    file.write_bytes(noise)
    try:
        assert read_mesh(file).area > 0.0
    except DescriptionError as error:
        assert str(file) in str(error)


# -- robots ----------------------------------------------------------------------------------------------------------
def test_robot_of_parts_keeps_mass_and_inertia(tmp_path: Path) -> None:
    parts = {
        "body": box(0.4, 0.3, 0.1),
        "wheel": cylinder(0.1, 0.05).transformed(SE3.from_xyz_rpy((0.1, 0.2, 0), (1.57, 0, 0))),
    }
    masses = distribute_mass({name: part.volume for name, part in parts.items()}, 5.0, {"wheel": 0.5})
    assert masses == {"body": 4.5, "wheel": 0.5}
    write_robot_urdf(parts, masses, {"wheel": LinkAttachment("continuous", "y")}, tmp_path, "cart", max_triangles=200)
    model = load_model(tmp_path / "cart.urdf")
    assert not model.warnings
    assert model.mass == pytest.approx(5.0)
    joint = model.joint("wheel_joint")
    assert (joint.type, joint.axes[0].xyz) == ("continuous", (0.0, 1.0, 0.0))
    truth = combine_mass_properties([compute_mass_properties(part, mass=masses[name]) for name, part in parts.items()])
    centre = sum(
        link.inertial.mass * (link.T_model_link @ link.inertial.T_link_com.translation) for link in model.links
    )
    body = model.link("body").T_model_link  # the model's frame is the base's, which lies in its centre of mass
    shift = compute_mass_properties(parts["body"], mass=1.0).com - body.translation
    np.testing.assert_allclose(centre / 5.0 + shift, truth.com, atol=1e-6)
    assert [type(c.geometry) for link in model.links for c in link.collisions] == [Box, Cylinder]
    assert all(link.visuals[0].geometry.file.is_file() for link in model.links)


def test_invalid_masses_and_joints_are_refused(tmp_path: Path) -> None:
    volumes = {"a": 1.0, "b": 2.0}
    assert distribute_mass(volumes, 3.0, {}) == pytest.approx({"a": 1.0, "b": 2.0})
    for total, weighed in ((None, {}), (1.0, {"a": 2.0}), (3.0, {"a": -1.0}), (math.nan, {})):
        with pytest.raises(InputError):
            distribute_mass(volumes, total, weighed)
    with pytest.raises(UnknownNameError, match="a, b"):
        distribute_mass(volumes, 1.0, {"c": 0.1})
    parts = {"a": box(), "b": BALL, "c": box()}
    ring = {"b": LinkAttachment(parent="c"), "c": LinkAttachment(parent="b")}
    with pytest.raises(InputError, match="itself"):
        write_robot_urdf(parts, dict.fromkeys(parts, 1.0), ring, tmp_path, "ring", max_triangles=100)
    with pytest.raises(UnknownNameError):
        write_robot_urdf(parts, dict.fromkeys(parts, 1.0), {"d": LinkAttachment()}, tmp_path, "ring")
    with pytest.raises(UnknownNameError):
        LinkAttachment("welded")
    with pytest.raises(UnknownNameError):
        LinkAttachment("fixed", "w")


def test_external_meshes_are_read(external_data: Path) -> None:
    """Closed, or refused with a reason; what is closed agrees with trimesh's own integrals."""
    folder = external_data / "descriptions"
    closed = 0
    for file in sorted(folder.rglob("*.[sS][tT][lL]"))[::6][:40]:
        try:
            made, _ = repair_mesh(read_mesh(file), True, str(file))
        except DescriptionError as error:
            assert str(file) in str(error)
            continue
        closed += 1
        found = compute_mass_properties(made, mass=1.0)
        mesh = trimesh.Trimesh(made.vertices, made.faces, process=False)
        np.testing.assert_allclose(found.com, mesh.center_mass, atol=1e-6 * made.diagonal)
        assert found.principal_moments[0] + found.principal_moments[1] >= found.principal_moments[2] * (1 - 1e-9)
    assert closed > 5


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.2, 1.0))
def test_dense_hull_is_fitted_as_tightly_as_a_sparse_one(seed: int, flat: float) -> None:
    """A fine ellipsoid, turned anyhow: frames are judged by few of its corners, and still hold all of them."""
    random = np.random.default_rng(seed)
    ball = trimesh.creation.icosphere(subdivisions=5)
    turned = trimesh.transformations.random_rotation_matrix(random.random(3))[:3, :3]
    corners = (ball.vertices * [1.0, flat, 0.5 * flat]) @ turned.T
    surface = TriangleMesh(corners, ball.faces)
    for one in fit_primitives(surface):
        assert signed_distance(one.shape, one.T_mesh_shape.inverse() @ corners).max() < 1e-9
        assert one.max_protrusion < 1e-9
    # no box about an ellipsoid is smaller than that of its axes, and the tightest found is near it
    box = next(one for one in fit_primitives(surface, ("box",)))
    assert 1.0 - 1e-2 <= box.volume / (4.0 * flat * flat) <= 1.15


def test_coinciding_triangles_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "lots.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\n" + "f 1 2 3\n" * 1000)
    surface = read_mesh(path)
    assert len(simplify_to_count(merge_narrow_gaps(surface), 50).mesh.faces) > 0
    with pytest.raises(DescriptionError, match="no volume"):
        repair_mesh(merge_narrow_gaps(surface), False, "lots.obj")


def test_gltf_reads_only_files_beside_it(tmp_path: Path) -> None:
    box = trimesh.creation.box((1.0, 2.0, 3.0))
    for name, data in trimesh.exchange.gltf.export_gltf(trimesh.Scene(box)).items():
        (tmp_path / name).write_bytes(data)
    file = next(tmp_path.glob("*.gltf"))
    assert compute_mass_properties(read_mesh(file), 1.0).volume == pytest.approx(6.0)
    outside = tmp_path / "sub" / "model.gltf"
    outside.parent.mkdir()
    for name in tmp_path.glob("*.bin"):
        text = file.read_text().replace(f'"{name.name}"', f'"../{name.name}"')
        outside.write_text(text)
    with pytest.raises(DescriptionError, match="not beside it"):
        read_mesh(outside)
