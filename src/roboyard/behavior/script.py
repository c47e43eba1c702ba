"""Scripts of behavior trees: tokens, operators, and a Pratt parser that compiles expressions to functions, as in
BehaviorTree.CPP 4.10.

Numbers are calculated as doubles; an entry that was created as an integer stays one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import add, and_, eq, ge, gt, le, lt, mul, ne, or_, sub, xor
from typing import Any, Final, NamedTuple

from roboyard.behavior.basic_types import (
    ANY,
    is_number,
    parse_float,
    to_bool,
    to_float,
    to_integer,
    to_string,
    type_name,
)
from roboyard.behavior.blackboard import EMPTY, Blackboard, convert_like
from roboyard.behavior.errors import PortError, ScriptError, bt_cpp_message

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\n\r]+)
  | (?P<string>'[^']*')
  | (?P<hex>0[xX][0-9A-Fa-f]*)
  | (?P<real>\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+))
  | (?P<integer>\d+)
  | (?P<name>[A-Za-z_@][A-Za-z0-9_]*)
  | (?P<operator>\.\.|&&|\|\||==|!=|<=|>=|:=|\+=|-=|\*=|/=|[-+*/&|^~!<>=?:();])
    """,
    re.VERBOSE,
)
_NUMBER_SUFFIX = re.compile(r"(?:[A-Za-z0-9_@]|\.(?!\.))[A-Za-z0-9_.]*")
"""What must not follow a number."""

INTEGER, REAL, STRING, NAME, OPERATOR, ERROR, END = "integer", "real", "string", "name", "operator", "error", "end"


class Token(NamedTuple):
    """A token of a script: its kind, its text, and its position."""

    kind: str
    text: str
    position: int


def tokenize(script: str) -> list[Token]:
    """Split a script into tokens; invalid text becomes a token of kind `ERROR`, the last one is of kind `END`."""
    tokens: list[Token] = []
    position = 0
    while position < len(script):
        found = _TOKEN.match(script, position)
        if found is None:
            end = len(script) if script[position] == "'" else position + 1
            tokens.append(Token(ERROR, script[position:end], position))
            position = end
            continue
        kind, text, end = found.lastgroup or ERROR, found.group(), found.end()
        if kind in ("hex", INTEGER, REAL):
            suffix = _NUMBER_SUFFIX.match(script, end)
            is_empty_hex = kind == "hex" and len(text) == 2
            if suffix is not None or is_empty_hex:
                end = suffix.end() if suffix is not None else end
                kind, text = ERROR, script[position:end]
            elif kind == "hex":
                kind = INTEGER
        if kind == STRING:
            text = text[1:-1]
        if kind != "space":
            tokens.append(Token(kind, text, position))
        position = end
    tokens.append(Token(END, "", position))
    return tokens


_EQUALITY_TOLERANCE: Final = 1.1920928955078125e-07
"""Numbers no farther apart are equal: the machine epsilon of C++'s float."""
_ARITHMETIC: Final = {"+": add, "-": sub, "*": mul}
_BITS: Final = {"&": and_, "|": or_, "^": xor}
_ORDER: Final = {"==": eq, "!=": ne, "<": lt, ">": gt, "<=": le, ">=": ge}


def _uninitialized_error(side: str, operator: str) -> ScriptError:
    return ScriptError(f"The {side} operand of the operator [{operator}] is not initialized")


def _check_initialized(operator: str, left: Any, right: Any) -> None:
    if left is EMPTY:
        raise _uninitialized_error("left", operator)
    if right is EMPTY:
        raise _uninitialized_error("right", operator)


def divide(left: float, right: float) -> float:
    """Return ``left / right``.

    Raises:
        ScriptError: The divisor is zero; BehaviorTree.CPP continues with an infinite number.
    """
    if right == 0.0:
        raise ScriptError("Division by zero", valid="ask whether it is 0 first, as in `b != 0 ? a / b : 0`")
    return left / right


def apply_binary(operator: str, left: Any, right: Any) -> Any:
    """Return the value of an arithmetic, bitwise or logic operator, or of ``..``."""
    _check_initialized(operator, left, right)
    if is_number(left) and is_number(right):
        return _apply_to_numbers(operator, left, right)
    texts = left.__class__ is str, right.__class__ is str
    if (all(texts) and operator in ("+", "..")) or (
        operator == ".." and ((texts[0] and is_number(right)) or (texts[1] and is_number(left)))
    ):
        return to_string(left) + to_string(right)
    raise ScriptError("Operation not permitted")


