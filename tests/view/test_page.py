"""The page as a person uses it, in a real browser."""

from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.harness.live_run import poll
from tests.harness.scenarios import ScenarioBuilder
from tests.view.browser import Page, browser
from tests.view.conftest import Stage

from roboyard.bus.topics import Topic
from roboyard.scenarios import Run, RunControl, load_scenario, run_scenario
from roboyard.scenarios.run_options import RunObserver, RunOptions
from roboyard.view import Player, Server, View

COUNT_COLORS = """async () => {
  const blob = await roboyard.stage.picture();
  const image = await createImageBitmap(blob);
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const data = context.getImageData(0, 0, image.width, image.height).data;
  const seen = new Set();
  for (let k = 0; k < data.length; k += 4 * 97) seen.add(`${data[k] >> 4} ${data[k + 1] >> 4} ${data[k + 2] >> 4}`);
  return seen.size;
}"""
"""How many colours the picture has: an empty scene has very few."""


def test_page_shows_a_live_run_and_controls_its_clock(stage: Stage, tmp_path: Path) -> None:
    with browser() as chromium:
        stage.start(rate=1.0)
        shown = Page(chromium, stage.view.url).ready()
        page = shown.page
        assert page.locator("#state").inner_text() == "running"
        assert "you have control" in page.locator("#control").inner_text()
        shown.wait("roboyard.drawings.groups.has('/scan')")
        assert shown.value(COUNT_COLORS) > 12

        page.click("[data-display='/scan']")
        assert not shown.value("roboyard.drawings.groups.has('/scan')")
        page.click("[data-display='robots']")
        assert shown.value("roboyard.bodies.shown.robots") is False
        page.click("[data-display='robots']")

        page.click("#play")
        shown.wait("document.getElementById('state').textContent === 'paused'")
        before = shown.value("roboyard.time")
        page.click("#step")
        shown.wait(f"roboyard.time > {before} + 0.09")
        assert shown.value("roboyard.time") == pytest.approx(before + 0.1, abs=1e-6)

        page.click("#theme")
        assert shown.value("document.documentElement.dataset.theme") == "dark"
        with page.expect_download() as saved:
            page.click("#shot")
        saved.value.save_as(tmp_path / "shot.png")
        assert (tmp_path / "shot.png").read_bytes().startswith(b"\x89PNG")
        assert not shown.complaints


@pytest.mark.slow
def test_camera_follows_the_robot(stage: Stage) -> None:
    with browser() as chromium:
        stage.start(rate=1.0)
        shown = Page(chromium, stage.view.url).ready()
        assert shown.page.input_value("#follow") == "rover"
        start = shown.value("roboyard.stage.controls.target.x")
        stage.run.bus.inputs.run_on_executor(lambda: stage.run.robots["rover"].drive(0.5))
        shown.wait(f"Math.abs(roboyard.stage.controls.target.x - {start}) > 0.3")
        body = shown.value("roboyard.bodies.bodyOf('rover').position.x")
        assert shown.value("roboyard.stage.controls.target.x") - start == pytest.approx(body, abs=0.15)


def test_page_without_token_shows_nothing(stage: Stage) -> None:
    with browser() as chromium:
        stage.start(rate=1.0)
        shown = Page(chromium, stage.view.url.partition("#")[0] + "#guess")
        shown.wait("document.getElementById('state').dataset.state === 'lost'")
        assert shown.value("roboyard.updates") == 0
        assert shown.value("roboyard.bodies.number") == 0


def run_in_thread(path: str, view: View, out: Path, overrides: list[str], ended: list[Run]) -> Thread:
    """A scenario that goes on in real time on a thread of its own, seen."""
    spec, control = load_scenario(path, overrides=overrides), RunControl(real_time_factor=1.0)

    def started(run: Run) -> None:
        ended.append(run)
        view.begin(run, "test", 600.0, control)

    thread = Thread(
        target=lambda: run_scenario(
            spec,
            RunOptions(out=out, write_report=False, serve=False),
            control=control,
            observer=RunObserver(on_started=started),
        ),
        daemon=True,
    )
    thread.start()
    return thread


def on_screen(shown: Page, x: float, y: float) -> tuple[float, float]:
    """Where a point of the floor is on the screen."""
    place = shown.value(
        f"""(() => {{
          const {{ camera, canvas, controls }} = roboyard.stage;
          camera.updateMatrixWorld();
          const point = controls.target.clone().set({x}, {y}, 0).project(camera);
          const box = canvas.getBoundingClientRect();
          return [box.left + (point.x + 1) / 2 * box.width, box.top + (1 - point.y) / 2 * box.height];
        }})()"""
    )
    return place[0], place[1]


