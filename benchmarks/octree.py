"""Taking clouds into an octree map, beside OctoMap's own library; and how well the map agrees with the world.

A camera of 640 × 480 points is carried through the corridor; all maps get the same exact pictures.
``python benchmarks/octree.py FILE.ot`` writes the map.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import roboyard
from roboyard.description import load_world
from roboyard.grids import VoxelPoints, voxel_downsample
from roboyard.mapping.evaluation.map_error import VoxelAgreement, compare_voxels
from roboyard.mapping.octree import OctreeMap, OctreeMapConfig, write_octree
from roboyard.mapping.octree.octree import to_dense
from roboyard.mapping.octree.voxel_blocks import ORIGIN_KEY
from roboyard.rendering.cameras import look_at
from roboyard.rendering.ray_renderer import RayRenderer
from roboyard.simulation import Simulation
from roboyard.simulation.ground_truth_maps import voxelize_surfaces

WIDTH, HEIGHT, FOV_Y = 640, 480, 0.84
RESOLUTION, REACH = 0.05, 5.0
WORLD = Path(roboyard.__file__).parent / "worlds" / "corridor.sdf"


@dataclass(frozen=True)
class View:
    """A picture's points in the world, where it was taken, and its colours."""

    points: np.ndarray
    origin: np.ndarray
    colors: np.ndarray


class Corridor:
    """The world and a camera in it."""

    def __init__(self) -> None:
        self.simulation = Simulation(load_world(WORLD))
        scene = self.simulation.visual_scene()
        self.model, self.data = scene.model, scene.data
        self.renderer = RayRenderer(scene.model, WIDTH, HEIGHT, antialias=False, shadows=False)

    def close(self) -> None:
        self.renderer.close()
        self.simulation.close()

    def view(self, eye: tuple[float, float, float]) -> View:
        """What is seen along the corridor."""
        camera = look_at(eye, (eye[0] + 4.0, 0.0, 0.5), fov_y=FOV_Y)
        colors, depth = self.renderer.render_rgbd(self.data, camera)
        columns, rows = np.meshgrid(np.arange(WIDTH) + 0.5 - WIDTH / 2, np.arange(HEIGHT) + 0.5 - HEIGHT / 2)
        focal = camera.focal_length(HEIGHT)
        points = np.stack([columns / focal * depth, rows / focal * depth, depth], axis=-1).reshape(-1, 3)
        seen = depth.reshape(-1) > 0.0
        return View(camera.T_world_camera @ points[seen], np.array(eye), colors.reshape(-1, 3)[seen])

    def judged(self, octree: OctreeMap, shift: float) -> VoxelAgreement:
        """Against the truth, for a map in which everything lies ``shift`` farther along each axis."""
        state, low = to_dense(octree.leaves())
        corner = (low - ORIGIN_KEY) * RESOLUTION - shift
        found = voxelize_surfaces(self.model, self.data, corner, state.shape, RESOLUTION, tolerance=0.02 * RESOLUTION)
        return compare_voxels(state, *found)


def best_ms(times: list[float]) -> float:
    return min(times) * 1e3


def noisy(view: View, rng: np.random.Generator) -> View:
    """With the axial noise of a Kinect: σ = 1.2 mm + 1.9 mm/m² (z - 0.4 m)² (Nguyen, Izadi and Lovell 2012)."""
    way = view.points - view.origin
    z = np.linalg.norm(way, axis=1)
    error = (0.0012 + 0.0019 * (z - 0.4) ** 2) * rng.standard_normal(len(z))
    return View(view.points + way * (error / np.maximum(z, 1e-9))[:, None], view.origin, view.colors)


def built(views: list[View], shift: float = 0.0) -> tuple[OctreeMap, list[float]]:
    octree, times = OctreeMap(OctreeMapConfig(resolution=RESOLUTION)), []
    for view in views:
        start = time.perf_counter()
        octree.insert(view.points + shift, view.origin + shift, view.colors)
        times.append(time.perf_counter() - start)
    return octree, times


def peer_full(views: list[View]) -> list[float]:
    """OctoMap's library, all points."""
    import pyoctomap

    tree, times = pyoctomap.ColorOcTree(RESOLUTION), []
    for view in views:
        start = time.perf_counter()
        tree.insertPointCloud(view.points, view.origin, REACH, True, False, view.colors / 255.0)
        times.append(time.perf_counter() - start)
    return times


