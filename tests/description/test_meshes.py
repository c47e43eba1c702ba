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
few_examples = settings(max_examples=15)


def make_surface(mesh: trimesh.Trimesh) -> TriangleMesh:
    return merge_vertices(TriangleMesh(np.asarray(mesh.vertices, float), np.asarray(mesh.faces, np.int64)))


def make_box(x: float = 1.0, y: float = 2.0, z: float = 3.0) -> TriangleMesh:
    return make_surface(trimesh.creation.box((x, y, z)))


def make_torus(major: int = 48, minor: int = 24) -> TriangleMesh:
    return make_surface(trimesh.creation.torus(1.0, 0.3, major_sections=major, minor_sections=minor))


def make_cylinder(radius: float = 0.5, height: float = 2.0, sections: int = 64) -> TriangleMesh:
    return make_surface(trimesh.creation.cylinder(radius, height, sections=sections))


BALL = make_surface(trimesh.creation.icosphere(subdivisions=3))
SMOOTH_BALL = make_surface(trimesh.creation.icosphere(subdivisions=5))


# -- mass and inertia ------------------------------------------------------------------------------------------------
@given(st.tuples(*[st.floats(0.1, 3.0)] * 3), poses, st.floats(0.1, 50.0))
@few_examples
def test_box_mass_properties_agree_with_closed_forms(size: tuple[float, float, float], T: SE3, mass: float) -> None:
    x, y, z = size
    properties = compute_mass_properties(make_box(x, y, z).transformed(T), mass=mass)
    box_inertia = np.diag([mass * (y * y + z * z), mass * (x * x + z * z), mass * (x * x + y * y)]) / 12.0
    R = T.rotation_matrix()
    np.testing.assert_allclose(properties.inertia, R @ box_inertia @ R.T, atol=1e-9 * mass * 10)
    np.testing.assert_allclose(properties.com, T.translation, atol=1e-9)
    assert properties.volume == pytest.approx(x * y * z)
    assert properties.density == pytest.approx(mass / (x * y * z))


@pytest.mark.parametrize(
    ("mesh", "volume", "moments"),
    [
        (SMOOTH_BALL, 4 / 3 * math.pi, (0.4, 0.4, 0.4)),
        (make_cylinder(sections=256), math.pi * 0.25 * 2, (1 / 16 + 4 / 12, 1 / 16 + 4 / 12, 1 / 8)),
        (make_torus(128, 64), 2 * math.pi**2 * 0.09, (0.5 + 5 / 8 * 0.09, 0.5 + 5 / 8 * 0.09, 1 + 3 / 4 * 0.09)),
    ],
    ids=["sphere", "cylinder", "torus"],
)
def test_round_solid_mass_properties_approach_closed_forms(
    mesh: TriangleMesh, volume: float, moments: tuple[float, ...]
) -> None:
    properties = compute_mass_properties(mesh, mass=1.0)
    assert properties.volume == pytest.approx(volume, rel=0.003)
    np.testing.assert_allclose(properties.inertia, np.diag(moments), atol=0.003)
    np.testing.assert_allclose(properties.principal_moments, sorted(moments), atol=0.003)


@given(poses, st.tuples(numbers, numbers, numbers))
@few_examples
def test_mesh_inertia_obeys_the_parallel_axis_theorem(T: SE3, point: tuple[float, float, float]) -> None:
    """Combined halves equal the body, also around another point, and a transform of the body transforms its inertia."""
    body = compute_mass_properties(make_box(1, 1, 2).transformed(T), density=3.0)
    halves = [
        compute_mass_properties(make_box(1, 1, 1).transformed(T @ SE3(translation=(0, 0, z))), density=3.0)
        for z in (-0.5, 0.5)
    ]
    combined = combine_mass_properties(halves)
    assert combined.mass == pytest.approx(body.mass)
    np.testing.assert_allclose(combined.inertia, body.inertia, atol=1e-9)
    np.testing.assert_allclose(
        combined.inertia_at(np.array(point)), sum(half.inertia_at(np.array(point)) for half in halves), atol=1e-7
    )
    transformed_back = body.transformed(T.inverse())
    np.testing.assert_allclose(
        transformed_back.inertia, compute_mass_properties(make_box(1, 1, 2), density=3.0).inertia, atol=1e-9
    )


