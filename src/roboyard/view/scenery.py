"""A scene as a page can draw it: bodies that move, what hangs on them, and its pictures."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.physics.compiled_world import RENDERED_GROUPS, SCOPE_SEPARATOR
from roboyard.rendering.geom_triangles import geom_colors, geom_triangles, moving_bodies
from roboyard.view.wire import packed

_KINDS = {
    int(mujoco.mjtGeom.mjGEOM_PLANE): "plane",
    int(mujoco.mjtGeom.mjGEOM_SPHERE): "sphere",
    int(mujoco.mjtGeom.mjGEOM_CAPSULE): "capsule",
    int(mujoco.mjtGeom.mjGEOM_ELLIPSOID): "ellipsoid",
    int(mujoco.mjtGeom.mjGEOM_CYLINDER): "cylinder",
    int(mujoco.mjtGeom.mjGEOM_BOX): "box",
}


@dataclass(frozen=True, slots=True)
class Scenery:
    """A scene ready to be sent.

    Attributes:
        number: Tells sceneries apart; poses belong to one.
        bodies: (b,) engine bodies whose poses are sent, in that order.
        data: The frame.
    """

    number: int
    bodies: NDArray[np.int64]
    data: bytes


@dataclass(slots=True)
class _Parts:
    """What was gathered for the frame."""

    arrays: list[NDArray[Any] | bytes] = field(default_factory=list)
    meshes: list[dict[str, Any]] = field(default_factory=list)
    pictures: list[dict[str, Any]] = field(default_factory=list)
    mesh_numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    picture_numbers: dict[int, int] = field(default_factory=dict)

    def keep(self, array: NDArray[Any] | bytes) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1


def rows_of(data: mujoco.MjData, scenery: Scenery) -> NDArray[np.float32]:
    """(b, 7) x, y, z, w, x, y, z in the world of the bodies that a page knows.

    Args:
        data: Of the scene, its kinematics done.
        scenery: What the page was told.
    """
    rows = np.empty((len(scenery.bodies), 7), np.float32)
    rows[:, :3], rows[:, 3:] = data.xpos[scenery.bodies], data.xquat[scenery.bodies]
    return rows


def scenery_of(
    model: mujoco.MjModel, number: int, robots: tuple[str, ...] = (), people: tuple[str, ...] = ()
) -> Scenery:
    """All that a scene shows.

    Args:
        model: Compiled, with looks.
        number: See `Scenery`.
        robots: Names of models that count as robots.
        people: Names of models that are people.
    """
    carrier, colours = moving_bodies(model), geom_colors(model)
    state = mujoco.MjData(model)
    mujoco.mj_kinematics(model, state)
    parts, geoms, used = _Parts(), [], {0}
    shown = np.isin(model.geom_group, RENDERED_GROUPS) & (colours[:, 3] > 0.0)
    for geom in np.flatnonzero(shown).tolist():
        body = int(carrier[model.geom_bodyid[geom]])
        axes = state.xmat[body].reshape(3, 3)
        rotation = axes.T @ state.geom_xmat[geom].reshape(3, 3)
        turn = np.zeros(4)
        mujoco.mju_mat2Quat(turn, np.ascontiguousarray(rotation).ravel())
        place = axes.T @ (state.geom_xpos[geom] - state.xpos[body])
        looks: dict[str, Any] = {
            "body": body, "name": model.geom(geom).name, "pose": _rounded((*place, *turn)),
            "rgba": _rounded(colours[geom]), **_shape(model, geom, parts), **_picture(model, geom, parts),
        }  # fmt: skip
        geoms.append(looks)
        used.add(body)
    bodies = sorted(used)
    row = {body: index for index, body in enumerate(bodies)}
    for looks in geoms:
        looks["body"] = row[looks["body"]]
    head = {
        "op": "scene", "number": number, "geoms": geoms, "meshes": parts.meshes, "pictures": parts.pictures,
        "bodies": [model.body(body).name for body in bodies], "separator": SCOPE_SEPARATOR,
        "robots": list(robots), "people": list(people),
    }  # fmt: skip
    return Scenery(number, np.array(bodies, dtype=np.int64), packed(head, parts.arrays))


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 5) for value in values]


def _shape(model: mujoco.MjModel, geom: int, parts: _Parts) -> dict[str, Any]:
    """Kind and size of a geom: simple ones the page makes itself, of others it gets the triangles."""
    kind = int(model.geom_type[geom])
    if kind in _KINDS:
        return {"kind": _KINDS[kind], "size": _rounded(model.geom_size[geom])}
    key = kind, int(model.geom_dataid[geom])
    if key not in parts.mesh_numbers:
        triangles = geom_triangles(model, geom)
        corners = triangles.corners.reshape(-1, 3).astype(np.float32)
        normals = np.zeros((len(corners), 4), np.int8)
        normals[:, :3] = np.round(127.0 * triangles.normals.reshape(-1, 3))
        entry = {"corners": parts.keep(corners), "normals": parts.keep(normals)}
        if triangles.uv is not None:
            entry["uv"] = parts.keep(triangles.uv.reshape(-1, 2).astype(np.float32))
        parts.mesh_numbers[key] = len(parts.meshes)
        parts.meshes.append(entry)
    return {"kind": "mesh", "mesh": parts.mesh_numbers[key]}


def _picture(model: mujoco.MjModel, geom: int, parts: _Parts) -> dict[str, Any]:
    """The picture on a geom's surface, if it has one that lies flat on it."""
    material = int(model.geom_matid[geom])
    if material < 0:
        return {}
    roles = np.asarray(model.mat_texid).reshape(-1, int(mujoco.mjtTextureRole.mjNTEXROLE))
    texture = int(roles[material, int(mujoco.mjtTextureRole.mjTEXROLE_RGB)])
    if texture < 0 or model.tex_type[texture] != mujoco.mjtTexture.mjTEXTURE_2D:
        return {}
    if texture not in parts.picture_numbers:
        parts.picture_numbers[texture] = len(parts.pictures)
        parts.pictures.append({"png": parts.keep(_png(model, texture))})
    return {"picture": parts.picture_numbers[texture], "repeat": _rounded(model.mat_texrepeat[material])}


def _png(model: mujoco.MjModel, texture: int) -> bytes:
    from PIL import Image

    height, width = int(model.tex_height[texture]), int(model.tex_width[texture])
    channels, start = int(model.tex_nchannel[texture]), int(model.tex_adr[texture])
    pixels = np.asarray(model.tex_data[start : start + height * width * channels]).reshape(height, width, channels)
    rgb = pixels[:, :, :3] if channels >= 3 else np.repeat(pixels[:, :, :1], 3, axis=2)
    out = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(rgb).astype(np.uint8)).save(out, "PNG", compress_level=1)
    return out.getvalue()
