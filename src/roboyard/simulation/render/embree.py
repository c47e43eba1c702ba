"""Intel Embree, called straight from compiled code: sixteen rays at a time, bodies as instances.

The library is the one that the ``embreex`` wheel carries.  embreex's own Python interface knows neither packets of
rays nor instances; with both a picture takes a quarter of the time.  Constants and layouts: embree4/rtcore*.h.
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
from roboyard.simulation.render.single import Cases

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
NOTHING = np.float32(1e30)


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


def _external(name: str) -> Callable[[int, int, int, int], None]:
    """A function of the library for use in kernels; by name, so that compiled kernels can be kept on disk."""
    address = ctypes.cast(getattr(_library(), name), ctypes.c_void_p).value
    llvmlite.binding.add_symbol(name, address)
    external: Callable[[int, int, int, int], None] = types.ExternalFunction(
        name, types.void(types.intp, types.intp, types.intp, types.intp)
    )
    return external


intersect = _external("rtcIntersect16")
_occluded = _external("rtcOccluded16")


class Meshes:
    """Rigid pieces of triangles whose poses can change, and rays against them.

    Args:
        pieces: For each piece its triangles' corners (n, 3, 3) in the piece's frame [m].

    Attributes:
        first: (p,) number of each piece's first triangle, all pieces counted through.
        whole: Embree's scene of all pieces.
    """

    def __init__(self, pieces: list[NDArray[np.float64]]) -> None:
        library = _library()
        # One thread: trees that several threads build could differ from run to run.
        self._device = library.rtcNewDevice(b"threads=1")
        self._scenes: list[int] = [self._piece(corners) for corners in pieces]
        self.whole: int = library.rtcNewScene(self._device)
        self._instances: list[int] = []
        for scene in self._scenes:
            instance = library.rtcNewGeometry(self._device, _INSTANCE)
            library.rtcSetGeometryInstancedScene(instance, scene)
            library.rtcCommitGeometry(instance)
            library.rtcAttachGeometry(self.whole, instance)
            self._instances.append(instance)
        library.rtcCommitScene(self.whole)
        counts = [len(corners) for corners in pieces]
        self.first: I32 = (
            np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int32) if counts else np.zeros(1, np.int32)
        )
        # RTCIntersectArguments: flags, feature mask (all), no context, no callbacks.
        self._arguments = np.zeros(16, np.int32)
        self._arguments[:2] = _COHERENT, -1

    def _piece(self, corners: NDArray[np.float64]) -> int:
        library, count = _library(), len(corners)
        scene: int = library.rtcNewScene(self._device)
        library.rtcSetSceneBuildQuality(scene, _HIGH_QUALITY)
        library.rtcSetSceneFlags(scene, _ROBUST)
        geometry = library.rtcNewGeometry(self._device, _TRIANGLES)
        vertices, indices = np.ascontiguousarray(corners, np.float32), np.arange(3 * count, dtype=np.uint32)
        for kind, form, rows, values in ((_VERTICES, _FLOAT3, 3 * count, vertices), (_INDICES, _UINT3, count, indices)):
            buffer = library.rtcSetNewGeometryBuffer(geometry, kind, 0, form, 12, rows)
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

    def place(self, rotations: F32, translations: F32) -> None:
        """Put the pieces at world poses: rotations (p, 3, 3), translations (p, 3) [m]."""
        library = _library()
        poses = np.concatenate([rotations, translations[:, :, None]], axis=2).astype(np.float32)
        for instance, pose in zip(self._instances, poses, strict=True):
            library.rtcSetGeometryTransform(instance, 0, _TRANSFORM_ROWS, pose.ctypes.data)
            library.rtcCommitGeometry(instance)
        library.rtcCommitScene(self.whole)

    def nearest(
        self, origins: F32, directions: F32, reach: F32 | None = None, piece: int | None = None
    ) -> tuple[I32, F32, F32]:
        """What each ray meets first.

        Args:
            origins: (n, 3) [m].
            directions: (n, 3) unit vectors.
            reach: (n,) how far each ray goes [m]; None = for ever.
            piece: Look at this piece alone, in its own frame.

        Returns:
            Triangle (n,), −1 = none; distance (n,) [m], ``reach`` or ``NOTHING`` where none; and the barycentric
            coordinates (n, 2) of the hit with respect to the triangle's second and third corner.
        """
        distances = np.full(len(origins), NOTHING, np.float32) if reach is None else reach.copy()
        hits, inside = np.empty(len(origins), np.int32), np.empty((len(origins), 2), np.float32)
        scene, first = (
            (self.whole, self.first) if piece is None else (self._scenes[piece], self.first[piece : piece + 1])
        )
        trace(scene, self.arguments, origins, directions, first, hits, distances, inside)
        return hits, distances, inside

    def blocked(self, origins: F32, directions: F32, reach: F32) -> NDArray[np.bool_]:
        """Whether a ray meets anything nearer than ``reach`` (n,) [m]; arguments as for ``nearest``."""
        met = np.empty(len(origins), np.bool_)
        test(self.whole, self.arguments, origins, directions, reach, met)
        return met

    def close(self) -> None:
        """Free the library's memory; rays are no longer possible."""
        if self._device is None:
            return
        library = _library()
        for instance in self._instances:
            library.rtcReleaseGeometry(instance)
        for scene in (self.whole, *self._scenes):
            library.rtcReleaseScene(scene)
        library.rtcReleaseDevice(self._device)
        self._device = None


