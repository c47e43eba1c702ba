"""Laws of nodes that map clouds: rate, period, changes while the worker is busy; and of the maps they use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.harness.bus import BusHarness

from roboyard.geometry import SE3
from roboyard.mapping.elevation import ElevationMap, ElevationMapConfig
from roboyard.mapping.nodes.cloud_mapper import CloudMap, CloudMapperConfig, CloudMapperNode
from roboyard.mapping.octree import OctreeMap, OctreeMapConfig
from roboyard.messages import msg, srv
from roboyard.messages.convert import cloud_points, cloud_to_msg

PERIOD_NS = 100_000_000


class PointCounter:
    """A map of the test's own: it counts points."""

    def __init__(self) -> None:
        self.n_points = 0

    def clear(self) -> None:
        self.n_points = 0

    def save_state(self) -> dict[str, Any]:
        return {"n": self.n_points}

    def load_state(self, saved: dict[str, Any]) -> None:
        self.n_points = saved["n"]


def count(counter: PointCounter, message: Any) -> int:
    counter.n_points += len(cloud_points(message))
    return counter.n_points


class PointCounterNode(CloudMapperNode[CloudMapperConfig]):
    """Publishes the number of points so far."""

    def setup(self) -> None:
        self.counter = PointCounter()
        self.output = self.publisher("points", msg.Int32, latched=True)
        self.start_mapping(self.counter, "cloud", (self.frame("map"),))
        self.service("~/clear", srv.std_srvs.Empty, self.on_clear)

    def prepare_insertion(self, message: Any, time_ns: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return count, (self.counter, message)

    def report_insertion(self, result: Any) -> bool:
        self.report_health("ok", f"{result} points")
        return True

    def publish_map(self) -> None:
        self.output.publish(msg.Int32(data=self.counter.n_points))

    def on_clear(self, request: Any) -> Any:
        return self.change_map(self.counter.clear, srv.std_srvs.Empty.Response)


class CloudHarness(BusHarness):
    """A bus with the counting node, into which clouds of two points are played."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__()
        self.node = self.add(PointCounterNode(**{"publish_period": 0.0, "latency": 0.03, **parameters}), "counter")
        self.counts = self.record("/points", msg.Int32)

    def play(self, n: int, *, first: int = 1) -> None:
        for k in range(first, first + n):
            self.bus.executor.run_until(k * PERIOD_NS)
            self.publish_transforms((SE3.identity(), "map", "camera"))
            self.publish("/cloud", cloud_to_msg(np.zeros((2, 3)), "camera", k * PERIOD_NS))


def test_clouds_are_inserted_at_most_at_the_largest_rate() -> None:
    with CloudHarness(max_rate=5.0) as harness:
        harness.play(6)
        harness.run_for(0.09)
        assert harness.counts.data == [2, 4, 6]


def test_map_is_published_at_most_once_in_a_period() -> None:
    with CloudHarness(max_rate=10.0, publish_period=0.25) as harness:
        harness.play(6)
        harness.run_for(0.09)
        assert harness.counts.data == [2, 8]
        assert harness.node.counter.n_points == 12


def test_change_waits_for_the_worker_and_is_published_at_once() -> None:
    with CloudHarness(max_rate=10.0, publish_period=10.0) as harness:
        harness.play(2)
        harness.run_for(0.01)
        response = harness.node.on_clear(None)
        assert not response.done()
        harness.run_for(0.09)
        assert response.done()
        assert harness.counts.data == [2, 0]


def test_node_continues_from_a_saved_state() -> None:
    with CloudHarness(max_rate=10.0) as harness:
        harness.play(3)
        harness.run_for(0.09)
        state = harness.node.save_state()
    with CloudHarness(max_rate=10.0) as other:
        other.node.load_state(state)
        other.play(1, first=4)
        other.run_for(0.09)
        assert other.counts.data == [8]


def elevation_map() -> tuple[CloudMap, Callable[[], bytes]]:
    elevation = ElevationMap(ElevationMapConfig(resolution=0.1, length_in_x=2.0, length_in_y=2.0))
    x, y = np.meshgrid(np.linspace(-0.8, 0.8, 60), np.linspace(-0.8, 0.8, 60))
    ground = np.stack([x, y, 0.1 * x - 0.6], axis=-1)
    elevation.insert(ground, SE3.from_xyz_rpy((0.0, 0.0, 0.6), (0.0, 0.0, 0.0)))
    return elevation, lambda: elevation.elevation.tobytes() + elevation.variance.tobytes()


def octree_map() -> tuple[CloudMap, Callable[[], bytes]]:
    octree = OctreeMap(OctreeMapConfig(resolution=0.1))
    octree.insert(np.random.default_rng(1).uniform(0.5, 2.0, (200, 3)), (0.0, 0.0, 0.0))
    return octree, octree.encode_full


@pytest.mark.parametrize("make", [elevation_map, octree_map])
def test_cloud_map_restores_its_saved_state_after_it_was_cleared(
    make: Callable[[], tuple[CloudMap, Callable[[], bytes]]],
) -> None:
    cloud_map, contents = make()
    before, state = contents(), cloud_map.save_state()
    cloud_map.clear()
    assert contents() != before
    cloud_map.load_state(state)
    assert contents() == before