def thinned(views: list[View]) -> list[tuple[VoxelPoints, np.ndarray]]:
    """A point for each voxel within reach, and where they are seen from."""
    near = [np.linalg.norm(view.points - view.origin, axis=1) <= REACH for view in views]
    return [
        (voxel_downsample(v.points[chosen], None, RESOLUTION), v.origin) for v, chosen in zip(views, near, strict=True)
    ]


def beams_ms(clouds: list[tuple[VoxelPoints, np.ndarray]]) -> float:
    """Ours, beams alone."""
    octree, times = OctreeMap(OctreeMapConfig(resolution=RESOLUTION)), []
    for cloud, origin in clouds:
        start = time.perf_counter()
        octree.insert_rays(origin, cloud.points, cloud.keys + ORIGIN_KEY, len(cloud.keys))
        times.append(time.perf_counter() - start)
    return best_ms(times)


def peer_thinned(clouds: list[tuple[VoxelPoints, np.ndarray]]) -> list[float]:
    """OctoMap's library, the same beams."""
    import pyoctomap

    tree, times = pyoctomap.OcTree(RESOLUTION), []
    for cloud, origin in clouds:
        start = time.perf_counter()
        tree.insertPointCloud(cloud.points, origin, -1.0, True, False)
        times.append(time.perf_counter() - start)
    return times


def tell_ms(octree: OctreeMap) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        nodes = octree.to_octree()
        octree.encode_full(nodes)
        octree.encode_binary()
        octree.leaves(nodes)
        times.append(time.perf_counter() - start)
    return best_ms(times)


def timed(name: str, ours: float, peer: str, peers: list[float] | None, missing: str | None) -> dict[str, Any]:
    theirs = None if peers is None else best_ms(peers)
    return {
        "name": name, "value": round(ours, 1), "unit": "ms", "target": "<= 65", "peer": peer, "missing": missing,
        "peer_value": None if theirs is None else round(theirs, 1),
        "ratio": None if theirs is None else round(theirs / ours, 1),
    }  # fmt: skip


def run(nightly: bool) -> dict[str, Any]:
    """A cloud of 640 × 480 points, and the map's agreement with the world."""
    corridor, count = Corridor(), 24 if nightly else 8
    try:
        views = [corridor.view((1.0 + 8.0 * k / count, 0.1 * math.sin(k), 0.75)) for k in range(count)]
        built(views[:2])  # compile
        octree, times = built(views)
        clouds = thinned(views)
        missing, all_points, same_beams = None, None, None
        try:
            all_points, same_beams = peer_full(views), peer_thinned(clouds)
        except ImportError as error:
            missing = str(error)
        name = "640 × 480 coloured points into a map of 5 cm"
        found: list[dict[str, Any]] = [
            timed(name, best_ms(times), "OctoMap, all points", all_points, missing),
            timed("beams of the thinned cloud alone", beams_ms(clouds), "OctoMap, the same beams", same_beams, missing),
            {"name": "tree, .ot, .bt and leaves of it", "value": round(tell_ms(octree), 1), "unit": "ms"},
        ]
        rng = np.random.default_rng(0)
        for what, seen, shift, target in (
            ("exact depth", views, 0.0, ">= 0.85"),
            ("exact depth, walls off the voxels' borders", views, 0.02, ">= 0.85"),
            ("Kinect's axial noise, walls off the voxels' borders", [noisy(view, rng) for view in views], 0.02, None),
        ):
            judged = corridor.judged(built(seen, shift)[0], shift)
            iou = judged.iou or 0.0
            found.append({"name": f"voxel IoU, {what}", "value": round(iou, 3), "unit": "", "target": target})
        beams = octree.insert(views[0].points, views[0].origin).n_beams
        return {"figures": found, "details": [f"{len(views)} pictures; the first leaves {beams} beams"]}
    finally:
        corridor.close()


def main(file: Path) -> None:
    """The map of exact pictures, as docs/images/octree-corridor.jpg shows it."""
    corridor = Corridor()
    octree, _ = built([corridor.view((1.0 + k, 0.1 * math.sin(k), 0.75)) for k in range(8)])
    write_octree(file, octree)
    corridor.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