def test_mass_properties_agree_with_trimesh() -> None:
    mesh = trimesh.creation.annulus(0.3, 0.5, 1.0)
    mesh.density = 2.0
    properties = compute_mass_properties(make_surface(mesh), density=2.0)
    np.testing.assert_allclose(properties.inertia, mesh.moment_inertia, rtol=1e-6, atol=1e-9)


def test_meshes_without_volume_are_refused() -> None:
    for options in ({}, {"mass": 1.0, "density": 1.0}, {"mass": -1.0}, {"mass": math.nan}, {"density": 0.0}):
        with pytest.raises(InputError, match="above zero"):
            compute_mass_properties(BALL, **options)
    with pytest.raises(InputError, match="outwards"):
        compute_mass_properties(TriangleMesh(BALL.vertices, BALL.faces[:, ::-1]), mass=1.0)


# -- repair ----------------------------------------------------------------------------------------------------------
def test_open_meshes_are_refused_or_closed_by_repair() -> None:
    open_mesh = TriangleMesh(SMOOTH_BALL.vertices, np.delete(SMOOTH_BALL.faces, [0, 100, 101], axis=0))
    with pytest.raises(DescriptionError, match="open: .* hole.*--repair"):
        repair_mesh(open_mesh, False, "ball.stl")
    repaired, repairs = repair_mesh(open_mesh, True, "ball.stl")
    assert repaired.is_closed
    assert any("capped" in line for line in repairs)
    assert repaired.volume == pytest.approx(SMOOTH_BALL.volume, rel=1e-3)


@given(st.sets(st.integers(0, len(BALL.faces) - 1), max_size=300))
@few_examples
def test_flipped_triangles_are_repaired(flipped: set[int]) -> None:
    faces = BALL.faces.copy()
    faces[list(flipped)] = faces[list(flipped)][:, ::-1]
    repaired, _ = repair_mesh(TriangleMesh(BALL.vertices, faces), True, "ball")
    assert repaired.is_closed
    assert repaired.volume == pytest.approx(BALL.volume)


def test_other_mesh_faults_are_repaired_or_named() -> None:
    reoriented, repairs = repair_mesh(TriangleMesh(BALL.vertices, BALL.faces[:, ::-1]), False, "ball")
    assert reoriented.volume == pytest.approx(BALL.volume)
    assert "inside out" in repairs[0]
    with_duplicates = TriangleMesh(BALL.vertices, np.concatenate([BALL.faces, BALL.faces[:1], BALL.faces[:1, ::-1]]))
    assert repair_mesh(with_duplicates, False, "ball")[0].volume == pytest.approx(BALL.volume)
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
@few_examples
def test_split_meshes_are_closed_and_keep_volume_and_inertia(
    T: SE3, planes: list[tuple[float, float, float, float]]
) -> None:
    mesh = make_torus().transformed(T)
    cuts = []
    for a, b, c, d in planes:
        normal = np.array([a, b, c + 0.01])
        normal /= np.linalg.norm(normal)
        cuts.append((normal, float(normal @ T.translation) + d))
    parts = split_by_planes(mesh, cuts)
    assert all(part.is_closed for part in parts)
    assert sum(part.volume for part in parts) == pytest.approx(mesh.volume, rel=1e-6)
    combined = combine_mass_properties([compute_mass_properties(part, density=1.0) for part in parts])
    np.testing.assert_allclose(
        combined.inertia, compute_mass_properties(mesh, density=1.0).inertia, rtol=1e-5, atol=1e-6
    )


def test_split_by_boxes_selects_the_interior() -> None:
    inner, outer = split_by_boxes(make_box(2, 2, 2), [(np.array([0, 0, 0.0]), np.array([5, 5, 5.0]))])
    assert inner.volume == pytest.approx(1.0)
    assert outer.volume == pytest.approx(7.0)
    with pytest.raises(DescriptionError, match="manifold"):
        split_by_planes(TriangleMesh(BALL.vertices, BALL.faces[1:]), [(np.eye(3)[0], 0.0)])


