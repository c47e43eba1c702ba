"""Scripts: arithmetic as in C++, names and entries, and errors of invalid scripts."""

import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roboyard.behavior import Blackboard, ScriptError
from roboyard.behavior.script import ScriptEnvironment, parse_script

NAMES = {"RED": 1, "BLUE": 2}


def evaluate(text: str, **entries: object) -> object:
    blackboard = Blackboard()
    for name, value in entries.items():
        blackboard.set(name, value)
    return parse_script(text).run(ScriptEnvironment(blackboard, NAMES))


numbers = st.integers(-50, 50).map(str) | st.floats(0, 9, allow_subnormal=False).map(lambda x: f"{x:.3f}")
expressions = st.recursive(
    numbers.map(lambda n: f"({n})"),
    lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
    max_leaves=12,
)


@given(expressions)
def test_arithmetic_equals_pythons(text: str) -> None:
    assert evaluate(text) == pytest.approx(float(eval(text)), abs=1e-9)


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=5), st.data())
def test_comparison_chains_equal_pythons(values: list[int], data: st.DataObject) -> None:
    signs = [data.draw(st.sampled_from(["<", ">", "<=", ">=", "==", "!="])) for _ in values[1:]]
    text = str(values[0]) + "".join(f" {s} ({v})" for s, v in zip(signs, values[1:], strict=True))
    assert bool(evaluate(text)) == bool(eval(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7.0),
        ("-2 * 3 + 1", -5.0),
        ("6 & 3 | 8", 10.0),
        ("~5", -6.0),
        ("!0 && 1", 1.0),
        ("0xFF", 255),
        ("1.5e2", 150.0),
        ("'a' .. 'b'", "ab"),
        ("'n' .. 2.5", "n2.500000"),
        ("x > 3 ? 'more' : 'less'", "more"),
        ("x == 4 ? 1 : x == 5 ? 2 : 3", 2),
        ("RED + BLUE", 3.0),
        ("'RED' == 1", 1.0),
        ("'2.0' == 2", 1.0),
        ("true != false", 1.0),
        ("y := 3; y += 2; y * 2", 10.0),
        ("x = 7; x", 7),
        ("a := b := 2; a + b", 4.0),
        ("65..1 == 65", None),
    ],
)
def test_script_values_are_as_in_behaviortree_cpp(text: str, value: object) -> None:
    if value is None:
        with pytest.raises(ScriptError):
            evaluate(text, x=5)
    else:
        assert evaluate(text, x=5) == value


def test_integer_entries_stay_integers() -> None:
    assert evaluate("n := 1; n := n + 1; n") == 2
    assert type(evaluate("n := 1; n := n + 1; n")) is int
    with pytest.raises(ScriptError, match="can't be converted"):
        evaluate("n := 1; n := n / 2")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "Empty Script"),
        ("1 +", "Expected operand at position 3"),
        ("(1", "expected '\\)'"),
        ("3x", "Invalid token '3x' at position 0"),
        ("'open", "Invalid token"),
        ("a ? 1", "expected ':'"),
        ("65.", "Invalid token"),
        ("5 := 3", "not a blackboard entry"),
        ("nowhere", "Variable not found: nowhere"),
        ("nowhere = 1", "doesn't exist, yet"),
        ("1 / 0", "Division by zero at position 2"),
        ("x /= 0", "Division by zero at position 2"),
        ("x + x / (2 - 1 - 1)", "Division by zero at position 6"),
        ("x > 3 ? x / -0.0 : 1", "Division by zero at position 10"),
        ("y := x - 5; x / y", "Division by zero"),
        ("'a' * 2", "not permitted"),
        ("1 & 1.5", "not an integer"),
        ("(" * 2000 + "1" + ")" * 2000, "nested more than"),
    ],
)
def test_invalid_scripts_are_refused_with_the_cause(text: str, error: str) -> None:
    with pytest.raises(ScriptError, match=error):
        evaluate(text, x=5)


def test_division_by_constant_zero_is_found_when_parsed() -> None:
    with pytest.raises(ScriptError, match="at position 10"):
        parse_script("x > 3 ? x / (1 - 1) : 1")
    assert evaluate("x > 3 ? x / (1 - x) : 1", x=5) == -1.25


sums = st.recursive(
    st.integers(0, 9).map(str),
    lambda inner: st.tuples(inner, st.sampled_from("+-*/&|"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
    max_leaves=12,
)


@given(sums)
@example("((0 & (1 / 2)) / 0)")
def test_constant_folding_equals_evaluation_at_run_time(text: str) -> None:
    """The same with names in the place of the numbers.

    The parser finds a constant zero divisor before anything is evaluated, so another error of the script may come first
    at run time.
    """
    later = re.sub(r"\d", lambda found: f"n{found[0]}", text)
    entries = {f"n{digit}": digit for digit in range(10)}
    try:
        value = evaluate(text)
    except ScriptError as error:
        cause = error.message.splitlines()[-1].partition(" at position")[0]
        with pytest.raises(ScriptError, match=None if cause == "Division by zero" else cause):
            evaluate(later, **entries)
    else:
        assert evaluate(later, **entries) == value


def test_overflowing_product_is_infinite() -> None:
    assert math.isinf(float(str(evaluate("1e308 * 10"))))
