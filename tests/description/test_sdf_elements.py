"""No element of SDF is passed over in silence, and the page lists what becomes of each."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.description.sdf_elements import CONTEXTS, become, table

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "sdf-elements.md"


@pytest.mark.parametrize("context", CONTEXTS)
def test_each_sdf_element_is_read_or_a_finding(context: str) -> None:
    assert [path for path in CONTEXTS[context][1] if become(context, path) == "silent"] == []


def test_sdf_element_table_is_on_the_page() -> None:
    assert table() in PAGE.read_text("utf-8")
