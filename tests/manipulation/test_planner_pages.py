"""The pages of motion planners and time parameterizations hold what the registries declare."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.project.test_node_pages import hooks

from roboyard.manipulation import MOTION_PLANNERS, TIME_PARAMETERIZATIONS

ROOT = Path(__file__).resolve().parents[2]
__all__ = ["hooks"]


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("motion-planners", MOTION_PLANNERS.names()),
        ("time-parameterization", TIME_PARAMETERIZATIONS.names()),
    ],
)
def test_page_holds_what_is_registered(page: str, names: tuple[str, ...], hooks) -> None:  # type: ignore[no-untyped-def]
    text = (ROOT / "docs" / "reference" / f"{page}.md").read_text("utf-8")
    assert text == hooks.with_plugin_tables(text), f"write {page}.md anew: python tools/docs_hooks.py"
    for name in names:
        assert f"| [`{name}`](#" in text
        assert text.count(f"\n## {name}\n") == 1
