"""The truth may be asked for from other threads, as pages, bridges and tests do, while the physics goes on."""

from threading import Event, Thread

import numpy as np

import roboyard as ry


def test_truth_is_told_between_steps_and_changes_nothing() -> None:
    def positions(*, asked: bool) -> list[bytes]:
        with ry.Run("arena", seed=3, record=False) as run:
            rover, over, seen = run.add("rover"), Event(), list[float]()

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
                assert len(seen) > 100
                assert max(seen) < 5.0
            return found

    assert positions(asked=True) == positions(asked=False)
