"""The truth may be asked for from other threads, as pages, bridges and tests do, while the physics goes on."""

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
def test_truth_read_from_threads_changes_nothing(crates: int) -> None:
    def positions(*, asked: bool) -> list[bytes]:
        with ry.Run("arena", seed=3, record=False) as run:
            rover, over, seen = run.add_robot("rover"), Event(), list[float]()
            for k in range(crates):
                at = (-3.0 + 0.5 * (k % 8), -3.0 + 0.5 * (k // 8), 0.11, 0.0, 0.0, 0.0)
                run.add_object(load_model(CRATE), f"crate{k}", pose=at)

            def ask() -> None:
                while not over.is_set():
                    seen.append(float(np.abs(run.simulation.truth("rover").pose.translation).max()))

            other = Thread(target=ask)
            if asked:
                other.start()
            rover.drive(0.5, 0.3)
            found = []
            for _ in range(20):
                run.run_for(0.1)
                found.append(run.simulation.truth("rover").pose.matrix().tobytes())
            over.set()
            if asked:
                other.join()
                assert len(seen) > (20 if crates else 100)
                assert max(seen) < 5.0
            return found

    assert positions(asked=True) == positions(asked=False)