def _apply_to_numbers(operator: str, left: Any, right: Any) -> Any:
    if operator in _ARITHMETIC:
        return _ARITHMETIC[operator](to_float(left), to_float(right))
    if operator == "/":
        return divide(to_float(left), to_float(right))
    if operator in _BITS:
        try:
            return float(_BITS[operator](to_integer(left), to_integer(right)))
        except PortError:
            raise ScriptError("Binary operators are not allowed if one of the operands is not an integer") from None
    if operator in ("&&", "||"):
        try:
            operands = to_bool(left), to_bool(right)
        except PortError:
            raise ScriptError(
                "Logic operators are not allowed if one of the operands is not castable to bool"
            ) from None
        return float(all(operands) if operator == "&&" else any(operands))
    return EMPTY  # as BehaviorTree.CPP has it for `..` between two numbers


def apply_unary(operator: str, value: Any) -> float:
    """Return the value of ``-``, ``~`` or ``!``."""
    if is_number(value):
        number = to_float(value)
        if operator == "-":
            return -number
        if operator == "!":
            return float(not number)
        if abs(number) > 2.0**63:
            raise ScriptError("Number out of range for bitwise operation")
        return float(~int(number))
    if value.__class__ is str:
        raise ScriptError("Invalid operator for std::string")
    raise ScriptError("ExprUnaryArithmetic: undefined")


def compare_values(operator: str, left: Any, right: Any, enums: Mapping[str, int]) -> bool:
    """Return whether a comparison is true; text is compared with a number as the number or enumeration name that it
    contains."""
    _check_initialized(operator, left, right)
    if left.__class__ is str and right.__class__ is str:
        return bool(_ORDER[operator](left.encode(), right.encode()))
    for value, other in ((left, right), (right, left)):
        if not (is_number(value) or (value.__class__ is str and is_number(other))):
            raise ScriptError(
                "Can't mix different types in Comparison. "
                f"Left operand [{type_name(left)}] right operand [{type_name(right)}]"
            )
    a, b = operand_to_float(left, enums), operand_to_float(right, enums)
    if operator == "==":
        return abs(a - b) <= _EQUALITY_TOLERANCE
    if operator == "!=":
        return not abs(a - b) <= _EQUALITY_TOLERANCE
    return bool(_ORDER[operator](a, b))


def operand_to_float(value: Any, enums: Mapping[str, int]) -> float:
    """Return a number from a number, or from text: `true`, `false`, a name of an enumeration, or a number."""
    if value.__class__ is not str:
        return to_float(value)
    if value in ("true", "false"):
        return float(value == "true")
    if value in enums:
        return float(enums[value])
    number = parse_float(value)
    if number is None:
        raise ScriptError("Any failed string to number conversion", valid=f"{value!r} is no number")
    return number


def condition_to_bool(value: Any) -> bool:
    """Return whether the condition of a ternary expression is true."""
    if value is EMPTY:
        raise ScriptError("Any::cast failed because it is empty")
    return operand_to_float(value, {}) != 0.0 if value.__class__ is str else _number_to_float(value) != 0.0


def _number_to_float(value: Any) -> float:
    if not is_number(value):
        raise ScriptError(f"[Any::convert]: no known safe conversion between [{type_name(value)}] and [double]")
    return to_float(value)


def assign_operator(operator: str, previous: Any, value: Any) -> Any:
    """Apply ``+=``, ``-=``, ``*=`` or ``/=`` to the value of an entry."""
    if is_number(value):
        if not is_number(previous):
            raise ScriptError("This Assignment operator can't be used with a non-numeric type")
        operation: Callable[[float, float], float] = divide if operator == "/=" else _ARITHMETIC[operator[0]]
        return operation(to_float(previous), to_float(value))
    if value.__class__ is str:
        if operator != "+=":
            raise ScriptError("Operator not supported for strings")
        return to_string(previous) + value
    return previous


MAX_DEPTH: Final = 100
"""Of brackets and signs in one another."""

_ASSIGNMENT: Final = 2
_TERNARY: Final = 4
_COMPARISON: Final = 10
_UNARY: Final = 20
_BINDING_POWER: Final = {
    **dict.fromkeys((":=", "=", "+=", "-=", "*=", "/="), _ASSIGNMENT),
    "?": _TERNARY,
    "||": 6,
    "&&": 8,
    **dict.fromkeys(("==", "!=", "<", ">", "<=", ">="), _COMPARISON),
    **dict.fromkeys(("|", "^"), 12),
    "&": 14,
    **dict.fromkeys(("+", "-", ".."), 16),
    **dict.fromkeys(("*", "/"), 18),
}
"""How tightly each operator binds what is on its left."""


