"""Compiled loops for pictures as cameras take them many times a second: rays from a table, plain light.

Against ``shading`` there is no shadow, no openness, no highlight and no haze; every lamp lights what faces it.
"""

from __future__ import annotations

import math

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import F32, I32
from roboyard.simulation.render.embree import (
    DIR_ROW,
    FAR_ROW,
    INST_ROW,
    LANES,
    NORMAL_ROW,
    PRIM_ROW,
    ROWS,
    U_ROW,
    V_ROW,
    aligned,
    clear_packet,
    intersect,
)
from roboyard.simulation.render.shading import AIM, COLOUR, CUTOFF, FADE, FADED, PLACE, SKY_LEVEL, SKY_TILT, SUN
from roboyard.simulation.render.single import ONE, QUARTER, THREE, TINY, TWO, ZERO, Cases, F, floats, integers

HOUSING = F(0.3)  # nearer than this the back of a surface is the inside of what the camera sits in, and is not seen [m]
SKIP = F(1e-4)  # [m]
MOST_SHEETS = 8  # of a housing that one ray passes


def _look_examples() -> Cases:
    table, poses = floats(1, 3), floats(1, 3, 3)
    yield (
        0, 0, table, poses[0], table[0], 0.1, integers(1), integers(1), poses,
        table, integers(1), floats(1), floats(1, 2), floats(1), 0, 0,
    )  # fmt: skip


@kernel(examples=_look_examples, error_model="numpy")
def look(
    scene: int,
    arguments: int,
    table: F32,
    rotation: F32,
    position: F32,
    near: float,
    first: I32,
    piece_of: I32,
    rotations: F32,
    directions: F32,
    hits: I32,
    distances: F32,
    inside: F32,
    depth: F32,
    begin: int,
    end: int,
) -> None:
    """What the rays ``begin`` to ``end`` of a camera meet first.

    Args:
        scene: Of Embree.
        arguments: For Embree.
        table: (n, 3) unit vectors in the optical frame; not a number: no ray.
        rotation: (3, 3) world from optical frame.
        position: (3,) of the camera [m].
        near: Nothing nearer along the axis is seen [m].
        first: Number of each piece's first triangle.
        piece_of: (t,) piece of each triangle.
        rotations: (p, 3, 3) world from piece.
        directions: (n, 3) unit vectors in the world: result.
        hits: (n,) triangles, -1: none: result.
        distances: (n,) along the ray [m]: result.
        inside: (n, 2) barycentric coordinates: result.
        depth: (n,) along the axis [m], 0: nothing: result.
        begin: First ray.
        end: Behind the last.
    """
    packet, valid = aligned(ROWS * LANES), aligned(LANES).view(np.int32)
    numbers = packet.view(np.int32)
    for start in range(begin, end, LANES):
        count = min(LANES, end - start)
        clear_packet(packet)
        for k in range(LANES):
            valid[k] = 0
            i = start + k
            if k >= count or table[i, 2] != table[i, 2]:
                continue
            valid[k] = -1
            x, y, z = table[i, 0], table[i, 1], table[i, 2]
            for c in range(3):
                packet[c * LANES + k] = position[c]
                packet[(DIR_ROW + c) * LANES + k] = rotation[c, 0] * x + rotation[c, 1] * y + rotation[c, 2] * z
            packet[3 * LANES + k] = near / z if z > 0.02 else near
        asked = np.int32(0)
        for _ in range(MOST_SHEETS):
            intersect(valid.ctypes.data, scene, packet.ctypes.data, arguments)
            asked = np.int32(0)
            for k in range(count):
                if valid[k] == 0:
                    continue
                triangle = numbers[PRIM_ROW * LANES + k]
                valid[k] = 0
                if triangle < 0:
                    continue
                t = packet[FAR_ROW * LANES + k]
                if t < HOUSING:
                    r = rotations[piece_of[triangle + first[max(numbers[INST_ROW * LANES + k], 0)]]]
                    facing = ZERO
                    for c in range(3):
                        outward = ZERO
                        for d in range(3):
                            outward += r[c, d] * packet[(NORMAL_ROW + d) * LANES + k]
                        facing += outward * packet[(DIR_ROW + c) * LANES + k]
                    if facing > ZERO:  # seen from behind: look on from there
                        packet[3 * LANES + k] = t + SKIP
                        packet[FAR_ROW * LANES + k] = F(1e30)
                        numbers[PRIM_ROW * LANES + k] = -1
                        numbers[INST_ROW * LANES + k] = -1
                        valid[k] = -1
                        asked = np.int32(1)
            if asked == 0:
                break
        for k in range(count):
            i = start + k
            triangle = numbers[PRIM_ROW * LANES + k]
            hits[i] = -1
            distances[i] = ZERO
            depth[i] = ZERO
            for c in range(3):
                directions[i, c] = packet[(DIR_ROW + c) * LANES + k]
            if triangle >= 0:
                t = packet[FAR_ROW * LANES + k]
                hits[i] = triangle + first[max(numbers[INST_ROW * LANES + k], 0)]
                distances[i] = t
                depth[i] = t * table[i, 2]
                inside[i, 0], inside[i, 1] = packet[U_ROW * LANES + k], packet[V_ROW * LANES + k]


