"""Kernels for surface points, shadows and light along rays, and a fast variant without shadows.

Light is linear. Surfaces are Lambertian under a hemisphere of sky and ground; each point has the shadow of the light
that is brightest there, a highlight and haze. The fast model has no shadows, ambient occlusion, highlights and haze.

Points are shaded in blocks: the numbers of a block are stored row by row in one array, and each loop over a row is
free of branches, so the compiler turns it into vector instructions. The order of operations at each point does not
depend on the block, so its color does not either.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import F32, I32
from roboyard.rendering.ambient_occlusion import AmbientOcclusion
from roboyard.rendering.embree import (
    DIR_ROW,
    FAR_ROW,
    INST_ROW,
    LANES,
    NORMAL_ROW,
    PRIM_ROW,
    ROWS,
    U_ROW,
    V_ROW,
    allocate_aligned,
    clear_packet,
    intersect_packet,
)
from roboyard.rendering.float32 import (
    ONE,
    QUARTER,
    SIXTEEN,
    THREE,
    TINY,
    TWO,
    ZERO,
    ExampleArguments,
    F,
    zeros_float32,
    zeros_int32,
)
from roboyard.rendering.lighting import (
    CASTS_SHADOW,
    COLOR,
    CUTOFF,
    DIRECTION,
    FADE_DISTANCE,
    IS_SUN,
    LIGHT_COLUMNS,
    POSITION,
)

BACK_FACE_COSINE = F(0.15)
"""Beyond this cosine with the ray a normal points away from the camera; below, it may be a smooth one near the outline.
"""
MAX_OCCLUSION = F(0.9)
"""Fraction of the ambient light that a moving piece takes from the surface that it touches."""


class RayHits(NamedTuple):
    """What rays hit.

    Attributes:
        triangles: (n,) triangle, −1: none.
        distances: (n,) along the ray [m].
        barycentric: (n, 2) barycentric coordinates with respect to the triangle's second and third corner.
    """

    triangles: I32
    distances: F32
    barycentric: F32


class PieceTable(NamedTuple):
    """The triangles of a scene's rigid pieces.

    Attributes:
        first_triangle: (p,) number of each piece's first triangle.
        piece_of: (t,) piece of each triangle.
        rotations: (p, 3, 3) world from piece.
        normals: (t, 3, 3) unit normals at the corners, in the frame of the piece.
    """

    first_triangle: I32
    piece_of: I32
    rotations: F32
    normals: F32


class SurfacePoints(NamedTuple):
    """The points that rays hit.

    Attributes:
        positions: (n, 3) in the world [m].
        normals: (n, 3) shading normals in the world.
        ambient_visibility: (n,) fraction of the sky that is visible, 0 … 1.
    """

    positions: F32
    normals: F32
    ambient_visibility: F32


class MaterialTable(NamedTuple):
    """Materials of surfaces.

    Attributes:
        rows: (t,) row of ``values`` for each triangle, or (n,) for each ray.
        values: (g, 6) linear color, emission, strength and sharpness of the highlight.
        is_per_ray: Whether ``rows`` belong to rays.
    """

    rows: I32
    values: F32
    is_per_ray: bool


class ShadowTable(NamedTuple):
    """Shadows at points.

    Attributes:
        light: (n,) the light that does not reach the point, −1: all lights reach it.
        fraction: (n,) fraction of its brightness that is lost.
    """

    light: I32
    fraction: F32


class Lighting(NamedTuple):
    """Light of a scene.

    Attributes:
        lights: Rows as ``lighting.collect_lights`` makes them.
        environment: (3, 3) linear: light from everywhere, sky overhead, sky at the horizon.
    """

    lights: F32
    environment: F32


class CameraPose(NamedTuple):
    """Pose of a camera.

    Attributes:
        rotation: (3, 3) world from optical frame.
        position: (3,) in the world [m].
        near: No surface nearer along the axis is visible [m].
    """

    rotation: F32
    position: F32
    near: float


class TracedCameraRays(NamedTuple):
    """Rays of a camera in the world, and what they hit.

    Attributes:
        directions: (n, 3) unit vectors in the world.
        hits: What they hit.
        depth: (n,) along the axis [m], 0: no surface.
    """

    directions: F32
    hits: RayHits
    depth: F32


def _example_hits() -> RayHits:
    return RayHits(zeros_int32(1), zeros_float32(1), zeros_float32(1, 2))


def _example_pieces() -> PieceTable:
    return PieceTable(zeros_int32(1), zeros_int32(1), zeros_float32(1, 3, 3), zeros_float32(1, 3, 3))


def _example_lighting() -> Lighting:
    return Lighting(zeros_float32(1, LIGHT_COLUMNS), zeros_float32(3, 3))


def _example_materials() -> MaterialTable:
    return MaterialTable(zeros_int32(1), zeros_float32(1, 6), False)


def _example_compute_surface_points() -> ExampleArguments:
    occlusion = AmbientOcclusion(zeros_int32(1), zeros_int32(1, 2), zeros_int32(1), zeros_float32(1))
    yield zeros_float32(1, 3), zeros_float32(1, 3), _example_hits(), _example_pieces(), occlusion


@kernel(examples=_example_compute_surface_points, error_model="numpy")
def compute_surface_points(
    origins: F32, directions: F32, ray_hits: RayHits, pieces: PieceTable, occlusion: AmbientOcclusion
) -> SurfacePoints:
    """Compute the point, shading normal and ambient visibility of each hit of rays (n, 3)."""
    hits, distances, barycentric = ray_hits
    _, piece_of, rotations, corner_normals = pieces
    occlusion_start, occlusion_cells, occlusion_indices, occlusion_values = occlusion
    count = len(hits)
    points, normals, ambient_visibility = np.empty((count, 3), F), np.empty((count, 3), F), np.ones(count, F)
    for i in range(count):
        hit = hits[i]
        t = distances[i] if hit >= 0 else ZERO
        x, y, z = (
            origins[i, 0] + t * directions[i, 0],
            origins[i, 1] + t * directions[i, 1],
            origins[i, 2] + t * directions[i, 2],
        )
        points[i, 0], points[i, 1], points[i, 2] = x, y, z
        if hit < 0:
            normals[i, 0], normals[i, 1], normals[i, 2] = ZERO, ZERO, ONE
            continue
        piece = piece_of[hit]
        n = corner_normals[hit]
        start = occlusion_start[hit]
        is_smooth = n[0, 0] != n[1, 0] or n[0, 1] != n[1, 1] or n[0, 0] != n[2, 0] or n[0, 1] != n[2, 1]
        nx, ny, nz = n[0, 0], n[0, 1], n[0, 2]
        if is_smooth or start >= 0:
            u, v = barycentric[i, 0], barycentric[i, 1]
            if is_smooth:
                w = max(ONE - u - v, ZERO)
                nx = w * n[0, 0] + u * n[1, 0] + v * n[2, 0]
                ny = w * n[0, 1] + u * n[1, 1] + v * n[2, 1]
                nz = w * n[0, 2] + u * n[1, 2] + v * n[2, 2]
                inverse = ONE / math.sqrt(nx * nx + ny * ny + nz * nz)
                nx, ny, nz = nx * inverse, ny * inverse, nz * inverse
            if start >= 0:
                rows, cols = occlusion_cells[hit, 0], occlusion_cells[hit, 1]
                fu, fv = u * rows, v * cols
                iu, iv = min(int(fu), rows - 1), min(int(fv), cols - 1)
                fu, fv = fu - iu, fv - iv
                cell_index = start + iu * (cols + 1) + iv
                next_row_index = cell_index + cols + 1
                low = (
                    occlusion_values[occlusion_indices[cell_index]] * (ONE - fv)
                    + occlusion_values[occlusion_indices[cell_index + 1]] * fv
                )
                high = (
                    occlusion_values[occlusion_indices[next_row_index]] * (ONE - fv)
                    + occlusion_values[occlusion_indices[next_row_index + 1]] * fv
                )
                ambient_visibility[i] = low * (ONE - fu) + high * fu
        if piece > 0:
            r = rotations[piece]
            nx, ny, nz = (
                r[0, 0] * nx + r[0, 1] * ny + r[0, 2] * nz,
                r[1, 0] * nx + r[1, 1] * ny + r[1, 2] * nz,
                r[2, 0] * nx + r[2, 1] * ny + r[2, 2] * nz,
            )
        # The triangles of meshes often have the wrong orientation: light the side that the camera sees.
        if nx * directions[i, 0] + ny * directions[i, 1] + nz * directions[i, 2] > BACK_FACE_COSINE:
            nx, ny, nz = -nx, -ny, -nz
        normals[i, 0], normals[i, 1], normals[i, 2] = nx, ny, nz
    return SurfacePoints(points, normals, ambient_visibility)


def _example_darken_near_moving_bodies() -> ExampleArguments:
    surface = SurfacePoints(zeros_float32(1, 3), zeros_float32(1, 3), zeros_float32(1))
    yield surface, zeros_int32(1), zeros_int32(1), zeros_float32(1, 4)


@kernel(examples=_example_darken_near_moving_bodies, error_model="numpy")
def darken_near_moving_bodies(surface: SurfacePoints, hits: I32, piece_of: I32, bounding_spheres: F32) -> None:
    """Lower ``surface.ambient_visibility`` near moving pieces; a piece does not darken itself.

    Args:
        surface: Points; their ambient visibility is changed.
        hits: (n,) triangle of each point, −1: none.
        piece_of: (t,) piece of each triangle.
        bounding_spheres: (p, 4) center and radius [m] of each piece, which hides its solid angle of the sky.
    """
    points, normals, ambient_visibility = surface
    for k in range(len(bounding_spheres)):
        radius = bounding_spheres[k, 3]
        if radius <= ZERO:
            continue
        squared_radius, limit = radius * radius, SIXTEEN * radius * radius
        cx, cy, cz = bounding_spheres[k, 0], bounding_spheres[k, 1], bounding_spheres[k, 2]
        for i in range(len(hits)):
            dx, dy, dz = cx - points[i, 0], cy - points[i, 1], cz - points[i, 2]
            squared_distance = dx * dx + dy * dy + dz * dz
            if squared_distance > limit or hits[i] < 0 or piece_of[hits[i]] == k:
                continue
            cosine = (dx * normals[i, 0] + dy * normals[i, 1] + dz * normals[i, 2]) / math.sqrt(squared_distance + TINY)
            if cosine > ZERO:
                hidden = cosine * squared_radius / max(squared_distance, squared_radius)
                ambient_visibility[i] *= ONE - MAX_OCCLUSION * hidden * (ONE - squared_distance / limit)


def _example_find_edge_pixels() -> ExampleArguments:
    yield zeros_int32(1), zeros_int32(1), zeros_float32(1, 3), np.zeros(1, np.bool_), 1, 1


@kernel(examples=_example_find_edge_pixels, error_model="numpy")
def find_edge_pixels(hits: I32, geoms: I32, normals: F32, is_lit: NDArray[np.bool_], width: int, height: int) -> I32:
    """Pixels (row-major numbers) that differ from a neighbor in geom, in normal or in being lit."""
    selected_pixels = np.empty(width * height, np.int32)
    is_edge = np.zeros(width * height, np.bool_)
    for row in range(height):
        for col in range(width):
            i = row * width + col
            for step in range(2):
                if (step == 0 and col + 1 >= width) or (step == 1 and row + 1 >= height):
                    continue
                j = i + 1 if step == 0 else i + width
                a, b = hits[i], hits[j]
                if a == b and is_lit[i] == is_lit[j]:
                    continue
                differs = (a < 0) != (b < 0) or is_lit[i] != is_lit[j]
                if not differs and a >= 0:
                    dot = normals[i, 0] * normals[j, 0] + normals[i, 1] * normals[j, 1] + normals[i, 2] * normals[j, 2]
                    differs = geoms[a] != geoms[b] or dot < 0.9
                if differs:
                    is_edge[i] = True
                    is_edge[j] = True
    count = 0
    for i in range(width * height):
        if is_edge[i]:
            selected_pixels[count] = i
            count += 1
    return selected_pixels[:count].copy()


SUN_DISTANCE = F(1e4)
FADE_LIMIT = F(40)  # a light that fades is dark where the square of its distance is this many half-brightness ones
SHADOW_RAY_OFFSET = F(0.004)  # shadow rays start this far off the surface [m]
MIN_SHADOWED_LIGHT = F(1e-3)  # light below this needs no shadow
SHADOW_BLEND_RATIO = F(0.3)  # lights this much less bright than the brightest soften its shadow
UNOCCLUDED_LIGHT_FRACTION = F(0.65)  # fraction of direct light that corners keep
SKY_LEVEL, SKY_TILT = F(0.68), F(0.32)  # light from the side, and how much more from above
MIN_HIGHLIGHT_COSINE = F(0.85)
HAZE_DENSITY = F(1 / 130)  # [1/m]

BLOCK_SIZE = 128
"""Number of points of a block: a constant, so that the compiler knows that rows do not overlap."""
# Starts of the rows of a block's array. Inputs: point, normal, ray direction, ambient visibility, highlight of the
# material, the light in whose shadow a point lies (-1: none) and the fraction that is lost.
_X, _Y, _Z, _NX, _NY, _NZ, _DX, _DY, _DZ, _VISIBILITY, _SPECULAR, _SHININESS, _SHADOWED_LIGHT, _SHADOW_FRACTION = (
    BLOCK_SIZE * row for row in range(14)
)
# Of one light at each point: direction to it, distance, brightness that arrives.
_LX, _LY, _LZ, _LENGTH, _BRIGHTNESS = (BLOCK_SIZE * row for row in range(14, 19))
# Results of shading.
_RED, _GREEN, _BLUE, _HIGHLIGHT = (BLOCK_SIZE * row for row in range(19, 23))
# Results of selecting the brightest light: its number (-1: none), its value, the second value, direction, length.
_BEST_LIGHT, _BEST_VALUE, _SECOND_VALUE, _TX, _TY, _TZ, _BEST_DISTANCE = (BLOCK_SIZE * row for row in range(19, 26))
_ROWS = 26


def _example_block() -> ExampleArguments:
    yield 0, zeros_float32(1, LIGHT_COLUMNS), zeros_float32(_ROWS * BLOCK_SIZE)


@kernel(examples=_example_block, error_model="numpy")
def _compute_light_at_points(k: int, lights: F32, w: F32) -> None:
    """Compute direction to light ``k``, its distance and the brightness that arrives, for each point of a block."""
    if lights[k, IS_SUN] > ZERO:
        sx, sy, sz = -lights[k, DIRECTION], -lights[k, DIRECTION + 1], -lights[k, DIRECTION + 2]
        for j in range(BLOCK_SIZE):
            w[_LX + j] = sx
            w[_LY + j] = sy
            w[_LZ + j] = sz
            w[_LENGTH + j] = SUN_DISTANCE
            w[_BRIGHTNESS + j] = ONE
        return
    px, py, pz = lights[k, POSITION], lights[k, POSITION + 1], lights[k, POSITION + 2]
    fade_distance, cutoff = lights[k, FADE_DISTANCE], lights[k, CUTOFF]
    for j in range(BLOCK_SIZE):
        dx, dy, dz = px - w[_X + j], py - w[_Y + j], pz - w[_Z + j]
        distance = math.sqrt(dx * dx + dy * dy + dz * dz)
        w[_LX + j] = dx / distance
        w[_LY + j] = dy / distance
        w[_LZ + j] = dz / distance
        w[_LENGTH + j] = distance
        w[_BRIGHTNESS + j] = ONE
    if fade_distance > ZERO:
        limit = fade_distance * fade_distance * FADE_LIMIT
        for j in range(BLOCK_SIZE):
            dx, dy, dz = px - w[_X + j], py - w[_Y + j], pz - w[_Z + j]
            ratio = w[_LENGTH + j] / fade_distance
            fade_factor = ONE / (ONE + ratio * ratio) - ONE / (ONE + FADE_LIMIT)
            w[_BRIGHTNESS + j] = ZERO if dx * dx + dy * dy + dz * dz > limit else fade_factor
    if cutoff > -ONE:
        ax, ay, az = lights[k, DIRECTION], lights[k, DIRECTION + 1], lights[k, DIRECTION + 2]
        for j in range(BLOCK_SIZE):
            spot_cosine = -(w[_LX + j] * ax + w[_LY + j] * ay + w[_LZ + j] * az)
            spot_factor = min(max((spot_cosine - cutoff) / (QUARTER * (ONE - cutoff)), ZERO), ONE)
            w[_BRIGHTNESS + j] = w[_BRIGHTNESS + j] * (spot_factor * spot_factor * (THREE - TWO * spot_factor))


@kernel(examples=_example_block, error_model="numpy")
def _select_strongest_light(k: int, lights: F32, w: F32) -> None:
    """Select light ``k`` at those points of a block where it is brighter than the lights before it."""
    green, number = lights[k, COLOR + 1], F(k)
    for j in range(BLOCK_SIZE):
        lx, ly, lz = w[_LX + j], w[_LY + j], w[_LZ + j]
        value = w[_BRIGHTNESS + j] * (w[_NX + j] * lx + w[_NY + j] * ly + w[_NZ + j] * lz) * green
        best, second, selected = w[_BEST_VALUE + j], w[_SECOND_VALUE + j], w[_BEST_LIGHT + j]
        is_stronger = value > best
        second_if_stronger = best if selected >= ZERO else second
        second_if_weaker = value if value > second else second
        tx, ty, tz, distance = w[_TX + j], w[_TY + j], w[_TZ + j], w[_BEST_DISTANCE + j]
        w[_SECOND_VALUE + j] = second_if_stronger if is_stronger else second_if_weaker
        w[_BEST_VALUE + j] = value if is_stronger else best
        w[_BEST_LIGHT + j] = number if is_stronger else selected
        w[_TX + j] = lx if is_stronger else tx
        w[_TY + j] = ly if is_stronger else ty
        w[_TZ + j] = lz if is_stronger else tz
        w[_BEST_DISTANCE + j] = w[_LENGTH + j] if is_stronger else distance


def _example_make_shadow_rays() -> ExampleArguments:
    yield zeros_float32(1, 3), zeros_float32(1, 3), zeros_int32(1), zeros_float32(1, LIGHT_COLUMNS)


@kernel(examples=_example_make_shadow_rays, error_model="numpy")
def make_shadow_rays(points: F32, normals: F32, hits: I32, lights: F32) -> tuple[I32, F32, F32, F32, I32, F32]:
    """Make rays from each hit to the light that is brightest there.

    Returns:
        rows (m,) of the hits; origins, directions, lengths of their rays; and for all n hits the light (−1: none) and
        the weight of its shadow: 1, but less where a second light is nearly as bright, so that no seam appears.
    """
    count = len(hits)
    rows = np.empty(count, np.int32)
    origins, directions, lengths = np.empty((count, 3), F), np.empty((count, 3), F), np.empty(count, F)
    light_of_hit, weights = np.full(count, -1, np.int32), np.ones(count, F)
    w = np.zeros(_ROWS * BLOCK_SIZE, F)
    n_rays = 0
    for first in range(0, count, BLOCK_SIZE):
        n_points = min(BLOCK_SIZE, count - first)
        for j in range(n_points):
            i = first + j
            w[_X + j], w[_Y + j], w[_Z + j] = points[i, 0], points[i, 1], points[i, 2]
            w[_NX + j], w[_NY + j], w[_NZ + j] = normals[i, 0], normals[i, 1], normals[i, 2]
        for j in range(BLOCK_SIZE):
            w[_BEST_VALUE + j] = MIN_SHADOWED_LIGHT
            w[_SECOND_VALUE + j] = ZERO
            w[_BEST_LIGHT + j] = -ONE
        for k in range(len(lights)):
            if lights[k, CASTS_SHADOW] > ZERO:
                _compute_light_at_points(k, lights, w)
                _select_strongest_light(k, lights, w)
        for j in range(n_points):
            i = first + j
            light_index = np.int32(w[_BEST_LIGHT + j])
            if hits[i] < 0 or light_index < 0:
                continue
            best = w[_BEST_VALUE + j]
            light_of_hit[i] = light_index
            weights[i] = min(ONE, (best - w[_SECOND_VALUE + j]) / (SHADOW_BLEND_RATIO * best))
            rows[n_rays] = i
            directions[n_rays, 0], directions[n_rays, 1], directions[n_rays, 2] = w[_TX + j], w[_TY + j], w[_TZ + j]
            lengths[n_rays] = w[_BEST_DISTANCE + j]
            origins[n_rays, 0] = points[i, 0] + SHADOW_RAY_OFFSET * normals[i, 0]
            origins[n_rays, 1] = points[i, 1] + SHADOW_RAY_OFFSET * normals[i, 1]
            origins[n_rays, 2] = points[i, 2] + SHADOW_RAY_OFFSET * normals[i, 2]
            n_rays += 1
    return rows[:n_rays], origins[:n_rays], directions[:n_rays], lengths[:n_rays], light_of_hit, weights


@kernel(examples=_example_block, error_model="numpy")
def _add_light(k: int, lights: F32, w: F32) -> None:
    """Add the brightness and the highlight of light ``k`` at each point of a block."""
    red, green, blue, number = lights[k, COLOR], lights[k, COLOR + 1], lights[k, COLOR + 2], F(k)
    for j in range(BLOCK_SIZE):
        lx, ly, lz = w[_LX + j], w[_LY + j], w[_LZ + j]
        nx, ny, nz = w[_NX + j], w[_NY + j], w[_NZ + j]
        unshadowed, visibility = w[_BRIGHTNESS + j], w[_VISIBILITY + j]
        cosine = nx * lx + ny * ly + nz * lz
        is_unlit = (cosine <= ZERO) | (unshadowed <= ZERO)
        shadowed = unshadowed * (ONE - w[_SHADOW_FRACTION + j])
        brightness = shadowed if w[_SHADOWED_LIGHT + j] == number else unshadowed
        # Ambient visibility dims direct light too, a little: corners stay soft in full sun.
        brightness *= UNOCCLUDED_LIGHT_FRACTION + (ONE - UNOCCLUDED_LIGHT_FRACTION) * visibility
        more_red, more_green, more_blue = (
            red * cosine * brightness,
            green * cosine * brightness,
            blue * cosine * brightness,
        )
        w[_RED + j] += ZERO if is_unlit else more_red
        w[_GREEN + j] += ZERO if is_unlit else more_green
        w[_BLUE + j] += ZERO if is_unlit else more_blue
        hx, hy, hz = lx - w[_DX + j], ly - w[_DY + j], lz - w[_DZ + j]
        half = (hx * nx + hy * ny + hz * nz) / math.sqrt(hx * hx + hy * hy + hz * hz + TINY)
        specular, miss = w[_SPECULAR + j], w[_SHININESS + j] * (ONE - half)
        highlight = brightness * specular / (ONE + miss * miss * miss)
        has_no_highlight = is_unlit | (specular <= ZERO) | (half <= MIN_HIGHLIGHT_COSINE)
        w[_HIGHLIGHT + j] += ZERO if has_no_highlight else highlight


def _example_shade() -> ExampleArguments:
    surface = SurfacePoints(zeros_float32(1, 3), zeros_float32(1, 3), zeros_float32(1))
    shadows = ShadowTable(zeros_int32(1), zeros_float32(1))
    hits, distances = zeros_int32(1), zeros_float32(1)
    yield surface, zeros_float32(1, 3), hits, distances, _example_materials(), shadows, _example_lighting()


@kernel(examples=_example_shade, error_model="numpy")
def shade(
    surface: SurfacePoints,
    directions: F32,
    hits: I32,
    distances: F32,
    materials: MaterialTable,
    shadows: ShadowTable,
    lighting: Lighting,
) -> F32:
    """Compute the linear color (n, 3) seen along each ray.

    Args:
        surface: The points that the rays hit.
        directions: (n, 3) of the rays.
        hits: (n,) triangle, −1: sky.
        distances: (n,) over which haze lies [m].
        materials: Materials of the surfaces.
        shadows: Shadows at the points.
        lighting: Lights and sky.
    """
    points, normals, ambient_visibility = surface
    material_rows, material_values, is_per_ray = materials
    shadowed_light, shadow_fraction = shadows
    lights, environment_light = lighting
    count = len(hits)
    out = np.empty((count, 3), F)
    w = np.zeros(_ROWS * BLOCK_SIZE, F)
    for first in range(0, count, BLOCK_SIZE):
        n_points, n_hits = min(BLOCK_SIZE, count - first), 0
        for j in range(n_points):
            i = first + j
            visibility, nz = ambient_visibility[i], normals[i, 2]
            w[_X + j], w[_Y + j], w[_Z + j] = points[i, 0], points[i, 1], points[i, 2]
            w[_NX + j], w[_NY + j], w[_NZ + j] = normals[i, 0], normals[i, 1], nz
            w[_DX + j], w[_DY + j], w[_DZ + j] = directions[i, 0], directions[i, 1], directions[i, 2]
            w[_VISIBILITY + j], w[_SHADOWED_LIGHT + j], w[_SHADOW_FRACTION + j] = (
                visibility,
                F(shadowed_light[i]),
                shadow_fraction[i],
            )
            sky = (SKY_LEVEL + SKY_TILT * nz) * visibility
            w[_RED + j], w[_GREEN + j], w[_BLUE + j] = (
                environment_light[0, 0] * sky,
                environment_light[0, 1] * sky,
                environment_light[0, 2] * sky,
            )
            w[_HIGHLIGHT + j] = ZERO
            if hits[i] >= 0:
                material = material_rows[i] if is_per_ray else material_rows[hits[i]]
                w[_SPECULAR + j], w[_SHININESS + j] = material_values[material, 4], material_values[material, 5]
                n_hits += 1
            else:
                w[_SPECULAR + j] = ZERO
        if n_hits > 0:
            for k in range(len(lights)):
                _compute_light_at_points(k, lights, w)
                _add_light(k, lights, w)
        for j in range(n_points):
            i = first + j
            if hits[i] < 0:
                up = math.sqrt(min(max(directions[i, 2], ZERO), ONE))
                for c in range(3):
                    out[i, c] = environment_light[2, c] + (environment_light[1, c] - environment_light[2, c]) * up
                continue
            material = material_rows[i] if is_per_ray else material_rows[hits[i]]
            highlight = w[_HIGHLIGHT + j]
            haze_distance = distances[i] * HAZE_DENSITY
            haze_transmission = ONE / (ONE + haze_distance * haze_distance)
            emission = material_values[material, 3]
            out[i, 0] = (
                material_values[material, 0] * (w[_RED + j] + emission) + highlight
            ) * haze_transmission + environment_light[2, 0] * (ONE - haze_transmission)
            out[i, 1] = (
                material_values[material, 1] * (w[_GREEN + j] + emission) + highlight
            ) * haze_transmission + environment_light[2, 1] * (ONE - haze_transmission)
            out[i, 2] = (
                material_values[material, 2] * (w[_BLUE + j] + emission) + highlight
            ) * haze_transmission + environment_light[2, 2] * (ONE - haze_transmission)
    return out


MAX_HOUSING_DISTANCE = F(0.3)
"""Nearer than this the back of a surface is the inside of the camera's housing, and is not visible [m]."""
RAY_OFFSET = F(1e-4)
"""A ray continues this far behind a surface of the housing [m]."""
MAX_HOUSING_SURFACES = 8
"""Largest number of surfaces of a housing that one ray passes."""