class ScriptEnvironment(NamedTuple):
    """Names that a script can use: entries of a blackboard, and enumerations."""

    blackboard: Blackboard
    enums: Mapping[str, int]


Expression = Callable[[ScriptEnvironment], Any]


class _NameExpression:
    """An expression that is a name, to which values can be assigned."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, env: ScriptEnvironment, /) -> Any:
        if self.name in env.enums:
            return float(env.enums[self.name])
        entry = env.blackboard.entry(self.name)
        if entry is None:
            raise ScriptError(f"Variable not found: {self.name}")
        return entry.value


class _ConstantExpression:
    """An expression whose value is known when it is parsed."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, _env: ScriptEnvironment, /) -> Any:
        return self.value

    @property
    def is_zero(self) -> bool:
        return is_number(self.value) and float(self.value) == 0.0


class Script(NamedTuple):
    """A parsed script: its text and its statements."""

    text: str
    statements: tuple[Expression, ...]

    def run(self, env: ScriptEnvironment) -> Any:
        """Evaluate the statements; return the value of the last one.

        Raises:
            ScriptError: one of them cannot be carried out.
        """
        value: Any = EMPTY
        try:
            for statement in self.statements:
                value = statement(env)
        except ScriptError as error:
            raise ScriptError(f"Error in script [{self.text}]\n{error.message}", valid=error.valid) from None
        return value


@lru_cache(maxsize=4096)
def parse_script(text: str) -> Script:
    """Parse a script.

    Raises:
        ScriptError: it is none; says where.
    """
    statements = _Parser(tokenize(text)).statements()
    if not statements:
        raise ScriptError("Empty Script")
    return Script(text, tuple(statements))


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._index = 0
        self._depth = 0

    def statements(self) -> list[Expression]:
        found = []
        while self._next.kind != END:
            found.append(self._expression(0))
            while self._is(";"):
                self._index += 1
        return found

    @property
    def _next(self) -> Token:
        return self._tokens[self._index]

    def _is(self, *signs: str) -> bool:
        return self._next.kind == OPERATOR and self._next.text in signs

    def _pop(self) -> Token:
        token = self._next
        if token.kind != END:
            self._index += 1
        return token

    def _expect(self, operator: str, message: str) -> None:
        if not self._is(operator):
            raise ScriptError(f"Parse error at position {self._next.position}: {message} (got '{self._next.text}')")
        self._index += 1

    def _expression(self, min_binding_power: int) -> Expression:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ScriptError(f"Parse error at position {self._next.position}: nested more than {MAX_DEPTH} deep")
        left = self._operand()
        while self._next.kind == OPERATOR:
            operator = self._next.text
            power = _BINDING_POWER.get(operator, -1)
            if power < 0 or power < min_binding_power:
                break
            position = self._next.position
            if power == _ASSIGNMENT:
                self._index += 1
                left = _assignment_expression(
                    left, operator, self._check_divisor(operator, position, self._expression(0))
                )
                break
            if power == _TERNARY:
                left = self._ternary(left)
                break
            if power == _COMPARISON:
                left = self._comparison(left)
                continue
            self._index += 1
            left = _binary_expression(
                left, operator, self._check_divisor(operator, position, self._expression(power + 1))
            )
        self._depth -= 1
        return left

    def _check_divisor(self, operator: str, position: int, right: Expression) -> Expression:
        """Return the right operand of an operator. Raises ScriptError for a division by the constant 0."""
        if operator in ("/", "/=") and isinstance(right, _ConstantExpression) and right.is_zero:
            raise ScriptError(f"Division by zero at position {position}", valid="another number than 0")
        return right

    def _operand(self) -> Expression:
        token = self._pop()
        if token.kind == OPERATOR and token.text in ("-", "~", "!"):
            return _unary_expression(token.text, self._expression(_UNARY))
        if token.kind == OPERATOR and token.text == "(":
            inner = self._expression(0)
            self._expect(")", "expected ')'")
            return inner
        if token.kind == NAME:
            if token.text in ("true", "false"):
                return _ConstantExpression(float(token.text == "true"))
            return _NameExpression(token.text)
        if token.kind == INTEGER:
            value = int(token.text, 16 if token.text[:2] in ("0x", "0X") else 10)
            return _ConstantExpression(value if value < 2**63 else 0)  # C++'s from_chars leaves 0 where it does not fit
        if token.kind == REAL:
            return _ConstantExpression(float(token.text))
        if token.kind == STRING:
            return _ConstantExpression(token.text)
        if token.kind == ERROR:
            raise ScriptError(f"Invalid token '{token.text}' at position {token.position}")
        raise ScriptError(f"Expected operand at position {token.position} (got '{token.text}')")

    def _ternary(self, condition: Expression) -> Expression:
        self._index += 1
        if_true = self._expression(0)
        self._expect(":", "expected ':' in ternary expression")
        if_false = self._expression(_TERNARY)
        return lambda env: if_true(env) if condition_to_bool(condition(env)) else if_false(env)

    def _comparison(self, first: Expression) -> Expression:
        chain: list[tuple[str, Expression]] = []
        while self._next.kind == OPERATOR and _BINDING_POWER.get(self._next.text) == _COMPARISON:
            sign = self._pop().text
            chain.append((sign, self._expression(_COMPARISON + 1)))

        def compare(env: ScriptEnvironment) -> float:
            left = first(env)
            for sign, operand in chain:
                right = operand(env)
                if not compare_values(sign, left, right, env.enums):
                    return 0.0
                left = right
            return 1.0

        return compare


