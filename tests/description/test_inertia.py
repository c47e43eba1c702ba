"""Inertia that no body of a link's mass and shapes has: said with its place, mended on request; sane ones are not."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.descriptions import sdf_model, urdf

from roboyard.description import Model, load_model
from roboyard.description.inertia import collisions_inertia, inertia_matrix

EDGES = st.floats(0.01, 2.0)
ANGLES = st.floats(-3.0, 3.0)
SHAPES = st.one_of(
    st.tuples(EDGES, EDGES, EDGES).map(lambda e: f'<box size="{e[0]} {e[1]} {e[2]}"/>'),
    EDGES.map(lambda r: f'<sphere radius="{r}"/>'),
    st.tuples(EDGES, EDGES).map(lambda e: f'<cylinder radius="{e[0]}" length="{e[1]}"/>'),
    st.tuples(EDGES, EDGES).map(lambda e: f'<capsule radius="{e[0]}" length="{e[1]}"/>'),
)
PLACED = st.tuples(SHAPES, ANGLES, ANGLES, st.floats(-1.0, 1.0)).map(
    lambda p: f'<collision><origin xyz="{p[3]} 0 0.1" rpy="{p[1]} {p[2]} 0.4"/><geometry>{p[0]}</geometry></collision>'
)
BOX = '<collision><geometry><box size="0.14 0.14 0.14"/></geometry></collision>'


def inertial_urdf(mass: float, inertia: np.ndarray, shapes: str, com: tuple[float, ...] = (0.0, 0.0, 0.0)) -> str:
    keys = {"ixx": (0, 0), "iyy": (1, 1), "izz": (2, 2), "ixy": (0, 1), "ixz": (0, 2), "iyz": (1, 2)}
    moments = " ".join(f'{key}="{float(inertia[index])!r}"' for key, index in keys.items())
    place = f'<origin xyz="{com[0]!r} {com[1]!r} {com[2]!r}"/>'
    return urdf(
        f'<link name="l">\n<inertial>{place}<mass value="{mass!r}"/><inertia {moments}/></inertial>{shapes}</link>'
    )


def implausibilities(model: Model) -> list[str]:
    return [str(one) for one in model.warnings if "absurd" in one.message]


@settings(max_examples=25)
@given(st.lists(PLACED, min_size=1, max_size=4), st.floats(50.0, 8000.0))
def test_inertia_of_shapes_is_plausible(shapes: list[str], density: float) -> None:
    """Of evenly filled shapes of any size and place, as dense as anything from cork to steel."""
    text = "".join(shapes)
    collisions = load_model(urdf(f'<link name="l">{text}</link>')).links[0].collisions
    made = collisions_inertia([(one, density) for one in collisions])
    assert made is not None
    mass, com, inertia = made
    found = load_model(inertial_urdf(mass, inertia, text, tuple(float(value) for value in com)), repair=True)
    assert not implausibilities(found)
    assert not found.repairs


@settings(max_examples=25)
@given(st.lists(PLACED, min_size=1, max_size=3), st.floats(10.0, 8000.0), st.floats(1.01, 1e3))
def test_inertia_beyond_the_shapes_is_implausible(shapes: list[str], density: float, beyond: float) -> None:
    """Even all of it in the corners of the box around them would not do; mended, it does, and again it is sane."""
    text = "".join(shapes)
    collisions = load_model(urdf(f'<link name="l">{text}</link>')).links[0].collisions
    made = collisions_inertia([(one, 1.0) for one in collisions])
    assert made is not None
    mass = made[0] * density
    reach = 0.0  # of balls around the shapes, none of which the box around all can exceed
    for one in collisions:
        ball = np.linalg.norm(one.T_link_geom.xyz) + 4.0 * math.sqrt(3.0)
        reach = max(reach, math.sqrt(3.0) * float(ball))
    inertia = np.eye(3) * 2.0 / 3.0 * mass * (2.0 * beyond * reach) ** 2
    text = inertial_urdf(mass, inertia, text)
    (said,) = implausibilities(load_model(text))
    assert said.startswith("<text>:2: link 'l'")
    mended = load_model(text, repair=True)
    (mending,) = mended.repairs
    assert not mending.is_required
    assert mending.line == 2
    inertial = mended.links[0].inertial
    assert inertial is not None
    assert inertial.mass == mass
    assert np.allclose(inertia_matrix(inertial.inertia), made[2] * mass / made[0], rtol=1e-9)
    assert not implausibilities(load_model(inertial_urdf(mass, inertia_matrix(inertial.inertia), "".join(shapes))))


@pytest.mark.parametrize(
    ("inertia", "what"),
    [
        ((0.72, 0.72, 0.65), "reach 0.121 m"),
        ((1e-9, 1e-9, 1e-9), "denser than any matter"),
        ((1e-3, 1e-3, 1e-10), "wire"),
    ],
)
def test_implausible_inertia_is_a_finding_in_each_format(
    inertia: tuple[float, float, float], what: str, tmp_path: Path
) -> None:
    """With the place of what is stated; what states nothing, or never moves, has nothing to be said about."""
    xx, yy, zz = inertia
    diagonal = np.diag(inertia)
    sdf = f"""<inertial><mass>0.8</mass><inertia><ixx>{xx}</ixx><iyy>{yy}</iyy><izz>{zz}</izz></inertia></inertial>
    <collision name="c"><geometry><box><size>0.14 0.14 0.14</size></box></geometry></collision>"""
    mjcf = f"""<mujoco><worldbody><body name="l">{{}}<inertial pos="0 0 0" mass="0.8" diaginertia="{xx} {yy} {zz}"/>
    <geom type="box" size="0.07 0.07 0.07"/></body></worldbody></mujoco>"""
    for text in (
        inertial_urdf(0.8, diagonal, BOX),
        sdf_model(f'<link name="l">{sdf}</link>'),
        mjcf.format("<freejoint/>"),
    ):
        (said,) = implausibilities(load_model(text))
        assert what in said
        mended = load_model(text, repair=True)
        assert np.allclose(mended.links[0].inertial.inertia, [0.8 * 0.14**2 / 6] * 3 + [0] * 3)  # type: ignore[union-attr]
    assert not implausibilities(load_model(sdf_model(f'<static>1</static><link name="l">{sdf}</link>')))
    assert not implausibilities(load_model(mjcf.format("")))


def test_visual_mesh_larger_than_the_collision_counts(tmp_path: Path) -> None:
    """Robots' makers hide a speck in links that shall touch nothing; a mesh that is not there decides nothing."""
    speck = '<collision><geometry><sphere radius="0.001"/></geometry></collision>'
    look = '<visual><geometry><mesh filename="{}"/></geometry></visual>'
    (tmp_path / "big.obj").write_text("v -1 -1 0\nv 1 -1 0\nv 0 1 1\nf 1 2 3\n")
    far = np.eye(3) * 0.05
    for name, mesh, expected in (("with", "big.obj", 0), ("gone", "no.obj", 0), ("alone", "", 1)):
        file = tmp_path / f"{name}.urdf"
        file.write_text(inertial_urdf(0.8, far, speck + (look.format(mesh) if mesh else "")))
        assert len(implausibilities(load_model(file))) == expected, name