def _example_trace_camera_rays() -> ExampleArguments:
    camera = CameraPose(zeros_float32(3, 3), zeros_float32(3), 0.1)
    rays = TracedCameraRays(zeros_float32(1, 3), _example_hits(), zeros_float32(1))
    yield 0, 0, zeros_float32(1, 3), camera, _example_pieces(), rays, 0, 0


@kernel(examples=_example_trace_camera_rays, error_model="numpy")
def trace_camera_rays(
    scene: int,
    arguments: int,
    ray_directions: F32,
    camera: CameraPose,
    pieces: PieceTable,
    rays: TracedCameraRays,
    first_ray: int,
    end_ray: int,
) -> None:
    """Find what the rays ``first_ray`` to ``end_ray`` of a camera hit first.

    Args:
        scene: Address of Embree's scene.
        arguments: Address of Embree's arguments.
        ray_directions: (n, 3) unit vectors in the optical frame; NaN: no ray.
        camera: Pose of the camera.
        pieces: Triangles of the scene.
        rays: Written.
        first_ray: First ray.
        end_ray: One after the last ray.
    """
    rotation, position, near = camera
    first_triangle, piece_of, rotations, _ = pieces
    directions, ray_hits, depth = rays
    hits, distances, barycentric = ray_hits
    packet, valid = allocate_aligned(ROWS * LANES), allocate_aligned(LANES).view(np.int32)
    packet_ints = packet.view(np.int32)
    for start in range(first_ray, end_ray, LANES):
        count = min(LANES, end_ray - start)
        clear_packet(packet)
        for k in range(LANES):
            valid[k] = 0
            i = start + k
            if k >= count or ray_directions[i, 2] != ray_directions[i, 2]:
                continue
            valid[k] = -1
            x, y, z = ray_directions[i, 0], ray_directions[i, 1], ray_directions[i, 2]
            for c in range(3):
                packet[c * LANES + k] = position[c]
                packet[(DIR_ROW + c) * LANES + k] = rotation[c, 0] * x + rotation[c, 1] * y + rotation[c, 2] * z
            packet[3 * LANES + k] = near / z if z > 0.02 else near
        has_pending_rays = np.int32(0)
        for _ in range(MAX_HOUSING_SURFACES):
            intersect_packet(valid.ctypes.data, scene, packet.ctypes.data, arguments)
            has_pending_rays = np.int32(0)
            for k in range(count):
                if valid[k] == 0:
                    continue
                triangle = packet_ints[PRIM_ROW * LANES + k]
                valid[k] = 0
                if triangle < 0:
                    continue
                t = packet[FAR_ROW * LANES + k]
                if t < MAX_HOUSING_DISTANCE:
                    r = rotations[piece_of[triangle + first_triangle[max(packet_ints[INST_ROW * LANES + k], 0)]]]
                    facing = ZERO
                    for c in range(3):
                        outward = ZERO
                        for d in range(3):
                            outward += r[c, d] * packet[(NORMAL_ROW + d) * LANES + k]
                        facing += outward * packet[(DIR_ROW + c) * LANES + k]
                    if facing > ZERO:  # the back of the surface: the ray continues behind it
                        packet[3 * LANES + k] = t + RAY_OFFSET
                        packet[FAR_ROW * LANES + k] = F(1e30)
                        packet_ints[PRIM_ROW * LANES + k] = -1
                        packet_ints[INST_ROW * LANES + k] = -1
                        valid[k] = -1
                        has_pending_rays = np.int32(1)
            if has_pending_rays == 0:
                break
        for k in range(count):
            i = start + k
            triangle = packet_ints[PRIM_ROW * LANES + k]
            hits[i] = -1
            distances[i] = ZERO
            depth[i] = ZERO
            for c in range(3):
                directions[i, c] = packet[(DIR_ROW + c) * LANES + k]
            if triangle >= 0:
                t = packet[FAR_ROW * LANES + k]
                hits[i] = triangle + first_triangle[max(packet_ints[INST_ROW * LANES + k], 0)]
                distances[i] = t
                depth[i] = t * ray_directions[i, 2]
                barycentric[i, 0], barycentric[i, 1] = packet[U_ROW * LANES + k], packet[V_ROW * LANES + k]