def test_components_are_split_and_concatenated_again() -> None:
    parts = [
        make_box(),
        BALL.transformed(SE3(translation=(5, 0, 0))),
        make_torus().transformed(SE3(translation=(-5, 0, 0))),
    ]
    components = split_components(concatenate_meshes(parts))
    assert [part.volume for part in components] == pytest.approx(sorted((part.volume for part in parts), reverse=True))
    assert len(concatenate_meshes(components).faces) == sum(len(part.faces) for part in parts)


def test_cavity_belongs_to_its_component() -> None:
    cavity = TriangleMesh(BALL.vertices * 0.2, BALL.faces[:, ::-1])
    hollow, solid = split_components(
        concatenate_meshes([make_box(), cavity, make_box().transformed(SE3(translation=(9, 0, 0)))])
    )
    assert sorted([hollow.volume, solid.volume]) == pytest.approx([6.0 - 0.008 * BALL.volume, 6.0])


# -- distances and reduction -----------------------------------------------------------------------------------------
@given(st.tuples(numbers, numbers, numbers))
@settings(max_examples=50)
def test_mesh_distances_agree_with_a_box(point: tuple[float, float, float]) -> None:
    p, half = np.array(point), np.array([0.5, 1.0, 1.5])
    outside = np.linalg.norm(np.maximum(np.abs(p) - half, 0.0))
    expected = outside if outside > 0.0 else (half - np.abs(p)).min()
    assert MeshDistance(make_box()).distances(p[None])[0] == pytest.approx(expected, abs=1e-12)


def test_hausdorff_distance_is_a_metric() -> None:
    ball = make_surface(trimesh.creation.icosphere(subdivisions=4))
    larger = TriangleMesh(ball.vertices * 1.1, ball.faces)
    assert hausdorff_distance(ball, ball, 100) == pytest.approx(0.0, abs=1e-12)
    distance = hausdorff_distance(ball, larger, 1000)
    assert distance == hausdorff_distance(larger, ball, 1000)
    assert distance == pytest.approx(0.1, abs=1e-3)


def test_simplification_keeps_face_count_and_error_bound() -> None:
    mesh = make_torus(36, 18)
    errors = []
    for triangles in (100, 300, 900):
        reduced = simplify_to_count(mesh, triangles)
        assert len(reduced.mesh.faces) <= 1.02 * triangles
        # The error is checked at other points than those at which it was measured.
        points = trimesh.sample.sample_surface(trimesh.Trimesh(mesh.vertices, mesh.faces), 5000, seed=3)[0]
        assert MeshDistance(reduced.mesh).distances(np.asarray(points)).max() <= 1.02 * reduced.error + 1e-9
        errors.append(reduced.error)
    assert errors[0] > errors[1] > errors[2]
    assert simplify_to_count(mesh, len(mesh.faces)).error == 0.0
    simplified = simplify_to_error(mesh, 0.03)
    assert simplified.error <= 0.03
    assert len(simplified.mesh.faces) < len(mesh.faces) / 2
    for invalid in (
        lambda: simplify_to_count(mesh, 3),
        lambda: simplify_to_error(mesh, 0.0),
        lambda: simplify_to_error(mesh, math.nan),
    ):
        with pytest.raises(InputError):
            invalid()


# -- shapes ----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@given(poses)
@settings(max_examples=3)
def test_fitted_shapes_recover_their_own_parameters(T: SE3) -> None:
    fitted_box, fitted_cylinder, fitted_sphere = (
        fit_primitive(make_box().transformed(T)),
        fit_primitive(make_cylinder().transformed(T)),
        fit_primitive(BALL.transformed(T)),
    )
    assert isinstance(fitted_box.shape, Box)
    np.testing.assert_allclose(sorted(fitted_box.shape.size), [1.0, 2.0, 3.0], atol=1e-6)
    assert isinstance(fitted_cylinder.shape, Cylinder)
    assert (fitted_cylinder.shape.radius, fitted_cylinder.shape.length) == pytest.approx((0.5, 2.0), abs=1e-3)
    assert isinstance(fitted_sphere.shape, Sphere)
    assert fitted_sphere.shape.radius == pytest.approx(1.0, abs=1e-6)
    for primitive in (fitted_box, fitted_cylinder, fitted_sphere):
        np.testing.assert_allclose(primitive.T_mesh_shape.translation, T.translation, atol=1e-5)


