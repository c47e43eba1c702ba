"""COLLADA files: triangles, unit and node transforms are read; inconsistent files are refused."""

from pathlib import Path

import numpy as np
import pytest

from roboyard.description.meshes.collada import read_collada_triangles
from roboyard.description.meshes.files import load_mesh_file
from roboyard.errors import DescriptionError

COLLADA = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="inch" meter="0.0254"/><up_axis>Y_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh>
<source id="s"><float_array id="a" count="12">0 0 0 10 0 0 0 10 0 0 0 10</float_array>
<technique_common><accessor source="#a" count="4" stride="3"/></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#s"/></vertices>
{faces}
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="scene"><node><translate>0 0 10</translate><scale>2 2 2</scale>
<instance_geometry url="#g"/></node></visual_scene></library_visual_scenes></COLLADA>"""
TRIANGLES = '<triangles count="2"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2 0 2 3</p></triangles>'
POLYLIST = (
    '<polylist count="1"><input semantic="VERTEX" source="#v" offset="0"/>'
    '<input semantic="NORMAL" source="#n" offset="1"/><vcount>4</vcount><p>0 0 1 0 2 0 3 0</p></polylist>'
)


@pytest.mark.parametrize("faces", [TRIANGLES, POLYLIST])
def test_collada_applies_unit_and_nodes_but_not_the_up_axis(tmp_path: Path, faces: str) -> None:
    file = tmp_path / "a.dae"
    file.write_text(COLLADA.format(faces=faces))
    triangles = read_collada_triangles(file)
    assert triangles.shape == (2, 3, 3)
    np.testing.assert_allclose(triangles.reshape(-1, 3).max(axis=0), np.array([20, 20, 30]) * 0.0254)
    np.testing.assert_allclose(triangles.reshape(-1, 3).min(axis=0), np.array([0, 0, 10]) * 0.0254)


INCONSISTENT_COLLADA = {
    "missing source": ('source="#v"', 'source="#nowhere"'),
    "missing vertex": ("0 1 2 0 2 3", "0 1 2 0 2 99"),
    "negative vertex index": ("0 1 2 0 2 3", "0 1 2 0 2 -3"),
    "incomplete triangle": ("0 1 2 0 2 3", "0 1 2 0"),
    "words instead of numbers": ("0 0 0 10", "here there 0 10"),
    "zero stride": ('stride="3"', 'stride="0"'),
    "zero unit": ('meter="0.0254"', 'meter="0"'),
    "unit that is no number": ('meter="0.0254"', 'meter="an inch"'),
    "incomplete translation": ("<translate>0 0 10", "<translate>0 0"),
    "vertices without positions": ('semantic="POSITION"', 'semantic="COLOUR"'),
}


@pytest.mark.parametrize("name", INCONSISTENT_COLLADA)
def test_error_of_inconsistent_collada_names_the_file(tmp_path: Path, name: str) -> None:
    old, new = INCONSISTENT_COLLADA[name]
    text = COLLADA.format(faces=TRIANGLES)
    assert old in text
    file = tmp_path / "a.dae"
    file.write_text(text.replace(old, new))
    with pytest.raises(DescriptionError, match="inconsistent") as caught:
        load_mesh_file(file, 0)
    assert "a.dae" in str(caught.value)


def test_exponentially_nested_collada_instances_are_refused(tmp_path: Path) -> None:
    instances = "".join(
        f'<node id="n{i}"><instance_node url="#n{i - 1}"/><instance_node url="#n{i - 1}"/></node>' for i in range(1, 60)
    )
    nodes = f'<library_nodes>{instances}<node id="n0"><instance_geometry url="#g"/></node></library_nodes>'
    text = COLLADA.format(faces=TRIANGLES).replace("<library_visual", nodes + "<library_visual", 1)
    file = tmp_path / "bomb.dae"
    file.write_text(
        text.replace('<instance_geometry url="#g"/></node></visual', '<instance_node url="#n59"/></node></visual')
    )
    with pytest.raises(DescriptionError, match="too often"):
        load_mesh_file(file, 0)
