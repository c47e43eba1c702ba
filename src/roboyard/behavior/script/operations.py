"""What the operators of scripts do with values.

Numbers are reckoned with as doubles; whole ones are those of a blackboard entry that began as such.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import add, and_, eq, ge, gt, le, lt, mul, ne, or_, sub, xor
from typing import Any, Final

from roboyard.behavior.blackboard import EMPTY
from roboyard.behavior.errors import PortError, ScriptError
from roboyard.behavior.types import is_number, parse_real, to_integer, to_real, to_text, to_truth, type_name

_SAME: Final = 1.1920928955078125e-07
"""Numbers no farther apart are equal: the machine epsilon of C++'s float."""
_ARITHMETIC: Final = {"+": add, "-": sub, "*": mul}
_BITS: Final = {"&": and_, "|": or_, "^": xor}
_ORDER: Final = {"==": eq, "!=": ne, "<": lt, ">": gt, "<=": le, ">=": ge}


def _not_set(side: str, sign: str) -> ScriptError:
    return ScriptError(f"The {side} operand of the operator [{sign}] is not initialized")


def _check(sign: str, left: Any, right: Any) -> None:
    if left is EMPTY:
        raise _not_set("left", sign)
    if right is EMPTY:
        raise _not_set("right", sign)


def divide(left: float, right: float) -> float:
    """``left / right``.

    Raises:
        ScriptError: it would be divided by zero; BehaviorTree.CPP goes on with an infinite number.
    """
    if right == 0.0:
        raise ScriptError("Division by zero", valid="ask whether it is 0 first, as in `b != 0 ? a / b : 0`")
    return left / right


def binary(sign: str, left: Any, right: Any) -> Any:
    """The value of an arithmetic, bitwise or logic operator, or of ``..``."""
    _check(sign, left, right)
    if is_number(left) and is_number(right):
        return _numbers(sign, left, right)
    texts = left.__class__ is str, right.__class__ is str
    if (all(texts) and sign in ("+", "..")) or (
        sign == ".." and ((texts[0] and is_number(right)) or (texts[1] and is_number(left)))
    ):
        return to_text(left) + to_text(right)
    raise ScriptError("Operation not permitted")


def _numbers(sign: str, left: Any, right: Any) -> Any:
    if sign in _ARITHMETIC:
        return _ARITHMETIC[sign](to_real(left), to_real(right))
    if sign == "/":
        return divide(to_real(left), to_real(right))
    if sign in _BITS:
        try:
            return float(_BITS[sign](to_integer(left), to_integer(right)))
        except PortError:
            raise ScriptError("Binary operators are not allowed if one of the operands is not an integer") from None
    if sign in ("&&", "||"):
        try:
            truths = to_truth(left), to_truth(right)
        except PortError:
            raise ScriptError(
                "Logic operators are not allowed if one of the operands is not castable to bool"
            ) from None
        return float(all(truths) if sign == "&&" else any(truths))
    return EMPTY  # as BehaviorTree.CPP has it for `..` between two numbers


def unary(sign: str, value: Any) -> float:
    """The value of ``-``, ``~`` or ``!``."""
    if is_number(value):
        number = to_real(value)
        if sign == "-":
            return -number
        if sign == "!":
            return float(not number)
        if abs(number) > 2.0**63:
            raise ScriptError("Number out of range for bitwise operation")
        return float(~int(number))
    if value.__class__ is str:
        raise ScriptError("Invalid operator for std::string")
    raise ScriptError("ExprUnaryArithmetic: undefined")


def holds(sign: str, left: Any, right: Any, enums: Mapping[str, int]) -> bool:
    """Whether a comparison is true; text is compared with numbers as the number or name that it is."""
    _check(sign, left, right)
    if left.__class__ is str and right.__class__ is str:
        return bool(_ORDER[sign](left.encode(), right.encode()))
    for value, other in ((left, right), (right, left)):
        if not (is_number(value) or (value.__class__ is str and is_number(other))):
            raise ScriptError(
                "Can't mix different types in Comparison. "
                f"Left operand [{type_name(left)}] right operand [{type_name(right)}]"
            )
    a, b = as_real(left, enums), as_real(right, enums)
    if sign == "==":
        return abs(a - b) <= _SAME
    if sign == "!=":
        return not abs(a - b) <= _SAME
    return bool(_ORDER[sign](a, b))


def as_real(value: Any, enums: Mapping[str, int]) -> float:
    """A number, or text that is a truth value, a name of an enumeration, or a number."""
    if value.__class__ is not str:
        return to_real(value)
    if value in ("true", "false"):
        return float(value == "true")
    if value in enums:
        return float(enums[value])
    number = parse_real(value)
    if number is None:
        raise ScriptError("Any failed string to number conversion", valid=f"{value!r} is no number")
    return number


def is_true(value: Any) -> bool:
    """Whether a ternary's condition holds."""
    if value is EMPTY:
        raise ScriptError("Any::cast failed because it is empty")
    return as_real(value, {}) != 0.0 if value.__class__ is str else _real(value) != 0.0


def _real(value: Any) -> float:
    if not is_number(value):
        raise ScriptError(f"[Any::convert]: no known safe conversion between [{type_name(value)}] and [double]")
    return to_real(value)


def changed(sign: str, previous: Any, value: Any) -> Any:
    """What ``+=``, ``-=``, ``*=`` and ``/=`` make of an entry's value."""
    if is_number(value):
        if not is_number(previous):
            raise ScriptError("This Assignment operator can't be used with a non-numeric type")
        reckon: Callable[[float, float], float] = divide if sign == "/=" else _ARITHMETIC[sign[0]]
        return reckon(to_real(previous), to_real(value))
    if value.__class__ is str:
        if sign != "+=":
            raise ScriptError("Operator not supported for strings")
        return to_text(previous) + value
    return previous