@given(st.integers(0, 10_000))
@settings(max_examples=8)
def test_fitted_shapes_enclose_the_mesh_and_state_their_error(seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(40, 3)) * [1.0, 0.5, 0.2]
    body = make_surface(trimesh.convex.convex_hull(points))
    for primitive in fit_primitives(body):
        protrusions = signed_distance(primitive.shape, primitive.T_mesh_shape.inverse() @ body.vertices)
        assert protrusions.max() <= 1e-9
        assert primitive.max_protrusion <= 1e-9
        assert primitive.volume_excess >= -1e-9
        assert primitive.volume == pytest.approx((1.0 + primitive.volume_excess) * body.volume)
        assert 0.0 <= primitive.max_gap < body.diagonal


@given(st.integers(0, 10_000), st.integers(2, 3))
@settings(max_examples=25)
def test_smallest_ball_touches_its_support_points(seed: int, dimensions: int) -> None:
    points = np.random.default_rng(seed).normal(size=(30, dimensions))
    center, radius = smallest_enclosing_ball(points)
    distances = np.linalg.norm(points - center, axis=1)
    assert distances.max() <= radius * (1 + 1e-9)
    support_vectors = points[distances >= radius * (1 - 1e-7)] - center
    # The radius is minimal: a step of the center in any direction increases the distance to a support point.
    for direction in np.random.default_rng(seed + 1).normal(size=(200, dimensions)):
        assert (support_vectors @ direction).min() <= 1e-9


def test_hull_and_decomposition_enclose_the_mesh() -> None:
    hull = hull_decomposition(make_torus())
    assert hull.pieces[0].is_closed
    assert hull.max_protrusion <= 1e-9
    assert hull.volume_excess > 0.5
    assert decompose_convex(make_box(), 8).volume_excess == pytest.approx(0.0, abs=1e-9)  # a convex mesh
    with pytest.raises(InputError):
        decompose_convex(make_torus(), 0)


@pytest.mark.slow
def test_decomposition_is_closer_than_the_hull_and_repeats() -> None:
    # The union of two boxes at a right angle consists of two convex pieces.
    low, high = make_box(2.0, 1.0, 0.2), make_box(0.2, 1.0, 2.0).transformed(SE3(translation=(-0.9, 0, 0.9)))
    angle = make_surface(
        trimesh.boolean.union([trimesh.Trimesh(s.vertices, s.faces) for s in (low, high)], engine="manifold")
    )
    first, second = decompose_convex(angle, 4), decompose_convex(angle, 4)
    assert first.volume_excess < 0.1 < hull_decomposition(angle).volume_excess
    assert first.max_protrusion < 0.05
    assert len(first.pieces) <= 4
    assert all(np.array_equal(a.vertices, b.vertices) for a, b in zip(first.pieces, second.pieces, strict=True))
    boxes = approximate_collision(angle, ("box",), 2)
    assert len(boxes.shapes) == 2
    assert boxes.volume_excess < 0.1


def test_collision_approximation_fits_each_component() -> None:
    pair = concatenate_meshes([make_box(), BALL.transformed(SE3(translation=(5, 0, 0)))])
    approximation = approximate_collision(pair, ("box", "sphere"), 2)
    assert {type(shape) for shape, _ in approximation.shapes} == {Box, Sphere}
    assert approximation.volume_excess < 0.01 < approximate_collision(pair, ("box",), 1).volume_excess
    assert approximation.max_protrusion < 1e-6
    for shape_types, error in ((("ball",), UnknownNameError), (("hull", "box"), InputError), ((), InputError)):
        with pytest.raises(error):
            approximate_collision(pair, shape_types)
    flat = TriangleMesh(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.0]]), np.array([[0, 1, 2]]))
    with pytest.raises(DescriptionError, match="flat"):
        approximate_collision(flat)


