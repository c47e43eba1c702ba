"""Causes of errors of arm motions and MoveIt's error codes: complete, and the same everywhere."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from roboyard import manipulation
from roboyard.bus.transforms import TransformError
from roboyard.errors import InputError, UnknownNameError
from roboyard.manipulation.errors import PlanningError
from roboyard.manipulation.nodes.moveit_errors import (
    ERROR_CODE_NAMES,
    ArmMotionError,
    error_cause,
    error_code_table,
    moveit_error_code,
)
from roboyard.messages import msg

CODES = msg.moveit_msgs.MoveItErrorCodes


def planning_errors(cls: type[PlanningError] = PlanningError) -> list[type[PlanningError]]:
    """The class and all its descendants."""
    return [cls, *(one for child in cls.__subclasses__() for one in planning_errors(child))]


def stated_causes() -> set[str]:
    """Causes that the source of the room gives to ``ArmMotionError`` as literals."""
    causes = set()
    for path in (Path(manipulation.__file__).parent).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ArmMotionError":
                second = node.args[1]
                for literal in ast.walk(second):
                    if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
                        causes.add(literal.value)
    return causes


def test_every_cause_has_an_error_code_of_moveit() -> None:
    causes = {one.cause for one in planning_errors()} | stated_causes()
    assert len(causes) > 15
    assert causes <= set(ERROR_CODE_NAMES)
    assert all(isinstance(getattr(CODES, name), int) for name in ERROR_CODE_NAMES.values())
    assert "SUCCESS" not in ERROR_CODE_NAMES.values()


def test_every_error_code_in_the_table_has_a_cause_in_the_source() -> None:
    implied = {"no_transform", "unknown_planner", "preempted", "scene_unknown"}
    assert set(ERROR_CODE_NAMES) <= {one.cause for one in planning_errors()} | stated_causes() | implied


def test_table_describes_every_cause_once() -> None:
    header, *rows = error_code_table()
    assert [row[0] for row in rows] == [f"`{cause}`" for cause in ERROR_CODE_NAMES]
    assert all(len(row) == len(header) and row[2].endswith(".") for row in rows)


def test_unknown_cause_is_refused() -> None:
    with pytest.raises(InputError, match="no cause 'unlucky'"):
        ArmMotionError("it went wrong", "unlucky")


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ArmMotionError("a", "bad_plan"), "bad_plan"),
        (TransformError("no transform"), "no_transform"),
        (UnknownNameError("no planner 'x'"), "unknown_planner"),
        (InputError("not a number"), "bad_goal"),
        (PlanningError("of a planner that somebody wrote"), "failed"),
    ],
)
def test_error_code_follows_from_the_cause(error: InputError, cause: str) -> None:
    assert error_cause(error) == cause
    code = moveit_error_code(error)
    assert code.val == getattr(CODES, ERROR_CODE_NAMES[cause])
    assert code.message == str(error)
    assert moveit_error_code(None).val == CODES.SUCCESS
