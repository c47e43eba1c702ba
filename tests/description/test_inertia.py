"""Implausible inertia for the mass and shapes of a link causes a warning and is repaired on request."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.descriptions import sdf_model, urdf

from roboyard.description import Box, Capsule, Cone, Cylinder, Ellipsoid, Model, Sphere, load_model
from roboyard.description.inertia import (
    collisions_inertia,
    estimate_inertia,
    inertia_matrix,
    nearest_physical_inertia,
    shape_inertia,
)
from roboyard.geometry import SE3

EDGES = st.floats(0.01, 2.0)
ANGLES = st.floats(-3.0, 3.0)
SHAPES = st.one_of(
    st.tuples(EDGES, EDGES, EDGES).map(lambda e: f'<box size="{e[0]} {e[1]} {e[2]}"/>'),
    EDGES.map(lambda r: f'<sphere radius="{r}"/>'),
    st.tuples(EDGES, EDGES).map(lambda e: f'<cylinder radius="{e[0]}" length="{e[1]}"/>'),
    st.tuples(EDGES, EDGES).map(lambda e: f'<capsule radius="{e[0]}" length="{e[1]}"/>'),
)
PLACED_SHAPES = st.tuples(SHAPES, ANGLES, ANGLES, st.floats(-1.0, 1.0)).map(
    lambda p: f'<collision><origin xyz="{p[3]} 0 0.1" rpy="{p[1]} {p[2]} 0.4"/><geometry>{p[0]}</geometry></collision>'
)
BOX = '<collision><geometry><box size="0.14 0.14 0.14"/></geometry></collision>'


def write_inertial_urdf(mass: float, inertia: np.ndarray, shapes: str, com: tuple[float, ...] = (0.0, 0.0, 0.0)) -> str:
    keys = {"ixx": (0, 0), "iyy": (1, 1), "izz": (2, 2), "ixy": (0, 1), "ixz": (0, 2), "iyz": (1, 2)}
    moments = " ".join(f'{key}="{float(inertia[index])!r}"' for key, index in keys.items())
    origin = f'<origin xyz="{com[0]!r} {com[1]!r} {com[2]!r}"/>'
    return urdf(
        f'<link name="l">\n<inertial>{origin}<mass value="{mass!r}"/><inertia {moments}/></inertial>{shapes}</link>'
    )


def find_implausible_inertia(model: Model) -> list[str]:
    return [str(warning) for warning in model.warnings if "implausible" in warning.message]


@settings(max_examples=25)
@given(st.lists(PLACED_SHAPES, min_size=1, max_size=4), st.floats(50.0, 8000.0))
def test_inertia_of_shapes_is_plausible(shapes: list[str], density: float) -> None:
    """The shapes are uniformly filled, of any size and pose, with a density from cork to steel."""
    text = "".join(shapes)
    collisions = load_model(urdf(f'<link name="l">{text}</link>')).links[0].collisions
    properties = collisions_inertia([(collision, density) for collision in collisions])
    assert properties is not None
    mass, com, inertia = properties
    model = load_model(write_inertial_urdf(mass, inertia, text, tuple(float(value) for value in com)), repair=True)
    assert not find_implausible_inertia(model)
    assert not model.repairs


@settings(max_examples=25)
@given(st.lists(PLACED_SHAPES, min_size=1, max_size=3), st.floats(10.0, 8000.0), st.floats(1.01, 1e3))
def test_inertia_larger_than_the_shapes_allow_is_implausible(shapes: list[str], density: float, excess: float) -> None:
    """The inertia exceeds that of the mass at the corners of the bounding box; the repaired one is plausible."""
    text = "".join(shapes)
    collisions = load_model(urdf(f'<link name="l">{text}</link>')).links[0].collisions
    properties = collisions_inertia([(collision, 1.0) for collision in collisions])
    assert properties is not None
    mass = properties[0] * density
    max_extent = 0.0  # radius of spheres around the shapes, an upper bound for the bounding box
    for collision in collisions:
        extent = np.linalg.norm(collision.T_link_geom.xyz) + 4.0 * math.sqrt(3.0)
        max_extent = max(max_extent, math.sqrt(3.0) * float(extent))
    inertia = np.eye(3) * 2.0 / 3.0 * mass * (2.0 * excess * max_extent) ** 2
    text = write_inertial_urdf(mass, inertia, text)
    (message,) = find_implausible_inertia(load_model(text))
    assert message.startswith("<text>:2: link 'l'")
    repaired = load_model(text, repair=True)
    (repair_record,) = repaired.repairs
    assert not repair_record.is_required
    assert repair_record.line == 2
    inertial = repaired.links[0].inertial
    assert inertial is not None
    assert inertial.mass == mass
    assert np.allclose(inertia_matrix(inertial.inertia), properties[2] * mass / properties[0], rtol=1e-9)
    assert not find_implausible_inertia(
        load_model(write_inertial_urdf(mass, inertia_matrix(inertial.inertia), "".join(shapes)))
    )


@pytest.mark.parametrize(
    ("inertia", "expected"),
    [
        ((0.72, 0.72, 0.65), "extend to 0.121 m"),
        ((1e-9, 1e-9, 1e-9), "denser than any matter"),
        ((1e-3, 1e-3, 1e-10), "wire"),
    ],
)
def test_implausible_inertia_causes_a_warning_in_each_format(
    inertia: tuple[float, float, float], expected: str, tmp_path: Path
) -> None:
    """The warning has a location; static models and bodies fixed to the world cause no warning."""
    xx, yy, zz = inertia
    diagonal = np.diag(inertia)
    sdf = f"""<inertial><mass>0.8</mass><inertia><ixx>{xx}</ixx><iyy>{yy}</iyy><izz>{zz}</izz></inertia></inertial>
    <collision name="c"><geometry><box><size>0.14 0.14 0.14</size></box></geometry></collision>"""
    mjcf = f"""<mujoco><worldbody><body name="l">{{}}<inertial pos="0 0 0" mass="0.8" diaginertia="{xx} {yy} {zz}"/>
    <geom type="box" size="0.07 0.07 0.07"/></body></worldbody></mujoco>"""
    for text in (
        write_inertial_urdf(0.8, diagonal, BOX),
        sdf_model(f'<link name="l">{sdf}</link>'),
        mjcf.format("<freejoint/>"),
    ):
        (message,) = find_implausible_inertia(load_model(text))
        assert expected in message
        repaired = load_model(text, repair=True)
        assert np.allclose(repaired.links[0].inertial.inertia, [0.8 * 0.14**2 / 6] * 3 + [0] * 3)  # type: ignore[union-attr]
    assert not find_implausible_inertia(load_model(sdf_model(f'<static>1</static><link name="l">{sdf}</link>')))
    assert not find_implausible_inertia(load_model(mjcf.format("")))


def test_plausibility_considers_visual_meshes_larger_than_collisions(tmp_path: Path) -> None:
    """Some robots have a tiny collision shape in links without contacts; a missing mesh causes no warning."""
    tiny_collision = '<collision><geometry><sphere radius="0.001"/></geometry></collision>'
    visual = '<visual><geometry><mesh filename="{}"/></geometry></visual>'
    (tmp_path / "big.obj").write_text("v -1 -1 0\nv 1 -1 0\nv 0 1 1\nf 1 2 3\n")
    inertia = np.eye(3) * 0.05
    for name, mesh, expected in (("with", "big.obj", 0), ("gone", "no.obj", 0), ("alone", "", 1)):
        file = tmp_path / f"{name}.urdf"
        file.write_text(write_inertial_urdf(0.8, inertia, tiny_collision + (visual.format(mesh) if mesh else "")))
        assert len(find_implausible_inertia(load_model(file))) == expected, name


@given(st.tuples(*[st.floats(-1.0, 1.0)] * 3), st.tuples(*[st.floats(1e-3, 10.0)] * 3))
def test_repaired_moments_obey_the_triangle_inequality(
    rpy: tuple[float, float, float], values: tuple[float, float, float]
) -> None:
    """A physical inertia is unchanged; otherwise the axes and the largest moment are kept."""
    R = SE3.from_xyz_rpy((0, 0, 0), rpy).rotation_matrix()
    matrix = R @ np.diag(values) @ R.T
    a, b, c = sorted(values)
    moments = (matrix[0, 0], matrix[1, 1], matrix[2, 2], matrix[0, 1], matrix[0, 2], matrix[1, 2])
    repaired = inertia_matrix(nearest_physical_inertia(moments))
    low, medium, high = np.linalg.eigvalsh(repaired)
    assert high == pytest.approx(c, rel=1e-9)
    assert low + medium >= high * (1 - 1e-9)
    assert low >= a * (1 - 1e-9)
    if a + b >= c:
        assert np.allclose(repaired, matrix, atol=1e-9)
    assert np.allclose(repaired @ matrix, matrix @ repaired, atol=1e-7), "the principal axes are unchanged"
    repaired_moments = (repaired[0, 0], repaired[1, 1], repaired[2, 2], repaired[0, 1], repaired[0, 2], repaired[1, 2])
    assert np.allclose(inertia_matrix(nearest_physical_inertia(repaired_moments)), repaired, atol=1e-9)


def test_inertia_without_shapes_is_that_of_a_sphere_of_water() -> None:
    moments, assumption = estimate_inertia(1000.0 * 4.0 / 3.0 * math.pi * 0.1**3, SE3.identity(), ())
    assert "0.2 m" in assumption
    assert moments[0] == pytest.approx(0.4 * 4.18879 * 0.01, rel=1e-5)


@pytest.mark.parametrize(
    "shape",
    [Box((1, 2, 3)), Sphere(1.5), Ellipsoid((1, 2, 0.5)), Cylinder(1, 3), Capsule(0.5, 2), Cone(1, 2)],
    ids=lambda shape: type(shape).__name__.lower(),
)
def test_inertia_of_shapes_agrees_with_sampling(shape: object) -> None:
    """Closed-form inertia agrees with a Monte Carlo estimate from a million points."""
    rng = np.random.default_rng(7)
    box = np.array([1.5, 2.0, 2.0])
    points = rng.uniform(-box, box, (1_000_000, 3))
    x, y, z = points.T
    r2 = x * x + y * y
    match shape:
        case Box(size):
            inside = np.all(np.abs(points) <= np.array(size) / 2, axis=1)
        case Sphere(r):
            inside = r2 + z * z <= r * r
        case Ellipsoid(radii):
            inside = ((points / radii) ** 2).sum(axis=1) <= 1
        case Cylinder(r, h):
            inside = (r2 <= r * r) & (np.abs(z) <= h / 2)
        case Capsule(r, h):
            inside = r2 + np.maximum(np.abs(z) - h / 2, 0) ** 2 <= r * r
        case Cone(r, h):
            inside = (np.abs(z) <= h / 2) & (np.sqrt(r2) <= r * (0.5 - z / h))
    volume = inside.mean() * np.prod(2 * box)
    p = points[inside]
    center = p.mean(axis=0)
    d2 = (p - center) ** 2
    moments = volume * np.array([(d2[:, 1] + d2[:, 2]).mean(), (d2[:, 0] + d2[:, 2]).mean(), d2[:, :2].sum(1).mean()])
    properties = shape_inertia(shape, 1.0)  # type: ignore[arg-type]
    assert properties is not None
    mass, height, expected = properties
    assert mass == pytest.approx(volume, rel=0.01)
    assert height == pytest.approx(center[2], abs=0.01)
    assert np.allclose(moments, expected, rtol=0.02)
