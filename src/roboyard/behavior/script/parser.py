"""Scripts made into functions: a parser after Pratt, as BehaviorTree.CPP 4.10 has it.

Each expression becomes a function of the environment, which is the blackboard and the enumerations' names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from roboyard.behavior.blackboard import EMPTY, Blackboard, fitted
from roboyard.behavior.errors import PortError, ScriptError, words_of
from roboyard.behavior.script import operations
from roboyard.behavior.script.tokens import END, ERROR, INTEGER, NAME, OPERATOR, REAL, STRING, Token, tokenize
from roboyard.behavior.types import ANY, is_number, type_name

MAX_DEPTH: Final = 100
"""Of brackets and signs in one another."""

_ASSIGNMENT: Final = 2
_TERNARY: Final = 4
_COMPARISON: Final = 10
_PREFIX: Final = 20
_POWER: Final = {
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


class Environment(NamedTuple):
    """Where a script finds its names."""

    blackboard: Blackboard
    enums: Mapping[str, int]


Expression = Callable[[Environment], Any]


class _Named:
    """An expression that is a name, so that it can be assigned to."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, env: Environment, /) -> Any:
        if self.name in env.enums:
            return float(env.enums[self.name])
        entry = env.blackboard.entry(self.name)
        if entry is None:
            raise ScriptError(f"Variable not found: {self.name}")
        return entry.value


