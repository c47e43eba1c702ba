"""Metrics of an octree map from a depth camera, and its file in the run's folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from roboyard.bus import Node, resource
from roboyard.mapping.octree import read_octree
from roboyard.messages import msg
from roboyard.messages.convert import cloud_to_msg, pack_rgb
from roboyard.rendering.cameras import look_at
from roboyard.rendering.ray_renderer import RayRenderer
from roboyard.scenarios import Run
from roboyard.simulation import Simulation


class Camera(Node):
    """A depth camera that hangs in the corridor.   out: points, /tf map → camera"""

    simulation: Simulation = resource(Simulation)

    def setup(self) -> None:
        self.camera = look_at((2.0, 0.1, 0.75), (6.0, 0.0, 0.5), fov_y=0.84)
        self.out = self.publisher("points", msg.PointCloud2)
        self.send_transform(self.camera.T_world_camera, "map", "camera", static=True)
        scene = self.simulation.visual_scene()
        with RayRenderer(scene.model, 320, 240, antialias=False, shadows=False) as renderer:
            colors, depth = renderer.render_rgbd(scene.data, self.camera)
        u, v = np.meshgrid(np.arange(320) + 0.5 - 160, np.arange(240) + 0.5 - 120)
        focal = self.camera.focal_length(240)
        self.points = np.stack([u / focal * depth, v / focal * depth, depth], axis=-1).reshape(-1, 3)
        self.points[depth.reshape(-1) <= 0.0] = np.nan
        self.colors = pack_rgb(colors.reshape(-1, 3))
        self.timer(rate=5.0, callback=self.show, immediate=True)

    def show(self) -> None:
        self.out.publish(cloud_to_msg(self.points, "camera", self.now_ns, fields={"rgb": self.colors}))


def test_octree_is_measured_and_saved(tmp_path: Path) -> None:
    octree = {"cloud_topic": "points", "save_path": "space.ot", "publish_period": 1.0}
    with Run("corridor", out=tmp_path / "run") as run:
        rover = run.add_robot("rover", pose=(0.0, 0.0, 0.0), nodes="none")
        rover.add_node(Camera(simulation=run.simulation), "camera")
        rover.add_node("octree", "octree", parameters=octree)
        run.run_for(3.0)
        run.report()
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())["robots"]["rover"]["metrics"]
    assert metrics["octree_iou"] > 0.9
    assert metrics["octree_precision"] > 0.95
    assert metrics["octree_recall"] > 0.9
    saved = read_octree(tmp_path / "run" / "space.ot")
    assert saved.leaves.resolution == 0.05
    assert saved.leaves.occupied.sum() > 1000


def test_empty_octree_is_saved_without_metrics(tmp_path: Path) -> None:
    with Run("empty") as run:
        rover = run.add_robot("rover", nodes="none")
        rover.add_node("octree", "octree", parameters={"save_path": "space.bt"})
        run.run_for(0.2)
        run.report(tmp_path / "run")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())["robots"]["rover"]["metrics"]
    assert "octree_iou" not in metrics
    assert len(read_octree(tmp_path / "run" / "space.bt").leaves) == 0


def test_recording_with_an_octree_is_byte_identical(tmp_path: Path) -> None:
    recordings = []
    for name in ("one", "two"):
        with Run("corridor", out=tmp_path / name) as run:
            rover = run.add_robot("rover", pose=(0.0, 0.0, 0.0), nodes="none")
            rover.add_node(Camera(simulation=run.simulation), "camera")
            rover.add_node("octree", "octree", parameters={"cloud_topic": "points", "publish_period": 0.5})
            run.run_for(1.5)
        recordings.append((tmp_path / name / "recording.mcap").read_bytes())
    assert recordings[0] == recordings[1]
    assert b"octomap_full" in recordings[0]
