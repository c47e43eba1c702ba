"""Intel Embree, called from compiled code: sixteen rays at a time, bodies as instances.

The library is part of the ``embreex`` wheel. embreex's own Python interface has neither packets of rays nor instances;
with both an image takes a quarter of the time. Constants and layouts: embree4/rtcore*.h.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from importlib import metadata
from typing import Any

import llvmlite.binding
import numpy as np
from numba import types
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.errors import RunError
from roboyard.geometry.arrays import F32, I32
from roboyard.rendering.float32 import ExampleArguments

_TRIANGLES, _INSTANCE = 0, 121
_INDICES, _VERTICES, _TRANSFORM_ROWS = 0, 1, 0x9134  # buffer types; 3 × 4 floats, row by row
_UINT3, _FLOAT3 = 0x5003, 0x9003
_HIGH_QUALITY = 2
_ROBUST = 1 << 2  # no ray slips through the seam between two triangles
_COHERENT = 1 << 16

LANES = 16
# Rows of the packet: ray org xyz, tnear, dir xyz, time, tfar, mask, id, flags; hit Ng xyz, u, v, primID, geomID,
# instID, instPrimID.
_TNEAR, _TIME, _MASK, _FLAGS, _GEOM = 3, 7, 9, 11, 18
DIR_ROW, FAR_ROW, NORMAL_ROW, U_ROW, V_ROW, PRIM_ROW, INST_ROW, ROWS = 4, 8, 12, 15, 16, 17, 19, 24
NO_HIT_DISTANCE = np.float32(1e30)


@cache
def _library() -> ctypes.CDLL:
    names = [p for p in metadata.files("embreex") or [] if "embree4" in p.name and not p.name.endswith(".py")]
    if not names:
        raise RunError(
            "the ray caster finds no Embree library in the package embreex", valid="pip install 'embreex>=4.4,<4.5'"
        )
    library = ctypes.CDLL(str(names[0].locate()))
    pointer, number, size = ctypes.c_void_p, ctypes.c_uint, ctypes.c_size_t
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "rtcNewDevice": (pointer, [ctypes.c_char_p]),
        "rtcReleaseDevice": (None, [pointer]),
        "rtcNewScene": (pointer, [pointer]),
        "rtcReleaseScene": (None, [pointer]),
        "rtcSetSceneBuildQuality": (None, [pointer, ctypes.c_int]),
        "rtcSetSceneFlags": (None, [pointer, ctypes.c_int]),
        "rtcCommitScene": (None, [pointer]),
        "rtcNewGeometry": (pointer, [pointer, ctypes.c_int]),
        "rtcReleaseGeometry": (None, [pointer]),
        "rtcCommitGeometry": (None, [pointer]),
        "rtcAttachGeometry": (number, [pointer, pointer]),
        "rtcSetNewGeometryBuffer": (pointer, [pointer, ctypes.c_int, number, ctypes.c_int, size, size]),
        "rtcSetGeometryInstancedScene": (None, [pointer, pointer]),
        "rtcSetGeometryTransform": (None, [pointer, number, ctypes.c_int, pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _link_function(name: str) -> Callable[[int, int, int, int], None]:
    """A function of the library for use in kernels; by name, so that compiled kernels can be kept on disk."""
    address = ctypes.cast(getattr(_library(), name), ctypes.c_void_p).value
    llvmlite.binding.add_symbol(name, address)
    external: Callable[[int, int, int, int], None] = types.ExternalFunction(
        name, types.void(types.intp, types.intp, types.intp, types.intp)
    )
    return external


intersect_packet = _link_function("rtcIntersect16")
_occlude_packet = _link_function("rtcOccluded16")


class EmbreeScene:
    """Rigid pieces of triangles whose poses can change, and rays against them.

    Args:
        pieces: For each piece its triangles' corners (n, 3, 3) in the piece's frame [m].

    Attributes:
        first_triangle: (p,) number of each piece's first triangle, all pieces counted through.
        world_scene: Embree's scene of all pieces.
    """

    def __init__(self, pieces: list[NDArray[np.float64]]) -> None:
        library = _library()
        # One thread: trees that several threads build could differ from run to run.
        self._device = library.rtcNewDevice(b"threads=1")
        self._piece_scenes: list[int] = [self._make_piece_scene(corners) for corners in pieces]
        self.world_scene: int = library.rtcNewScene(self._device)
        self._instances: list[int] = []
        for scene in self._piece_scenes:
            instance = library.rtcNewGeometry(self._device, _INSTANCE)
            library.rtcSetGeometryInstancedScene(instance, scene)
            library.rtcCommitGeometry(instance)
            library.rtcAttachGeometry(self.world_scene, instance)
            self._instances.append(instance)
        library.rtcCommitScene(self.world_scene)
        counts = [len(corners) for corners in pieces]
        self.first_triangle: I32 = (
            np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int32) if counts else np.zeros(1, np.int32)
        )
        # RTCIntersectArguments: flags, feature mask (all), no context, no callbacks.
        self._arguments = np.zeros(16, np.int32)
        self._arguments[:2] = _COHERENT, -1

    def _make_piece_scene(self, corners: NDArray[np.float64]) -> int:
        library, count = _library(), len(corners)
        scene: int = library.rtcNewScene(self._device)
        library.rtcSetSceneBuildQuality(scene, _HIGH_QUALITY)
        library.rtcSetSceneFlags(scene, _ROBUST)
        geometry = library.rtcNewGeometry(self._device, _TRIANGLES)
        vertices, indices = np.ascontiguousarray(corners, np.float32), np.arange(3 * count, dtype=np.uint32)
        for kind, element_format, rows, values in (
            (_VERTICES, _FLOAT3, 3 * count, vertices),
            (_INDICES, _UINT3, count, indices),
        ):
            buffer = library.rtcSetNewGeometryBuffer(geometry, kind, 0, element_format, 12, rows)
            ctypes.memmove(buffer, values.ctypes.data, values.nbytes)
        library.rtcCommitGeometry(geometry)
        library.rtcAttachGeometry(scene, geometry)
        library.rtcReleaseGeometry(geometry)
        library.rtcCommitScene(scene)
        return scene

    @property
    def arguments(self) -> int:
        """Address of what Embree takes with every packet of coherent rays."""
        return int(self._arguments.ctypes.data)

    def set_poses(self, rotations: F32, translations: F32) -> None:
        """Put the pieces at world poses: rotations (p, 3, 3), translations (p, 3) [m]."""
        library = _library()
        poses = np.concatenate([rotations, translations[:, :, None]], axis=2).astype(np.float32)
        for instance, pose in zip(self._instances, poses, strict=True):
            library.rtcSetGeometryTransform(instance, 0, _TRANSFORM_ROWS, pose.ctypes.data)
            library.rtcCommitGeometry(instance)
        library.rtcCommitScene(self.world_scene)

    def cast_rays(
        self, origins: F32, directions: F32, max_distances: F32 | None = None, piece: int | None = None
    ) -> tuple[I32, F32, F32]:
        """Find what each ray hits first.

        Args:
            origins: (n, 3) [m].
            directions: (n, 3) unit vectors.
            max_distances: (n,) lengths of the rays [m]; None: infinite.
            piece: Cast at this piece alone, in its own frame.

        Returns:
            Triangle (n,), −1 = none; distance (n,) [m], ``max_distances`` or ``NO_HIT_DISTANCE`` where none; and the
            barycentric coordinates (n, 2) of the hit with respect to the triangle's second and third corner.
        """
        distances = (
            np.full(len(origins), NO_HIT_DISTANCE, np.float32) if max_distances is None else max_distances.copy()
        )
        hits, barycentric = np.empty(len(origins), np.int32), np.empty((len(origins), 2), np.float32)
        scene, first = (
            (self.world_scene, self.first_triangle)
            if piece is None
            else (self._piece_scenes[piece], self.first_triangle[piece : piece + 1])
        )
        trace_packets(scene, self.arguments, origins, directions, first, hits, distances, barycentric)
        return hits, distances, barycentric

    def is_occluded(self, origins: F32, directions: F32, max_distances: F32) -> NDArray[np.bool_]:
        """Return whether each ray hits a triangle within ``max_distances`` (n,) [m]; see `cast_rays`."""
        occluded = np.empty(len(origins), np.bool_)
        test_occlusion(self.world_scene, self.arguments, origins, directions, max_distances, occluded)
        return occluded

    def close(self) -> None:
        """Free the library's memory; rays are no longer possible."""
        if self._device is None:
            return
        library = _library()
        for instance in self._instances:
            library.rtcReleaseGeometry(instance)
        for scene in (self.world_scene, *self._piece_scenes):
            library.rtcReleaseScene(scene)
        library.rtcReleaseDevice(self._device)
        self._device = None