# -- place -----------------------------------------------------------------------------------------------------------
@given(poses, st.sampled_from(["com", "base", "centre"]), st.tuples(numbers, numbers, numbers))
@few_examples
def test_changing_the_origin_is_an_isometry(T: SE3, origin: str, rpy: tuple[float, float, float]) -> None:
    mesh = make_torus().transformed(T)
    moved_mesh = mesh.transformed(compute_origin_transform(mesh, origin, rpy))
    assert moved_mesh.volume == pytest.approx(mesh.volume)
    assert moved_mesh.area == pytest.approx(mesh.area)
    restored = moved_mesh.transformed(compute_origin_transform(mesh, origin, rpy).inverse())
    np.testing.assert_allclose(restored.vertices, mesh.vertices, atol=1e-9)
    if origin == "com":
        np.testing.assert_allclose(compute_mass_properties(moved_mesh, mass=1.0).com, 0.0, atol=1e-9)


def test_base_origin_is_below_the_center_at_the_lowest_point() -> None:
    mesh = make_box().transformed(SE3(translation=(3, 2, 1)))
    low, high = mesh.transformed(compute_origin_transform(mesh, "base")).bounds
    np.testing.assert_allclose([low, high], [[-0.5, -1, 0], [0.5, 1, 3]], atol=1e-12)
    np.testing.assert_allclose(compute_origin_transform(mesh, np.array([1.0, 2, 3])) @ np.array([1.0, 2, 3]), 0.0)
    for origin in ("top", np.array([1.0, 2.0]), np.array([0, 0, np.nan])):
        with pytest.raises(InputError):
            compute_origin_transform(mesh, origin)