class _Constant:
    """An expression that is known when it is read."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, _env: Environment, /) -> Any:
        return self.value

    @property
    def is_zero(self) -> bool:
        return is_number(self.value) and float(self.value) == 0.0


class Script(NamedTuple):
    """A script that can be run: its text, and its statements."""

    text: str
    statements: tuple[Expression, ...]

    def run(self, env: Environment) -> Any:
        """Carry out the statements; the value of the last one.

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
def parse(text: str) -> Script:
    """A script from its text.

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
        self._at = 0
        self._depth = 0

    def statements(self) -> list[Expression]:
        found = []
        while self._next.kind != END:
            found.append(self._expression(0))
            while self._is(";"):
                self._at += 1
        return found

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _is(self, *signs: str) -> bool:
        return self._next.kind == OPERATOR and self._next.text in signs

    def _take(self) -> Token:
        token = self._next
        if token.kind != END:
            self._at += 1
        return token

    def _expect(self, sign: str, what: str) -> None:
        if not self._is(sign):
            raise ScriptError(f"Parse error at position {self._next.at}: {what} (got '{self._next.text}')")
        self._at += 1

    def _expression(self, least: int) -> Expression:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ScriptError(f"Parse error at position {self._next.at}: nested more than {MAX_DEPTH} deep")
        left = self._operand()
        while self._next.kind == OPERATOR:
            sign = self._next.text
            power = _POWER.get(sign, -1)
            if power < 0 or power < least:
                break
            at = self._next.at
            if power == _ASSIGNMENT:
                self._at += 1
                left = _assignment(left, sign, self._divisor(sign, at, self._expression(0)))
                break
            if power == _TERNARY:
                left = self._ternary(left)
                break
            if power == _COMPARISON:
                left = self._comparison(left)
                continue
            self._at += 1
            left = _binary(left, sign, self._divisor(sign, at, self._expression(power + 1)))
        self._depth -= 1
        return left

    def _divisor(self, sign: str, at: int, right: Expression) -> Expression:
        """What stands on the right of an operator. Raises ScriptError: it is 0, and divided by."""
        if sign in ("/", "/=") and isinstance(right, _Constant) and right.is_zero:
            raise ScriptError(f"Division by zero at position {at}", valid="another number than 0")
        return right

    def _operand(self) -> Expression:
        token = self._take()
        if token.kind == OPERATOR and token.text in ("-", "~", "!"):
            return _unary(token.text, self._expression(_PREFIX))
        if token.kind == OPERATOR and token.text == "(":
            inner = self._expression(0)
            self._expect(")", "expected ')'")
            return inner
        if token.kind == NAME:
            if token.text in ("true", "false"):
                return _Constant(float(token.text == "true"))
            return _Named(token.text)
        if token.kind == INTEGER:
            value = int(token.text, 16 if token.text[:2] in ("0x", "0X") else 10)
            return _Constant(value if value < 2**63 else 0)  # C++'s from_chars leaves 0 where it does not fit
        if token.kind == REAL:
            return _Constant(float(token.text))
        if token.kind == STRING:
            return _Constant(token.text)
        if token.kind == ERROR:
            raise ScriptError(f"Invalid token '{token.text}' at position {token.at}")
        raise ScriptError(f"Expected operand at position {token.at} (got '{token.text}')")

    def _ternary(self, condition: Expression) -> Expression:
        self._at += 1
        then = self._expression(0)
        self._expect(":", "expected ':' in ternary expression")
        other = self._expression(_TERNARY)
        return lambda env: then(env) if operations.is_true(condition(env)) else other(env)

    def _comparison(self, first: Expression) -> Expression:
        chain: list[tuple[str, Expression]] = []
        while self._next.kind == OPERATOR and _POWER.get(self._next.text) == _COMPARISON:
            sign = self._take().text
            chain.append((sign, self._expression(_COMPARISON + 1)))

        def compare(env: Environment) -> float:
            left = first(env)
            for sign, operand in chain:
                right = operand(env)
                if not operations.holds(sign, left, right, env.enums):
                    return 0.0
                left = right
            return 1.0

        return compare


def _folded(expression: Expression) -> Expression:
    """The value of what has only constants in it; what cannot be reckoned says so when it is carried out."""
    try:
        value = expression(Environment(Blackboard(), {}))
    except ScriptError:
        return expression
    return expression if value is EMPTY else _Constant(value)


def _unary(sign: str, operand: Expression) -> Expression:
    def reckon(env: Environment) -> Any:
        return operations.unary(sign, operand(env))

    return _folded(reckon) if isinstance(operand, _Constant) else reckon


def _binary(left: Expression, sign: str, right: Expression) -> Expression:
    def reckon(env: Environment) -> Any:
        return operations.binary(sign, left(env), right(env))

    return _folded(reckon) if isinstance(left, _Constant) and isinstance(right, _Constant) else reckon


def _assignment(target: Expression, sign: str, value: Expression) -> Expression:
    def refuse(_env: Environment) -> Any:
        raise ScriptError("Assignment left operand not a blackboard entry")

    if not isinstance(target, _Named):
        return refuse
    key = target.name

    def assign(env: Environment) -> Any:
        board = env.blackboard
        entry = board.entry(key)
        if entry is None:
            if sign != ":=":
                raise ScriptError(
                    f"The blackboard entry [{key}] doesn't exist, yet.\n"
                    "If you want to create a new one, use the operator [:=] instead of [=]"
                )
            entry = board.create(key, ANY)
        given = value(env)
        if given is EMPTY:
            raise ScriptError(f"The right operand of the operator [{sign}] is not initialized")
        if sign in (":=", "="):
            entry.value = _assigned(key, entry.value, entry.type, given, env.enums)
        else:
            if entry.value is EMPTY:
                raise ScriptError(f"The left operand of the operator [{sign}] is not initialized")
            entry.value = fitted(operations.changed(sign, entry.value, given), entry.value)
        entry.sequence += 1
        entry.stamp_ns = board.shared.now_ns
        return entry.value

    return assign


def _assigned(key: str, previous: Any, kind: Any, given: Any, enums: Mapping[str, int]) -> Any:
    """What an entry holds after a plain assignment."""
    if previous is EMPTY and kind is ANY:
        return given
    if given.__class__ is str and previous.__class__ is not str:
        if kind.parse is not None:
            try:
                return kind.parse(given)
            except PortError as error:
                raise ScriptError(words_of(error), valid=error.valid) from None
        if is_number(previous):
            return operations.as_real(given, enums)
        if previous is not EMPTY:
            held = type_name(previous)
            raise ScriptError(
                f"Error assigning a value to entry [{key}] with type [{held}]. \n"
                f"The right operand is a string, can't convert to {held}"
            )
    try:
        return fitted(given, previous)
    except PortError as error:
        raise ScriptError(
            f"Error assigning a value to entry [{key}] with type [{type_name(previous)}]. \n"
            f"The right operand has type [{type_name(given)}] and can't be converted to [{type_name(previous)}]",
            valid=words_of(error),
        ) from None
