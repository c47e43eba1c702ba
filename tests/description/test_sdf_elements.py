"""The reader reads each SDF element or warns about it, and the documentation lists both groups."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.description.sdf_elements import CONTEXTS, classify_element, format_table

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "sdf-elements.md"


@pytest.mark.parametrize("context", CONTEXTS)
def test_each_sdf_element_is_read_or_causes_a_warning(context: str) -> None:
    assert [path for path in CONTEXTS[context][1] if classify_element(context, path) == "ignored"] == []


def test_sdf_element_table_is_on_the_page() -> None:
    assert format_table() in PAGE.read_text("utf-8")
