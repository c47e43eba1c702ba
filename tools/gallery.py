"""Make the gallery's pictures and clips anew, from real runs that are looked at in the view.

Each scene is a scenario with --view, seen by Chromium without a window; needs the extra e2e and /usr/bin/chromium.
``tools/gallery.py NAME …`` makes only those.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
SIZE = (1280, 800)
CLIP_STEP, CLIP_WIDTH, CLIP_PERIOD_MS = 0.2, 560, 100
"""Of clips: simulated time between two pictures [s], width [px], time that each is shown [ms]."""


@dataclass(frozen=True)
class Scene:
    """What is seen: a scenario and its options, from which time on [s], with which panel, and what is done first."""

    scenario: tuple[str, ...]
    time: float
    panel: str = "drive"
    script: str = ""
    clip: int = 0
    theme: str = "light"


SCENES = {
    "view": Scene(("rover-homing",), 21.0, "graph", clip=40),
    "view-cell": Scene(("cell-coexistence",), 12.0, "trees", "roboyard.stage.frame(roboyard.bodies.around('arm'))", 40),
    "view-walker": Scene(("akrobat-free-gait",), 14.0, "log", "", 40, "dark"),
    "view-mapping": Scene(("rover-explore",), 40.0, "plots", theme="dark"),
}


def make(browser: Any, name: str, scene: Scene) -> None:
    """One picture, and a clip where one is wanted."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).with_name("roboyard")), "run", *scene.scenario, "--view", "--no-video",
                   "--out", f"{folder}/run"]  # fmt: skip
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as run:
            try:
                url = next(found[0] for line in run.stderr or () if (found := re.search(r"http://\S+", line)))
                page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme=scene.theme)
                page.goto(url)
                wait(page, "window.roboyard && roboyard.bodies.number > 0 && roboyard.updates > 2")
                page.click(f"[data-panel={scene.panel}]")
                page.evaluate(scene.script or "0")
                wait(page, f"roboyard.time >= {scene.time}")
                page.click("#play")
                wait(page, "document.getElementById('state').textContent === 'paused'")
                page.wait_for_timeout(1500)
                picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
                picture.save(IMAGES / f"{name}.jpg", quality=82)
                if scene.clip:
                    shoot(page, IMAGES / f"{name}.webp", scene.clip)
                page.close()
            finally:
                run.terminate()
    print(name)


def shoot(page: Any, path: Path, count: int) -> None:
    """A clip of the stage alone, step by step: it does not matter how slowly pictures are drawn."""
    pictures = []
    for _ in range(count):
        before = page.evaluate("roboyard.time")
        page.evaluate(f"roboyard.socket.ask('step', {{seconds: {CLIP_STEP}}})")
        wait(
            page,
            f"roboyard.time > {before} + {CLIP_STEP} / 2 && !roboyard.stage.changed && !roboyard.stage.isDrawing()",
        )
        shot = Image.open(io.BytesIO(page.locator("#stage").screenshot())).convert("RGB")
        pictures.append(
            shot.resize((CLIP_WIDTH, round(CLIP_WIDTH * shot.height / shot.width)), Image.Resampling.LANCZOS)
        )
    pictures[0].save(
        path, save_all=True, append_images=pictures[1:], duration=CLIP_PERIOD_MS, loop=0, quality=55, method=4
    )


def wait(page: Any, expression: str) -> None:
    """Until it holds."""
    for _ in range(6000):
        if page.evaluate(f"Boolean({expression})"):
            return
        page.wait_for_timeout(50)
    raise SystemExit(f"{expression} does not come true")


def main() -> None:
    """Those that are named, or all."""
    names = sys.argv[1:] or list(SCENES)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        for name in names:
            make(browser, name, SCENES[name])
        browser.close()


if __name__ == "__main__":
    main()
