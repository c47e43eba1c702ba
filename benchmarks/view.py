"""The view: how often pages get a scene of 60 moving bodies and a scan, what that costs, and how soon it is there."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from roboyard.description import load_model
from roboyard.scenarios import Run, RunControl
from roboyard.scenarios.execution import execute
from roboyard.view import View

BODIES, BEAMS = 60, 720
CHROMIUM = Path("/usr/bin/chromium")
# Another process: what a page costs is its own affair.
WATCHER = """
import json, sys, time
from websockets.sync.client import connect
from roboyard.view.wire import unpacked
url, seconds = sys.argv[1], float(sys.argv[2])
address, _, token = url.partition("#")
poses = scans = size = bodies = 0
first = start = None
begun = time.perf_counter()
with connect(address.replace("http", "ws") + "socket?token=" + token, max_size=None) as socket:
    socket.send(json.dumps({"op": "want", "topic": "/scan", "on": True}))
    while start is None or time.perf_counter() < start + seconds:
        data = socket.recv(timeout=30)
        if isinstance(data, str):
            continue
        head, parts = unpacked(data)
        if head["op"] == "poses" and head["number"]:
            if first is None:
                first = time.perf_counter() - begun
                print("seen", flush=True)
                sys.stdin.readline()
                start = time.perf_counter()
            poses += 1
            bodies = len(parts[0]) // 28
        if start is not None:
            size += len(data)
        scans += head["op"] == "draw"
    took = time.perf_counter() - start
print(json.dumps({"first": first, "poses": poses / took, "scans": scans / took, "rate": size / took, "bodies": bodies}))
"""
CRATE = (
    "<sdf version='1.9'><model name='crate'><link name='l'><inertial><mass>1</mass></inertial><collision name='c'>"
    "<geometry><box><size>.2 .2 .2</size></box></geometry></collision><visual name='v'><geometry><box>"
    "<size>.2 .2 .2</size></box></geometry></visual></link></model></sdf>"
)


@contextmanager
def going(rate: float = 1.0) -> Iterator[tuple[Run, View]]:
    """A rover with its lidar and crates about it, on a thread of its own, and the view."""
    with Run("arena", record=False) as run, View(0) as view:
        run.add_robot("rover")
        crate, bodies = load_model(CRATE), sum(run.simulation.world.model.body_jntnum > 0)
        for k in range(max(0, BODIES - int(bodies))):
            run.add_object(crate, f"crate{k}", pose=(-3.0 + 0.5 * (k % 12), -3.0 + 0.5 * (k // 12), 0.11, 0, 0, 0))
        control = RunControl(real_time_factor=rate)
        control.bind(run.bus)
        view.begin(run, "bench", 1e4, control)
        thread = threading.Thread(target=lambda: execute(run, 1e4, control), daemon=True)
        thread.start()
        try:
            yield run, view
        finally:
            control.stop()
            thread.join(20.0)


def server_seconds() -> float:
    """CPU time of the server's thread so far [s]."""
    thread = next(one for one in threading.enumerate() if one.name == "roboyard-view")
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident or 0))


