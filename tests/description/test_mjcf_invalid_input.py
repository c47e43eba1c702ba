"""Invalid and hostile MJCF raises one error with file and line, and loads no plugin, outside file or huge element."""

import random
import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.description.mjcf_samples import ALL_ELEMENTS, CART, SMALL_WORLD
from tests.harness.descriptions import check_model

from roboyard.description import Mesh, load_model, load_world
from roboyard.errors import DescriptionError


def write_body(content: str, before: str = "") -> str:
    """Return a document with one body, whose content begins on line 3."""
    return f'<mujoco>{before}<worldbody>\n<body name="b">\n{content}</body></worldbody></mujoco>'


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (write_body('<geom size="x"/>'), 3, "bad format"),
        (write_body('<geom siz="1"/>'), 3, "siz"),
        (write_body('<geom size="-1"/>'), 3, "must be positive"),
        (write_body('<geom size="nan"/>'), 3, "finite"),
        (write_body('<geom size="1" class="none"/>'), 3, "none"),
        (write_body("<freejoint/>"), 2, "mass and inertia"),
        (write_body('<inertial pos="0 0 0" mass="1" diaginertia="1 1 5"/><freejoint/>'), 2, "A + B >= C"),
        (write_body('<geom size="1" name="a"/>\n<geom size="1" name="a"/>'), 4, "repeated"),
        (write_body('<geom size="1" type="mesh" mesh="m"/>'), 3, "m"),
        (write_body('<replicate count="9999999" >\n<geom size="1"/></replicate>'), 3, "replicate"),
        (write_body('<include file="nothing.xml"/>'), 3, "no such file"),
        (write_body("<include/>"), 3, "an <include> has no file"),
        ("<mujoco/>", 1, "no body"),
        ("<mujoco><worldbody/>\n<actuator>\n<motor joint='k'/></actuator></mujoco>", 3, "k"),
    ],
)
def test_faulty_mjcf_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(DescriptionError, match=re.escape(message)) as caught:
        load_model(text)
    assert caught.value.location == f"<text>:{line}"
    assert "\n" not in str(caught.value)


def test_error_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "leg.xml").write_text('<mujoco>\n<body name="leg">\n<geom size="-1"/></body></mujoco>')
    file = tmp_path / "robot.xml"
    file.write_text('<mujoco><worldbody><include file="leg.xml"/></worldbody></mujoco>')
    with pytest.raises(DescriptionError) as caught:
        load_model(file)
    assert caught.value.location == f"{tmp_path / 'leg.xml'}:3"


def test_cyclic_includes_are_refused(tmp_path: Path) -> None:
    for name, included in (("a", "b"), ("b", "a")):
        (tmp_path / f"{name}.xml").write_text(f'<mujoco><worldbody/><include file="{included}.xml"/></mujoco>')
    with pytest.raises(DescriptionError, match="cycle"):
        load_model(tmp_path / "a.xml")


def test_files_outside_the_folders_are_not_read(tmp_path: Path) -> None:
    outside_folder = tmp_path / "secret"
    outside_folder.mkdir()
    (outside_folder / "leg.xml").write_text('<mujoco><body name="leg"><geom size="1"/></body></mujoco>')
    (outside_folder / "horn.stl").write_bytes(b"solid")
    robot_folder = tmp_path / "home" / "robot"
    robot_folder.mkdir(parents=True)
    file = robot_folder / "r.xml"
    for name in ("../../secret/leg.xml", str(outside_folder / "leg.xml")):
        file.write_text(f'<mujoco><worldbody><include file="{name}"/></worldbody></mujoco>')
        with pytest.raises(DescriptionError, match="outside"):
            load_model(file)
    assets = '<compiler meshdir="../../secret"/><asset><mesh file="horn.stl"/></asset>'
    file.write_text(write_body('<geom type="mesh" mesh="horn"/>', assets))
    model = load_model(file)
    shape = model.link("b").collisions[0].geometry
    assert isinstance(shape, Mesh)
    assert shape.file is None
    assert any("outside" in warning.message for warning in model.warnings)


@pytest.mark.parametrize(
    "text",
    [
        write_body('<geom size="1"/>', '<extension><plugin plugin="mujoco.elasticity.cable"/></extension>'),
        write_body('<geom size="1"/>', '<size memory="900G" nuserdata="2000000000"/>'),
        write_body('<geom size="1"/>', '<custom><numeric name="n" size="2000000000"/></custom>'),
        write_body('<geom size="1"/>', '<asset><hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset>'),
        write_body(
            '<geom size="1" material="m"/>',
            '<asset><texture name="t" builtin="flat" width="90000" height="90000"/>'
            '<material name="m" texture="t"/></asset>',
        ),
        write_body('<geom size="1"/><composite type="grid" count="900 900 900"/>'),
        write_body('<geom size="1"/><flexcomp name="f" type="grid" count="900 900 900"/>'),
        write_body('<geom size="1"/><attach model="m" body="b" prefix="p"/>'),
        write_body('<geom size="1"/>', '<sensor><user name="u" dim="2000000000"/></sensor>'),
    ],
)
def test_plugins_and_huge_elements_are_omitted_with_a_warning(text: str) -> None:
    model = load_model(text)
    assert model.links[0].name == "b"
    assert model.warnings


def test_xml_entities_are_refused() -> None:
    with pytest.raises(DescriptionError, match="entities"):
        load_model('<!DOCTYPE m [<!ENTITY a "b">]><mujoco model="&a;"><worldbody/></mujoco>')


WORDS = ("0", "-1", "1e9", "1e-9", "1e308", "nan", "", "x", "mesh", "hfield", "0 0 0", "base", "left", "world")


@pytest.mark.slow
@settings(max_examples=40)
@given(st.sampled_from([CART, ALL_ELEMENTS, SMALL_WORLD]), st.integers(0, 2**32), st.integers(1, 4))
def test_changed_mjcf_loads_or_is_refused(text: str, seed: int, changes: int) -> None:
    draw = random.Random(seed)
    for _ in range(changes):
        pattern = draw.choice((r'(?<==")[^"]*(?=")', r"<[a-z]+[^<>]*/>", r" [a-z]+(?==)"))
        matches = list(re.finditer(pattern, text))
        match, other_text = draw.choice(matches), draw.choice(matches).group()
        word = draw.choice((*WORDS, other_text)) if pattern[0] == "(" else other_text
        text = text[: match.start()] + word + text[match.end() :]
    with suppress(DescriptionError):
        check_model(load_model(text))
    with suppress(DescriptionError):
        for placed in load_world(text).models:
            check_model(placed.model)