# -- files -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["stl", "obj", "ply", "off", "glb", "ascii"])
def test_mesh_files_are_read_in_their_unit(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"ball.{'stl' if kind == 'ascii' else kind}"
    trimesh.Trimesh(BALL.vertices * 1000.0, BALL.faces).export(file, file_type="stl_ascii" if kind == "ascii" else kind)
    mesh = read_mesh(file, "mm")
    assert mesh.is_closed
    assert mesh.volume == pytest.approx(BALL.volume, rel=1e-4)


def test_written_meshes_are_read_back_unchanged(tmp_path: Path) -> None:
    write_stl(tmp_path / "sub" / "torus.stl", make_torus())
    mesh = read_mesh(tmp_path / "sub" / "torus.stl")
    assert len(mesh.faces) == len(make_torus().faces)
    assert mesh.volume == pytest.approx(make_torus().volume, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "content", "message"),
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
def test_hostile_mesh_files_are_refused_with_a_reason(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    if name == "crowd.stl":
        with file.open("r+b") as stream:
            stream.truncate(84 + 50 * 3_000_000)
    with pytest.raises(DescriptionError, match=message):
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
def test_robot_from_meshes_keeps_mass_and_center_of_mass(tmp_path: Path) -> None:
    parts = {
        "body": make_box(0.4, 0.3, 0.1),
        "wheel": make_cylinder(0.1, 0.05).transformed(SE3.from_xyz_rpy((0.1, 0.2, 0), (1.57, 0, 0))),
    }
    masses = distribute_mass({name: part.volume for name, part in parts.items()}, 5.0, {"wheel": 0.5})
    assert masses == {"body": 4.5, "wheel": 0.5}
    write_robot_urdf(parts, masses, {"wheel": LinkAttachment("continuous", "y")}, tmp_path, "cart", max_triangles=200)
    model = load_model(tmp_path / "cart.urdf")
    assert not model.warnings
    assert model.mass == pytest.approx(5.0)
    joint = model.joint("wheel_joint")
    assert (joint.type, joint.axes[0].xyz) == ("continuous", (0.0, 1.0, 0.0))
    expected = combine_mass_properties(
        [compute_mass_properties(part, mass=masses[name]) for name, part in parts.items()]
    )
    weighted_center = sum(
        link.inertial.mass * (link.T_model_link @ link.inertial.T_link_com.translation) for link in model.links
    )
    body = model.link("body").T_model_link  # the model frame is that of the base, at its center of mass
    shift = compute_mass_properties(parts["body"], mass=1.0).com - body.translation
    np.testing.assert_allclose(weighted_center / 5.0 + shift, expected.com, atol=1e-6)
    assert [type(c.geometry) for link in model.links for c in link.collisions] == [Box, Cylinder]
    assert all(link.visuals[0].geometry.file.is_file() for link in model.links)


def test_invalid_masses_and_joints_are_refused(tmp_path: Path) -> None:
    volumes = {"a": 1.0, "b": 2.0}
    assert distribute_mass(volumes, 3.0, {}) == pytest.approx({"a": 1.0, "b": 2.0})
    for total, given_masses in ((None, {}), (1.0, {"a": 2.0}), (3.0, {"a": -1.0}), (math.nan, {})):
        with pytest.raises(InputError):
            distribute_mass(volumes, total, given_masses)
    with pytest.raises(UnknownNameError, match="a, b"):
        distribute_mass(volumes, 1.0, {"c": 0.1})
    parts = {"a": make_box(), "b": BALL, "c": make_box()}
    cyclic_attachments = {"b": LinkAttachment(parent="c"), "c": LinkAttachment(parent="b")}
    with pytest.raises(InputError, match="itself"):
        write_robot_urdf(parts, dict.fromkeys(parts, 1.0), cyclic_attachments, tmp_path, "ring", max_triangles=100)
    with pytest.raises(UnknownNameError):
        write_robot_urdf(parts, dict.fromkeys(parts, 1.0), {"d": LinkAttachment()}, tmp_path, "ring")
    with pytest.raises(UnknownNameError):
        LinkAttachment("welded")
    with pytest.raises(UnknownNameError):
        LinkAttachment("fixed", "w")


def test_external_meshes_are_read(external_data: Path) -> None:
    """External meshes are closed or refused with a reason; mass properties of closed ones agree with trimesh."""
    folder = external_data / "descriptions"
    closed = 0
    for file in sorted(folder.rglob("*.[sS][tT][lL]"))[::6][:40]:
        try:
            mesh, _ = repair_mesh(read_mesh(file), True, str(file))
        except DescriptionError as error:
            assert str(file) in str(error)
            continue
        closed += 1
        properties = compute_mass_properties(mesh, mass=1.0)
        reference = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
        np.testing.assert_allclose(properties.com, reference.center_mass, atol=1e-6 * mesh.diagonal)
        assert properties.principal_moments[0] + properties.principal_moments[1] >= properties.principal_moments[2] * (
            1 - 1e-9
        )
    assert closed > 5


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.2, 1.0))
def test_dense_hull_is_fitted_as_tightly_as_a_sparse_one(seed: int, flat: float) -> None:
    """The fit to a dense rotated ellipsoid evaluates few of its vertices, but encloses all of them."""
    random = np.random.default_rng(seed)
    ball = trimesh.creation.icosphere(subdivisions=5)
    rotation = trimesh.transformations.random_rotation_matrix(random.random(3))[:3, :3]
    corners = (ball.vertices * [1.0, flat, 0.5 * flat]) @ rotation.T
    ellipsoid = TriangleMesh(corners, ball.faces)
    for primitive in fit_primitives(ellipsoid):
        assert signed_distance(primitive.shape, primitive.T_mesh_shape.inverse() @ corners).max() < 1e-9
        assert primitive.max_protrusion < 1e-9
    # The smallest box around an ellipsoid is aligned with its axes; the fitted one is close to it.
    fitted_box = next(primitive for primitive in fit_primitives(ellipsoid, ("box",)))
    assert 1.0 - 1e-2 <= fitted_box.volume / (4.0 * flat * flat) <= 1.15


def test_coinciding_triangles_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "lots.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\n" + "f 1 2 3\n" * 1000)
    mesh = read_mesh(path)
    assert len(simplify_to_count(merge_narrow_gaps(mesh), 50).mesh.faces) > 0
    with pytest.raises(DescriptionError, match="no volume"):
        repair_mesh(merge_narrow_gaps(mesh), False, "lots.obj")


def test_gltf_reads_only_files_in_its_folder(tmp_path: Path) -> None:
    mesh = trimesh.creation.box((1.0, 2.0, 3.0))
    for name, data in trimesh.exchange.gltf.export_gltf(trimesh.Scene(mesh)).items():
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