def _example_shade_without_shadows() -> ExampleArguments:
    yield (
        zeros_float32(1, 3), _example_hits(), _example_pieces(), _example_materials(), _example_lighting(),
        zeros_float32(3), zeros_float32(1, 3),
    )  # fmt: skip


@kernel(examples=_example_shade_without_shadows, error_model="numpy")
def shade_without_shadows(
    directions: F32,
    ray_hits: RayHits,
    pieces: PieceTable,
    materials: MaterialTable,
    lighting: Lighting,
    position: F32,
    out: F32,
) -> None:
    """Compute the linear color (n, 3) seen along rays, without shadows.

    Args:
        directions: (n, 3) of the rays in the world.
        ray_hits: What the rays hit; −1: sky.
        pieces: Triangles of the scene.
        materials: Materials of the surfaces.
        lighting: Lights and sky.
        position: (3,) of the camera [m].
        out: (n, 3) written.
    """
    hits, distances, barycentric = ray_hits
    _, piece_of, rotations, corner_normals = pieces
    material_rows, material_values, is_per_ray = materials
    lights, environment_light = lighting
    for i in range(len(hits)):
        hit = hits[i]
        dx, dy, dz = directions[i, 0], directions[i, 1], directions[i, 2]
        if hit < 0:
            up = math.sqrt(min(max(dz, ZERO), ONE))
            for c in range(3):
                out[i, c] = environment_light[2, c] + (environment_light[1, c] - environment_light[2, c]) * up
            continue
        u, v = barycentric[i, 0], barycentric[i, 1]
        w = ONE - u - v
        mx = w * corner_normals[hit, 0, 0] + u * corner_normals[hit, 1, 0] + v * corner_normals[hit, 2, 0]
        my = w * corner_normals[hit, 0, 1] + u * corner_normals[hit, 1, 1] + v * corner_normals[hit, 2, 1]
        mz = w * corner_normals[hit, 0, 2] + u * corner_normals[hit, 1, 2] + v * corner_normals[hit, 2, 2]
        piece = piece_of[hit]
        nx = rotations[piece, 0, 0] * mx + rotations[piece, 0, 1] * my + rotations[piece, 0, 2] * mz
        ny = rotations[piece, 1, 0] * mx + rotations[piece, 1, 1] * my + rotations[piece, 1, 2] * mz
        nz = rotations[piece, 2, 0] * mx + rotations[piece, 2, 1] * my + rotations[piece, 2, 2] * mz
        # The triangles of meshes often have the wrong orientation: light the side that the camera sees.
        normal_scale = -ONE if nx * dx + ny * dy + nz * dz > ZERO else ONE
        normal_scale /= math.sqrt(nx * nx + ny * ny + nz * nz + TINY)
        nx, ny, nz = nx * normal_scale, ny * normal_scale, nz * normal_scale
        t = distances[i]
        x, y, z = position[0] + t * dx, position[1] + t * dy, position[2] + t * dz
        sky = SKY_LEVEL + SKY_TILT * nz
        red, green, blue = environment_light[0, 0] * sky, environment_light[0, 1] * sky, environment_light[0, 2] * sky
        for k in range(len(lights)):
            if lights[k, IS_SUN] > ZERO:
                brightness = -(
                    nx * lights[k, DIRECTION] + ny * lights[k, DIRECTION + 1] + nz * lights[k, DIRECTION + 2]
                )
                if brightness <= ZERO:
                    continue
            else:
                lx, ly, lz = lights[k, POSITION] - x, lights[k, POSITION + 1] - y, lights[k, POSITION + 2] - z
                facing = nx * lx + ny * ly + nz * lz
                if facing <= ZERO:
                    continue
                squared = lx * lx + ly * ly + lz * lz
                fade_distance = lights[k, FADE_DISTANCE] * lights[k, FADE_DISTANCE]
                if fade_distance > ZERO and squared > fade_distance * FADE_LIMIT:
                    continue
                inverse = ONE / math.sqrt(squared)
                brightness = facing * inverse
                if fade_distance > ZERO:
                    brightness *= fade_distance / (fade_distance + squared) - ONE / (ONE + FADE_LIMIT)
                cutoff = lights[k, CUTOFF]
                if cutoff > -ONE:
                    spot_cosine = (
                        -(lx * lights[k, DIRECTION] + ly * lights[k, DIRECTION + 1] + lz * lights[k, DIRECTION + 2])
                        * inverse
                    )
                    spot_factor = min(max((spot_cosine - cutoff) / (QUARTER * (ONE - cutoff)), ZERO), ONE)
                    brightness *= spot_factor * spot_factor * (THREE - TWO * spot_factor)
            red += lights[k, COLOR] * brightness
            green += lights[k, COLOR + 1] * brightness
            blue += lights[k, COLOR + 2] * brightness
        material = material_rows[i] if is_per_ray else material_rows[hit]
        emission = material_values[material, 3]
        out[i, 0] = material_values[material, 0] * (red + emission)
        out[i, 1] = material_values[material, 1] * (green + emission)
        out[i, 2] = material_values[material, 2] * (blue + emission)