def _example_packet() -> ExampleArguments:
    rays = np.zeros((1, 3), np.float32)
    yield 0, 1, rays, rays, np.zeros(1, np.float32), np.zeros(1, np.float32), np.zeros(1, np.int32)


def _example_trace_packets() -> ExampleArguments:
    rays, numbers = np.zeros((1, 3), np.float32), np.zeros(1, np.int32)
    yield 0, 0, rays, rays, numbers, numbers, np.zeros(1, np.float32), np.zeros((1, 2), np.float32)


def _example_test_occlusion() -> ExampleArguments:
    rays = np.zeros((1, 3), np.float32)
    yield 0, 0, rays, rays, np.zeros(1, np.float32), np.zeros(1, np.bool_)


@kernel(examples=lambda: [(16,)])
def allocate_aligned(count: int) -> F32:
    """``count`` floats that begin at a multiple of 64 bytes, as packets of sixteen must."""
    raw = np.zeros(count + 16, np.float32)
    start = ((64 - (raw.ctypes.data & 63)) & 63) >> 2
    return raw[start : start + count]


@kernel(examples=lambda: [(np.zeros(ROWS * LANES, np.float32),)])
def clear_packet(packet: F32) -> None:
    """Reset a packet to infinite rays without hits; origins and directions are the caller's."""
    numbers = packet.view(np.int32)
    for k in range(LANES):
        packet[_TNEAR * LANES + k] = 0.0
        packet[_TIME * LANES + k] = 0.0
        packet[FAR_ROW * LANES + k] = NO_HIT_DISTANCE
        numbers[_MASK * LANES + k] = -1
        numbers[_FLAGS * LANES + k] = 0
        numbers[PRIM_ROW * LANES + k] = -1
        numbers[_GEOM * LANES + k] = -1
        numbers[INST_ROW * LANES + k] = -1