def updates(nightly: bool) -> list[dict[str, Any]]:
    """How often a page in another process gets poses, and what share of a core the server takes."""
    seconds = 30.0 if nightly else 10.0
    with going() as (_, view):
        looks = [0.0]
        show = view._show
        inner = show._look  # type: ignore[union-attr]

        def timed(*arguments: bool) -> Any:
            begun = time.thread_time()
            try:
                return inner(*arguments)
            finally:
                looks[0] += time.thread_time() - begun

        show._look = timed  # type: ignore[union-attr, method-assign]
        command = [sys.executable, "-c", WATCHER, view.url, str(seconds)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as watcher:
            assert watcher.stdin is not None
            assert watcher.stdout is not None
            watcher.stdout.readline()
            before, copied, begun = server_seconds(), looks[0], time.perf_counter()
            watcher.stdin.write("go\n")
            watcher.stdin.flush()
            found = json.loads(watcher.stdout.readline())
            took = time.perf_counter() - begun
            share = 100.0 * (server_seconds() - before) / took
            run_share = 100.0 * (looks[0] - copied) / took
    bodies = found["bodies"]
    return [
        {"name": f"updates of {bodies} bodies and a scan", "value": round(found["poses"], 1), "unit": "1/s",
         "target": ">= 30"},
        {"name": "CPU of the server's thread", "value": round(share, 1), "unit": "% of a core", "target": "<= 15"},
        {"name": "CPU that looking takes from the run", "value": round(run_share, 2), "unit": "% of a core"},
        {"name": "first poses after connecting", "value": round(found["first"], 2), "unit": "s", "target": "<= 5"},
        {"name": "sent to a page", "value": round(found["rate"] / 1e3, 1), "unit": "kB/s"},
    ]  # fmt: skip


def stops(nightly: bool) -> list[dict[str, Any]]:
    """From letting go to the zero on the bus, in the run's own time, and until the robot stands."""
    from websockets.sync.client import connect

    worst = standing = 0.0
    with going() as (run, view):
        told: list[tuple[int, float]] = []
        run.bus.add_message_observer(
            lambda t, m, node, time_ns: told.append((time_ns, m.linear.x)) if t.name == "/cmd_vel" else None
        )
        address, _, token = view.url.partition("#")
        with connect(address.replace("http", "ws") + "socket?token=" + token, max_size=None) as socket:
            threading.Thread(target=lambda: [None for _ in socket], daemon=True).start()
            time.sleep(3.0)
            for _ in range(20 if nightly else 6):
                for _ in range(12):
                    socket.send(json.dumps({"op": "drive", "space": "", "v": [0.3, 0, 0]}))
                    time.sleep(0.05)
                let_go_ns = run.bus.now_ns
                socket.send(json.dumps({"op": "drive", "space": "", "v": [0, 0, 0]}))
                while not told or told[-1][1] or told[-1][0] < let_go_ns:
                    time.sleep(0.001)
                worst = max(worst, (told[-1][0] - let_go_ns) * 1e-6)
                while abs(run.simulation.ground_truth("rover").linear_velocity[0]) > 0.01:
                    time.sleep(0.001)
                standing = max(standing, (run.bus.now_ns - let_go_ns) * 1e-6)
    return [
        {"name": "from letting go to the command to stop, worst", "value": round(worst, 1), "unit": "ms",
         "target": "<= 200"},
        {"name": "until the rover stands, from 0.3 m/s, worst", "value": round(standing, 1), "unit": "ms"},
    ]  # fmt: skip


def page(nightly: bool) -> list[dict[str, Any]]:
    """How soon a page shows the scene, in Chromium that draws in software."""
    from playwright.sync_api import sync_playwright

    if not CHROMIUM.is_file():
        raise ImportError(f"there is no {CHROMIUM}")
    flags = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with going() as (_, view), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=flags)
        shown = browser.new_page(viewport={"width": 1280, "height": 800})
        begun = time.perf_counter()
        shown.goto(view.url)
        while not shown.evaluate("Boolean(window.roboyard && roboyard.bodies.number > 0 && roboyard.stage.drawn > 0)"):
            shown.wait_for_timeout(20)
        took = time.perf_counter() - begun
        start, drawn = shown.evaluate("roboyard.updates"), shown.evaluate("roboyard.stage.drawn")
        shown.wait_for_timeout(5000)
        rates = [
            (shown.evaluate("roboyard.updates") - start) / 5.0,
            (shown.evaluate("roboyard.stage.drawn") - drawn) / 5.0,
        ]
        browser.close()
    return [
        {"name": "the page is ready", "value": round(took, 2), "unit": "s", "target": "<= 5"},
        {"name": "updates that the page takes in", "value": round(rates[0], 1), "unit": "1/s", "target": ">= 30"},
        {"name": "pictures that it draws, in software", "value": round(rates[1], 1), "unit": "1/s"},
    ]  # fmt: skip


PARTS = (updates, stops, page)
