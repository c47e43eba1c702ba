"""A browser for tests: Debian's Chromium, drawing in software."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from roboyard.compute.wall_clock import wall_seconds

CHROMIUM = Path("/usr/bin/chromium")
SOFTWARE = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


@contextmanager
def browser() -> Iterator[Any]:
    """A browser; where there is none the test is skipped."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs the extra e2e")
    if not CHROMIUM.is_file():
        pytest.skip(f"needs {CHROMIUM}")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=SOFTWARE)
        try:
            yield chromium
        finally:
            chromium.close()


class Page:
    """An open page of a view, and what it has complained about."""

    def __init__(self, chromium: Any, url: str, *, width: int = 1280, height: int = 800, theme: str = "light") -> None:
        self.page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda line: line.type == "error" and self.complaints.append(line.text))
        self.page.goto(url)

    def ready(self) -> "Page":
        """Wait until bodies have come and moved."""
        self.wait("window.roboyard && roboyard.bodies.number > 0 && roboyard.updates > 2")
        return self

    def wait(self, expression: str, seconds: float = 20.0) -> None:
        """Wait until an expression of the page's holds."""
        deadline = wall_seconds() + seconds
        while not self.page.evaluate(f"Boolean({expression})"):  # the page itself may not evaluate texts
            assert wall_seconds() < deadline, f"{expression} does not come true; {self.complaints}"
            self.page.wait_for_timeout(30)

    def value(self, expression: str) -> Any:
        """What an expression of the page's gives."""
        return self.page.evaluate(expression)
