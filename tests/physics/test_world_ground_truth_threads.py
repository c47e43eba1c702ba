"""Other threads, such as pages and bridges, can read the ground truth while the physics runs."""

from threading import Event, Thread

import numpy as np
import pytest

import roboyard as ry
from roboyard.description import load_model

CRATE = (
    "<sdf version='1.9'><model name='crate'><link name='l'><inertial><mass>1</mass></inertial><collision name='c'>"
    "<geometry><box><size>.2 .2 .2</size></box></geometry></collision></link></model></sdf>"
)


@pytest.mark.slow
@pytest.mark.parametrize("crates", [0, 40])  # so many that the engine's own solver works, in the one room it has
def test_ground_truth_read_from_threads_changes_nothing(crates: int) -> None:
    def positions(*, read_from_thread: bool) -> list[bytes]:
        with ry.Run("arena", seed=3, record=False) as run:
            rover, is_finished, distances = run.add_robot("rover"), Event(), list[float]()
            for k in range(crates):
                pose = (-3.0 + 0.5 * (k % 8), -3.0 + 0.5 * (k // 8), 0.11, 0.0, 0.0, 0.0)
                run.add_object(load_model(CRATE), f"crate{k}", pose=pose)

            def read_ground_truth() -> None:
                while not is_finished.is_set():
                    distances.append(float(np.abs(run.simulation.ground_truth("rover").pose.translation).max()))

            other = Thread(target=read_ground_truth)
            if read_from_thread:
                other.start()
            rover.drive(0.5, 0.3)
            poses = []
            for _ in range(20):
                run.run_for(0.1)
                poses.append(run.simulation.ground_truth("rover").pose.matrix().tobytes())
            is_finished.set()
            if read_from_thread:
                other.join()
                assert len(distances) > (20 if crates else 100)
                assert max(distances) < 5.0
            return poses

    assert positions(read_from_thread=True) == positions(read_from_thread=False)
