"""The page as a person uses it, in a real browser."""

from pathlib import Path

import pytest
from tests.view.browser import Page, browser
from tests.view.conftest import Stage

from roboyard.bus.pacing import wall_seconds
from roboyard.scenarios import load_spec, run_scenario
from roboyard.view import Player, Server

COLOURS = """async () => {
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


def test_a_live_run_is_seen_and_its_clock_obeys(stage: Stage, tmp_path: Path) -> None:
    with browser() as made:
        stage.start(rate=1.0)
        began = wall_seconds()
        shown = Page(made, stage.view.url).ready()
        assert wall_seconds() - began < 15.0  # 5 s where nobody else works
        page = shown.page
        assert page.locator("#state").inner_text() == "running"
        assert "you have control" in page.locator("#control").inner_text()
        shown.wait("roboyard.drawings.groups.has('/scan')")
        assert shown.value(COLOURS) > 12

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


def test_the_camera_follows(stage: Stage) -> None:
    with browser() as made:
        stage.start(rate=1.0)
        shown = Page(made, stage.view.url).ready()
        assert shown.page.input_value("#follow") == "rover"
        start = shown.value("roboyard.stage.controls.target.x")
        stage.run.bus.inputs.query(lambda: stage.run.robots["rover"].drive(0.5))
        shown.wait(f"Math.abs(roboyard.stage.controls.target.x - {start}) > 0.3")
        body = shown.value("roboyard.bodies.bodyOf('rover').position.x")
        assert shown.value("roboyard.stage.controls.target.x") - start == pytest.approx(body, abs=0.15)


def test_without_the_token_nothing_is_seen(stage: Stage) -> None:
    with browser() as made:
        stage.start(rate=1.0)
        shown = Page(made, stage.view.url.partition("#")[0] + "#guess")
        shown.wait("document.getElementById('state').dataset.state === 'lost'")
        assert shown.value("roboyard.updates") == 0
        assert shown.value("roboyard.bodies.number") == 0


def test_a_recording_is_loaded_and_scrubbed(tmp_path: Path) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text(
        "world: arena\nrobots: {rover: {model: rover}}\noperator: [{drive: {v: 0.4, for: 9}}]\nduration: 5\n"
    )
    run_scenario(load_spec(scenario), out=tmp_path / "run", report=False, serve=False)
    player = Player(tmp_path / "run")
    server = Server(0)
    try:
        server.show(player)
        with browser() as made:
            shown = Page(made, server.url).ready()
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