def _fold_constants(expression: Expression) -> Expression:
    """Replace an expression of constants by its value; one that cannot be evaluated raises its error at run time."""
    try:
        value = expression(ScriptEnvironment(Blackboard(), {}))
    except ScriptError:
        return expression
    return expression if value is EMPTY else _ConstantExpression(value)


def _unary_expression(operator: str, operand: Expression) -> Expression:
    def evaluate(env: ScriptEnvironment) -> Any:
        return apply_unary(operator, operand(env))

    return _fold_constants(evaluate) if isinstance(operand, _ConstantExpression) else evaluate


def _binary_expression(left: Expression, operator: str, right: Expression) -> Expression:
    def evaluate(env: ScriptEnvironment) -> Any:
        return apply_binary(operator, left(env), right(env))

    return (
        _fold_constants(evaluate)
        if isinstance(left, _ConstantExpression) and isinstance(right, _ConstantExpression)
        else evaluate
    )


def _assignment_expression(target: Expression, operator: str, value: Expression) -> Expression:
    def reject(_env: ScriptEnvironment) -> Any:
        raise ScriptError("Assignment left operand not a blackboard entry")

    if not isinstance(target, _NameExpression):
        return reject
    key = target.name

    def assign(env: ScriptEnvironment) -> Any:
        blackboard = env.blackboard
        entry = blackboard.entry(key)
        if entry is None:
            if operator != ":=":
                raise ScriptError(
                    f"The blackboard entry [{key}] doesn't exist, yet.\n"
                    "If you want to create a new one, use the operator [:=] instead of [=]"
                )
            entry = blackboard.create(key, ANY)
        assigned_value = value(env)
        if assigned_value is EMPTY:
            raise ScriptError(f"The right operand of the operator [{operator}] is not initialized")
        if operator in (":=", "="):
            entry.value = _convert_assigned(key, entry.value, entry.type, assigned_value, env.enums)
        else:
            if entry.value is EMPTY:
                raise ScriptError(f"The left operand of the operator [{operator}] is not initialized")
            entry.value = convert_like(assign_operator(operator, entry.value, assigned_value), entry.value)
        entry.sequence += 1
        entry.stamp_ns = blackboard.shared.now_ns
        return entry.value

    return assign


def _convert_assigned(key: str, previous: Any, port_type: Any, value: Any, enums: Mapping[str, int]) -> Any:
    """Return the value of an entry after an assignment."""
    if previous is EMPTY and port_type is ANY:
        return value
    if value.__class__ is str and previous.__class__ is not str:
        if port_type.parse is not None:
            try:
                return port_type.parse(value)
            except PortError as error:
                raise ScriptError(bt_cpp_message(error), valid=error.valid) from None
        if is_number(previous):
            return operand_to_float(value, enums)
        if previous is not EMPTY:
            previous_type = type_name(previous)
            raise ScriptError(
                f"Error assigning a value to entry [{key}] with type [{previous_type}]. \n"
                f"The right operand is a string, can't convert to {previous_type}"
            )
    try:
        return convert_like(value, previous)
    except PortError as error:
        raise ScriptError(
            f"Error assigning a value to entry [{key}] with type [{type_name(previous)}]. \n"
            f"The right operand has type [{type_name(value)}] and can't be converted to [{type_name(previous)}]",
            valid=bt_cpp_message(error),
        ) from None