QUIET = ["operator=[{link_loss: 600 s}]", "duration=600"]


@pytest.mark.slow
def test_clicked_goal_is_reached(tmp_path: Path) -> None:
    runs: list[Run] = []
    with View(0) as view, browser() as chromium:
        thread = run_in_thread("rover-homing", view, tmp_path / "run", QUIET, runs)
        shown = Page(chromium, view.url).ready()
        shown.wait("!roboyard.tools.buttons.get('goal').disabled")
        shown.page.click("[data-tool=goal]")
        start, end = on_screen(shown, 1.6, 0.0), on_screen(shown, 2.2, 0.0)
        shown.page.mouse.move(*start)
        shown.page.mouse.down()
        shown.page.mouse.move(*end, steps=4)
        shown.page.mouse.up()
        shown.wait("roboyard.drawings.groups.has('/plan')", 30)
        shown.wait("Math.hypot(roboyard.bodies.bodyOf('rover').position.x - 1.6, "
                   "roboyard.bodies.bodyOf('rover').position.y) < 0.25", 60)  # fmt: skip
        assert not shown.complaints
        shown.page.click("#end")
        thread.join(30.0)


@pytest.mark.slow
def test_keys_drive_and_a_closed_page_is_a_lost_operator(tmp_path: Path) -> None:
    runs: list[Run] = []
    with View(0) as view, browser() as chromium:
        thread = run_in_thread("rover-homing", view, tmp_path / "run", QUIET, runs)
        shown = Page(chromium, view.url).ready()
        shown.wait("roboyard.drive.listening")
        run = runs[0]
        commands: list[tuple[int, float]] = []
        orders: list[str] = []

        def on_message(topic: Topic, message: Any, node: str, time_ns: int) -> None:
            if topic.name == "/cmd_vel" and node == "/teleop":
                commands.append((time_ns, message.linear.x))
            if topic.name == "/homing/status":
                orders.append(message.link)

        run.bus.add_message_observer(on_message)
        page = shown.page
        page.check("#operator")
        page.keyboard.down("w")
        shown.wait("roboyard.bodies.bodyOf('rover').position.x > 0.8", 40)
        page.keyboard.up("w")
        shown.wait("document.getElementById('drive-told').textContent === 'nothing is held'")
        poll(lambda: commands[-1][1] == 0.0)
        end = run.time + 0.8
        poll(lambda: run.time > end)
        assert commands[-1][1] == 0.0
        x = run.simulation.ground_truth("rover").pose.x
        poll(lambda: run.time > end + 0.4)
        assert abs(run.simulation.ground_truth("rover").pose.x - x) < 0.01
        shown.wait(f"Math.abs(roboyard.bodies.bodyOf('rover').position.x - {x}) < 0.01", 5)  # a busy page comes after
        page.keyboard.down("w")
        page.wait_for_timeout(300)
        page.close()
        # it has turned round and is on its way home
        poll(lambda: run.simulation.ground_truth("rover").pose.x < x - 0.3, expected=f"the way home after {orders}")
        assert commands[-1][1] == 0.0
        Page(chromium, view.url).ready().page.click("#end")
        thread.join(30.0)


@pytest.mark.slow
def test_page_seeks_in_a_recording(tmp_path: Path) -> None:
    spec = ScenarioBuilder(world="arena", duration=5.0).drive(0.4, duration=9.0).load(tmp_path)
    run_scenario(spec, RunOptions(out=tmp_path / "run", write_report=False, serve=False))
    player = Player(tmp_path / "run")
    server = Server(0)
    try:
        server.show(player)
        with browser() as chromium:
            shown = Page(chromium, server.url).ready()
            shown.page.click("#play")
            shown.wait("document.getElementById('state').textContent === 'paused'")
            for time in (4.0, 1.0):
                shown.page.locator("#slider").fill(str(time))
                shown.wait(f"Math.abs(roboyard.time - {time}) < 0.02")
                x = shown.value("roboyard.bodies.bodyOf('rover').position.x")
                assert x == pytest.approx(0.4 * time, abs=0.15)
            assert not shown.complaints
    finally:
        server.close()
        player.close()