def _packet_examples() -> Cases:
    rays = np.zeros((1, 3), np.float32)
    yield 0, 1, rays, rays, np.zeros(1, np.float32), np.zeros(1, np.float32), np.zeros(1, np.int32)


def _trace_examples() -> Cases:
    rays, numbers = np.zeros((1, 3), np.float32), np.zeros(1, np.int32)
    yield 0, 0, rays, rays, numbers, numbers, np.zeros(1, np.float32), np.zeros((1, 2), np.float32)


def _test_examples() -> Cases:
    rays = np.zeros((1, 3), np.float32)
    yield 0, 0, rays, rays, np.zeros(1, np.float32), np.zeros(1, np.bool_)


@kernel(examples=lambda: [(16,)])
def aligned(count: int) -> F32:
    """``count`` floats that begin at a multiple of 64 bytes, as packets of sixteen must."""
    raw = np.zeros(count + 16, np.float32)
    start = ((64 - (raw.ctypes.data & 63)) & 63) >> 2
    return raw[start : start + count]


@kernel(examples=lambda: [(np.zeros(ROWS * LANES, np.float32),)])
def clear_packet(packet: F32) -> None:
    """Make a packet one of rays without end that have met nothing; origins and directions are the caller's."""
    numbers = packet.view(np.int32)
    for k in range(LANES):
        packet[_TNEAR * LANES + k] = 0.0
        packet[_TIME * LANES + k] = 0.0
        packet[FAR_ROW * LANES + k] = NOTHING
        numbers[_MASK * LANES + k] = -1
        numbers[_FLAGS * LANES + k] = 0
        numbers[PRIM_ROW * LANES + k] = -1
        numbers[_GEOM * LANES + k] = -1
        numbers[INST_ROW * LANES + k] = -1


@kernel(examples=_packet_examples)
def _load(first: int, count: int, origins: F32, directions: F32, reach: F32, packet: F32, valid: I32) -> None:
    clear_packet(packet)
    for k in range(LANES):
        i = first + k
        inside = i < count
        valid[k] = -1 if inside else 0
        if inside:
            for c in range(3):
                packet[c * LANES + k] = origins[i, c]
                packet[(DIR_ROW + c) * LANES + k] = directions[i, c]
            packet[FAR_ROW * LANES + k] = reach[i]


@kernel(examples=_trace_examples)
def trace(
    scene: int, arguments: int, origins: F32, directions: F32, first: I32, hits: I32, distances: F32, inside: F32
) -> None:
    """Nearest hits; ``distances`` holds how far rays go and gets the hits' distances (see ``Meshes.nearest``)."""
    packet, valid = aligned(ROWS * LANES), aligned(LANES).view(np.int32)
    numbers = packet.view(np.int32)
    count = len(origins)
    for start in range(0, count, LANES):
        _load(start, count, origins, directions, distances, packet, valid)
        intersect(valid.ctypes.data, scene, packet.ctypes.data, arguments)
        for k in range(min(LANES, count - start)):
            i = start + k
            triangle = numbers[PRIM_ROW * LANES + k]
            hits[i] = -1
            if triangle >= 0:
                hits[i] = triangle + first[max(numbers[INST_ROW * LANES + k], 0)]
                distances[i] = packet[FAR_ROW * LANES + k]
                inside[i, 0], inside[i, 1] = packet[U_ROW * LANES + k], packet[V_ROW * LANES + k]


@kernel(examples=_test_examples)
def test(scene: int, arguments: int, origins: F32, directions: F32, reach: F32, met: NDArray[np.bool_]) -> None:
    """Whether rays meet anything (see ``Meshes.blocked``)."""
    packet, valid = aligned(ROWS * LANES), aligned(LANES).view(np.int32)
    count = len(origins)
    for start in range(0, count, LANES):
        _load(start, count, origins, directions, reach, packet, valid)
        _occluded(valid.ctypes.data, scene, packet.ctypes.data, arguments)
        for k in range(min(LANES, count - start)):
            met[start + k] = packet[FAR_ROW * LANES + k] < 0.0