def _light_examples() -> Cases:
    yield (
        floats(1, 3), integers(1), floats(1), floats(1, 2), floats(1, 3, 3), integers(1), floats(1, 3, 3), integers(1),
        floats(1, 6), floats(1, 13), floats(3, 3), floats(3), floats(1, 3), False,
    )  # fmt: skip


@kernel(examples=_light_examples, error_model="numpy")
def light(
    directions: F32,
    hits: I32,
    distances: F32,
    inside: F32,
    corner_normals: F32,
    piece_of: I32,
    rotations: F32,
    geoms: I32,
    looks: F32,
    lamps: F32,
    surround: F32,
    position: F32,
    out: F32,
    of_rays: bool,
) -> None:
    """Linear colour (n, 3) seen along rays; arguments as ``look`` gives and ``shade`` takes.

    Args:
        directions: (n, 3) of the rays in the world.
        hits: (n,) triangle, -1: sky.
        distances: (n,) [m].
        inside: (n, 2) barycentric coordinates of the hits.
        corner_normals: (t, 3, 3) in the frame of the triangle's piece.
        piece_of: (t,) piece of each triangle.
        rotations: (p, 3, 3) world from piece.
        geoms: (t,) row of ``looks`` for each triangle.
        looks: (g, 6) linear colour, glow, …
        lamps: Rows as ``lamps.lamps_of`` packs them.
        surround: (3, 3) linear: light from everywhere, sky overhead, sky at the horizon.
        position: (3,) of the camera [m].
        out: (n, 3): result.
        of_rays: ``geoms`` is (n,), for each ray instead.
    """
    for i in range(len(hits)):
        hit = hits[i]
        dx, dy, dz = directions[i, 0], directions[i, 1], directions[i, 2]
        if hit < 0:
            up = math.sqrt(min(max(dz, ZERO), ONE))
            for c in range(3):
                out[i, c] = surround[2, c] + (surround[1, c] - surround[2, c]) * up
            continue
        n = corner_normals[hit]
        u, v = inside[i, 0], inside[i, 1]
        w = ONE - u - v
        mx = w * n[0, 0] + u * n[1, 0] + v * n[2, 0]
        my = w * n[0, 1] + u * n[1, 1] + v * n[2, 1]
        mz = w * n[0, 2] + u * n[1, 2] + v * n[2, 2]
        r = rotations[piece_of[hit]]
        nx = r[0, 0] * mx + r[0, 1] * my + r[0, 2] * mz
        ny = r[1, 0] * mx + r[1, 1] * my + r[1, 2] * mz
        nz = r[2, 0] * mx + r[2, 1] * my + r[2, 2] * mz
        # Meshes are often wound the wrong way round: light the side that is looked at.
        turn = -ONE if nx * dx + ny * dy + nz * dz > ZERO else ONE
        turn /= math.sqrt(nx * nx + ny * ny + nz * nz + TINY)
        nx, ny, nz = nx * turn, ny * turn, nz * turn
        t = distances[i]
        x, y, z = position[0] + t * dx, position[1] + t * dy, position[2] + t * dz
        sky = SKY_LEVEL + SKY_TILT * nz
        red, green, blue = surround[0, 0] * sky, surround[0, 1] * sky, surround[0, 2] * sky
        for k in range(len(lamps)):
            if lamps[k, SUN] > ZERO:
                bright = -(nx * lamps[k, AIM] + ny * lamps[k, AIM + 1] + nz * lamps[k, AIM + 2])
                if bright <= ZERO:
                    continue
            else:
                lx, ly, lz = lamps[k, PLACE] - x, lamps[k, PLACE + 1] - y, lamps[k, PLACE + 2] - z
                facing = nx * lx + ny * ly + nz * lz
                if facing <= ZERO:
                    continue
                squared = lx * lx + ly * ly + lz * lz
                fade = lamps[k, FADE] * lamps[k, FADE]
                if fade > ZERO and squared > fade * FADED:
                    continue
                inverse = ONE / math.sqrt(squared)
                bright = facing * inverse
                if fade > ZERO:
                    bright *= fade / (fade + squared) - ONE / (ONE + FADED)
                cutoff = lamps[k, CUTOFF]
                if cutoff > -ONE:
                    off = -(lx * lamps[k, AIM] + ly * lamps[k, AIM + 1] + lz * lamps[k, AIM + 2]) * inverse
                    soft = min(max((off - cutoff) / (QUARTER * (ONE - cutoff)), ZERO), ONE)
                    bright *= soft * soft * (THREE - TWO * soft)
            red += lamps[k, COLOUR] * bright
            green += lamps[k, COLOUR + 1] * bright
            blue += lamps[k, COLOUR + 2] * bright
        geom = geoms[i] if of_rays else geoms[hit]
        glow = looks[geom, 3]
        out[i, 0] = looks[geom, 0] * (red + glow)
        out[i, 1] = looks[geom, 1] * (green + glow)
        out[i, 2] = looks[geom, 2] * (blue + glow)
