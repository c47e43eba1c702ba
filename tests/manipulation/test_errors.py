"""Errors of motion planning: each has a cause of its own, MoveIt's code, and a row of the reference page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from roboyard.manipulation import errors
from roboyard.manipulation.errors import PlanningError
from roboyard.manipulation.nodes.moveit_errors import error_cause, moveit_error_code
from roboyard.messages import msg

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "motion-planners.md"


def find_error_classes(base: type[PlanningError] = PlanningError) -> list[type[PlanningError]]:
    """The errors below a class that users can see."""
    found = []
    for error_class in base.__subclasses__():
        found += find_error_classes(error_class)
        if error_class.__module__ == errors.__name__ and not error_class.__name__.startswith("_"):
            found.append(error_class)
    return found


def test_every_error_has_a_cause_of_its_own() -> None:
    causes = [error_class.cause for error_class in find_error_classes()]
    assert len(causes) >= 10
    assert len(set(causes)) == len(causes)
    assert PlanningError.cause not in causes


@pytest.mark.parametrize("error_class", find_error_classes(), ids=lambda error_class: error_class.__name__)
def test_every_error_has_a_code_of_moveit_and_a_row_of_the_page(error_class: type[PlanningError]) -> None:
    error = error_class("why not", valid="what else")
    assert str(error) == "why not (what else)"
    assert error_cause(error) == error_class.cause
    codes = msg.moveit_msgs.MoveItErrorCodes
    code = moveit_error_code(error)
    assert code.val not in (codes.SUCCESS, codes.FAILURE)
    row = re.search(rf"\| `{error_class.cause}` \| `{error_class.__name__}` \| `(\w+)` \|", PAGE.read_text("utf-8"))
    assert row is not None
    assert getattr(codes, row[1]) == code.val
