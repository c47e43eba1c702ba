"""Expressions of criteria: evaluated as in Python where they are allowed, refused otherwise."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.errors import ConfigError
from roboyard.scenarios.criteria import Criterion

METRICS = {"path_length": 26.5, "contacts": 0, "odom_rmse": 0.21, "rover2.contacts": 3, "first_contact": None}
numbers = st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 6))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("contacts == 0", True),
        ("path_length > 25 and contacts == 0", True),
        ("path_length > 25 and contacts != 0", False),
        ("not contacts", True),
        ("0 < odom_rmse < 0.3", True),
        ("rover2.contacts == 0", False),
        ("odom_rmse < 0.01 * path_length or false", True),
        ("max(contacts, rover2.contacts) == 3", True),
        ("-path_length < abs(-1) / 2", True),
        ("contacts == 0 and\n path_length > 25", None),
    ],
)
def test_criterion_evaluates_to_the_expected_result(text: str, expected: bool | None) -> None:
    if expected is None:  # a line break is no part of an expression outside brackets
        with pytest.raises(ConfigError):
            Criterion(text)
        return
    result = Criterion(text).evaluate(METRICS, "x")
    assert result.passed is expected
    assert result.name == "x"
    assert not result.reason


@given(a=numbers, b=numbers, c=numbers)
def test_expressions_agree_with_python(a: float, b: float, c: float) -> None:
    text = "a + b * c - b / 7 > c and a != b or min(a, b, c) >= max(a, -c)"
    expected = (a + b * c - b / 7 > c and a != b) or min(a, b, c) >= max(a, -c)
    assert Criterion(text).evaluate({"a": a, "b": b, "c": c}).passed is expected


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')", "open('x')", "metrics['a']", "(lambda: 1)()", "[x for x in ()]",
        "contacts.__class__.__base__ == 1", "contacts if contacts else 1", "contacts ** 9", "1 << 99999",
        "'text' == 1", "", "a b", "a =",
        "f'{contacts}' == 1", "x := 3", "abs()", "abs(x=1)", "contacts is None", "contacts in (1, 2)", "a;b", "1j == 1",
        "await x", "*a", "(" * 500 + ")" * 500, "-" * 900 + "1", "a" * 2000,
    ],
)  # fmt: skip
def test_other_python_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        Criterion(text, "file.yaml:3")


def test_criteria_fail_for_missing_values() -> None:
    result = Criterion("first_contact > 3 or contacts == 0").evaluate(METRICS)
    assert result.passed is False
    assert "first_contact" in result.reason
    assert Criterion("path_length / contacts > 1").evaluate(METRICS).reason


def test_unknown_metrics_are_refused_with_the_known_ones() -> None:
    criterion = Criterion("odom_rsme < 1", "a.yaml:7")
    with pytest.raises(ConfigError, match=r"a.yaml:7: no metric 'odom_rsme'.*did you mean 'odom_rmse'.*path_length"):
        criterion.validate_names(METRICS)
    assert Criterion("pi > 3 and True and rover2.contacts == 3").metric_names == ("rover2.contacts",)
    assert Criterion("pi > 3").evaluate({}).passed is (math.pi > 3)
