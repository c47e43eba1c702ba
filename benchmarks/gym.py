"""Environments of Gymnasium: steps a second beside the same run stepped plainly, resets, and two at once.

What one process does is told by the processor's time. Two beside each other are told by the wall's clock, which others
on the machine slow down, and by the time that all processes spent: where that is no more a step than one's alone, two
are twice as fast as long as there are cores."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import roboyard.gym
from roboyard.gym import RobotEnv

NAMES = ("RoverNavigation", "Hexapod", "ArmReach")
WORKERS = 2


def stepped(env: RobotEnv, count: int) -> tuple[float, float]:
    """Steps a second of an environment; and of its run, which is given the same commands and looked at by nobody."""
    told = np.random.default_rng(0).uniform(-0.3, 0.3, (count, *env.action_space.shape))

    def by_env(action: np.ndarray) -> None:
        env.step(action)

    def plainly(action: np.ndarray) -> None:
        run = env.run
        agent.publish(tell(action, run.bus.now_ns))
        run.run_for(env.period)

    env.reset(seed=0)
    own = rate(by_env, told)
    env.reset(seed=0)
    (robot,) = env.run.robots.values()
    tell = env.command.teller(env.robot)
    agent = robot.nodes["agent"].publisher(env.command.topic, env.command.kind())
    return own, rate(plainly, told)


def rate(step: Callable[[np.ndarray], None], told: np.ndarray) -> float:
    """Calls a second, of the processor's time: others may use the machine, too."""
    start = time.thread_time()
    for action in told:
        step(action)
    return len(told) / (time.thread_time() - start)


def begun(env: RobotEnv, count: int) -> float:
    """Median time of a reset [s]."""
    took = []
    for seed in range(count):
        start = time.thread_time()
        env.reset(seed=seed)
        took.append(time.thread_time() - start)
    return float(np.median(took))


def together(name: str, mode: str, count: int, workers: int) -> tuple[float, float]:
    """Steps a second of all environments of a vector: on the wall's clock, and of all its processes' own time.

    Its workers are up before that is counted.
    """
    vector = gymnasium.make_vec(f"roboyard/{name}-v0", workers, vectorization_mode=mode)
    told = np.random.default_rng(0).uniform(-0.3, 0.3, (count, *vector.action_space.shape))
    vector.reset(seed=0)
    vector.step(told[0])
    processes = [os.getpid(), *(process.pid for process in getattr(vector, "processes", ()))]
    spent, start = sum(map(used, processes)), time.perf_counter()
    for action in told:
        vector.step(action)
    wall, own = time.perf_counter() - start, sum(map(used, processes)) - spent
    vector.close()
    return workers * count / wall, workers * count / own


def used(process: int) -> float:
    """Processor time of a process so far [s]."""
    after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")


def run(nightly: bool = False) -> dict[str, Any]:
    count = 2000 if nightly else 300
    figures: list[dict[str, Any]] = []
    for name in NAMES:
        env: RobotEnv = getattr(roboyard.gym, name)()
        env.reset(seed=0)
        env.step(np.zeros(env.action_space.shape))  # kernels are compiled, pages are read
        pairs = [stepped(env, count) for _ in range(3)]
        own, plain = (float(np.median(values)) for values in zip(*pairs, strict=True))
        reset = begun(env, 10)
        period = env.period
        env.close()
        one, one_own = together(name, "sync", count, 1)
        two, two_own = together(name, "async", count, WORKERS)
        figures += [
            {"name": f"{name}: steps of {1e3 * period:.0f} ms", "value": own, "unit": "1/s",
             "peer": "its run, stepped plainly", "peer_value": plain, "ratio": own / plain, "target": "ratio >= 0.8"},
            {"name": f"{name}: times real time", "value": own * period, "unit": "x"},
            {"name": f"{name}: reset", "value": 1e3 * reset, "unit": "ms"},
            {"name": f"{name}: two in processes, on their own time", "value": two_own, "unit": "1/s",
             "peer": "one", "peer_value": one_own, "ratio": two_own / one_own, "target": "ratio >= 0.75"},
            {"name": f"{name}: the same on the wall's clock, load {os.getloadavg()[0]:.1f}", "value": two,
             "unit": "1/s", "peer": "one", "peer_value": one, "ratio": two / one},
        ]  # fmt: skip
    return {"figures": figures}


if __name__ == "__main__":
    for figure in run()["figures"]:
        print(figure["name"], f"{figure['value']:.4g}", figure["unit"], figure.get("ratio", ""))