@kernel(examples=_example_packet)
def _load_packet(
    first_ray: int, n_rays: int, origins: F32, directions: F32, max_distances: F32, packet: F32, valid: I32
) -> None:
    clear_packet(packet)
    for k in range(LANES):
        i = first_ray + k
        is_used = i < n_rays
        valid[k] = -1 if is_used else 0
        if is_used:
            for c in range(3):
                packet[c * LANES + k] = origins[i, c]
                packet[(DIR_ROW + c) * LANES + k] = directions[i, c]
            packet[FAR_ROW * LANES + k] = max_distances[i]


@kernel(examples=_example_trace_packets)
def trace_packets(
    scene: int,
    arguments: int,
    origins: F32,
    directions: F32,
    first_triangle: I32,
    hits: I32,
    distances: F32,
    barycentric: F32,
) -> None:
    """Nearest hits; ``distances`` holds how far rays go and gets the hits' distances (see
    ``EmbreeScene.cast_rays``)."""
    packet, valid = allocate_aligned(ROWS * LANES), allocate_aligned(LANES).view(np.int32)
    numbers = packet.view(np.int32)
    count = len(origins)
    for start in range(0, count, LANES):
        _load_packet(start, count, origins, directions, distances, packet, valid)
        intersect_packet(valid.ctypes.data, scene, packet.ctypes.data, arguments)
        for k in range(min(LANES, count - start)):
            i = start + k
            triangle = numbers[PRIM_ROW * LANES + k]
            hits[i] = -1
            if triangle >= 0:
                hits[i] = triangle + first_triangle[max(numbers[INST_ROW * LANES + k], 0)]
                distances[i] = packet[FAR_ROW * LANES + k]
                barycentric[i, 0], barycentric[i, 1] = packet[U_ROW * LANES + k], packet[V_ROW * LANES + k]


@kernel(examples=_example_test_occlusion)
def test_occlusion(
    scene: int, arguments: int, origins: F32, directions: F32, max_distances: F32, occluded: NDArray[np.bool_]
) -> None:
    """Write whether rays hit a triangle (see ``EmbreeScene.is_occluded``)."""
    packet, valid = allocate_aligned(ROWS * LANES), allocate_aligned(LANES).view(np.int32)
    count = len(origins)
    for start in range(0, count, LANES):
        _load_packet(start, count, origins, directions, max_distances, packet, valid)
        _occlude_packet(valid.ctypes.data, scene, packet.ctypes.data, arguments)
        for k in range(min(LANES, count - start)):
            occluded[start + k] = packet[FAR_ROW * LANES + k] < 0.0
