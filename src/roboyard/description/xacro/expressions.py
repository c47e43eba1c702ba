"""Evaluates ``${…}``: Python-like expressions, walked over their syntax tree with a budget.

Only the operations, functions and methods listed here are allowed; all of them are bounded.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

MAX_LENGTH = 4_000
MAX_DEPTH = 60
Lookup = Callable[[str], Any]
"""Function that returns the value of a property; raises KeyError for an unknown name."""


@dataclass(slots=True)
class ExpressionBudget:
    """Remaining evaluation steps of one document; each visited node of an expression costs one."""

    steps: int = 500_000

    def spend(self, steps: int = 1) -> None:
        """Subtract steps. Raises ExpressionError when none are left."""
        self.steps -= steps
        if self.steps < 0:
            raise ExpressionError("the expressions of this document take too many steps")


def evaluate(text: str, lookup: Lookup, budget: ExpressionBudget) -> Any:
    """Evaluate an expression: number, text, Boolean, list, mapping or None.

    Args:
        text: Text between the braces.
        lookup: Looks up properties; they hide functions of the same name.
        budget: Budget shared by a document.

    Raises:
        ExpressionError: The expression is malformed, has an unknown name, a forbidden construct, invalid arithmetic, or
            takes too long.
    """
    text = text.strip()
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"an expression has more than {MAX_LENGTH} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError("invalid expression") from None
    budget.spend(len(text) // 10)
    try:
        value = _ExpressionEvaluator(lookup, budget).visit(tree.body, 0)
    except ExpressionError:
        raise
    except KeyError as error:
        raise ExpressionError(f"undefined name {error}") from None
    except ZeroDivisionError:
        raise ExpressionError("division by zero") from None
    except (ArithmeticError, TypeError, ValueError, LookupError, AttributeError) as error:
        raise ExpressionError(f"{error}"[:200]) from None
    if callable(value):
        raise ExpressionError("a function is not a value")
    return value


class _ExpressionEvaluator:
    """Visitor of the nodes of one expression."""

    def __init__(self, lookup: Lookup, budget: ExpressionBudget) -> None:
        self._lookup = lookup
        self._budget = budget
        self._locals: dict[str, Any] = {}

    def visit(self, node: ast.expr, depth: int) -> Any:
        self._budget.spend()
        if depth > MAX_DEPTH:
            raise ExpressionError("the expression is nested too deeply")
        deeper = depth + 1
        match node:
            case ast.Constant(value=value) if value is None or isinstance(value, bool | int | float | str):
                return require_bounded(value)
            case ast.Name(id=name):
                return self._lookup_name(name)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
                return self._charge_size(BINARY[type(op)](self.visit(left, deeper), self.visit(right, deeper)))
            case ast.UnaryOp(op=op, operand=operand) if type(op) in UNARY:
                return UNARY[type(op)](self.visit(operand, deeper))
            case ast.BoolOp(op=op, values=values):
                return self._evaluate_logic(isinstance(op, ast.And), values, deeper)
            case ast.Compare():
                return self._evaluate_comparison(node, deeper)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.visit(body if self.visit(test, deeper) else orelse, deeper)
            case ast.Attribute(value=value, attr=attr):
                return get_attribute(self.visit(value, deeper), attr)
            case ast.Subscript(value=value, slice=index):
                return self.visit(value, deeper)[self._evaluate_index(index, deeper)]
            case ast.Call(func=function, args=args, keywords=keywords):
                return self._evaluate_call(function, args, keywords, deeper)
            case ast.List(elts=elements):
                return self._charge_size([self.visit(one, deeper) for one in elements])
            case ast.Tuple(elts=elements):
                return self._charge_size(tuple(self.visit(one, deeper) for one in elements))
            case ast.Dict(keys=keys, values=values) if all(key is not None for key in keys):
                pairs = zip(keys, values, strict=True)
                visited = [(self.visit(key, deeper), self.visit(value, deeper)) for key, value in pairs if key]
                return self._charge_size(dict(visited))
            case (
                ast.ListComp(elt=element, generators=[ast.comprehension(target=target, iter=source, ifs=ifs)])
                | ast.GeneratorExp(elt=element, generators=[ast.comprehension(target=target, iter=source, ifs=ifs)])
            ):
                return self._evaluate_comprehension(element, _target_names(target), source, ifs, deeper)
        raise ExpressionError(f"'{type(node).__name__}' is not allowed in an expression")

    def _lookup_name(self, name: str) -> Any:
        if name in self._locals:
            return self._locals[name]
        try:
            return self._lookup(name)
        except KeyError:
            if name in FUNCTIONS:
                return FUNCTIONS[name]
            raise ExpressionError(f"undefined name '{name[:80]}'") from None

    def _charge_size(self, value: Any) -> Any:
        """Charge the budget with the size of texts and lists."""
        if isinstance(value, str | list | tuple | dict):
            self._budget.spend(count_values(value) // 20)
            return value
        return require_bounded(value)

    def _evaluate_logic(self, is_and: bool, values: list[ast.expr], depth: int) -> Any:
        value: Any = is_and
        for one in values:
            value = self.visit(one, depth)
            if bool(value) != is_and:
                break
        return value

    def _evaluate_comparison(self, node: ast.Compare, depth: int) -> bool:
        left = self.visit(node.left, depth)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.visit(right_node, depth)
            if not COMPARE[type(op)](left, right):
                return False
            left = right
        return True

    def _evaluate_index(self, node: ast.expr, depth: int) -> Any:
        if isinstance(node, ast.Slice):
            parts = [None if part is None else self.visit(part, depth) for part in (node.lower, node.upper, node.step)]
            return slice(*parts)
        return self.visit(node, depth)

    def _evaluate_call(self, node: ast.expr, args: list[ast.expr], keywords: list[ast.keyword], depth: int) -> Any:
        function = self.visit(node, depth)
        if not callable(function):
            raise ExpressionError("the called object is not a function")
        values = [self.visit(one, depth) for one in args]
        named = {one.arg: self.visit(one.value, depth) for one in keywords if one.arg is not None}
        if len(named) != len(keywords):
            raise ExpressionError("'**' is not allowed in an expression")
        for value in values:
            if isinstance(value, str | list | tuple | dict):
                self._budget.spend(len(value))
        return self._charge_size(function(*values, **named))

    def _evaluate_comprehension(
        self, element: ast.expr, names: list[str], source: ast.expr, ifs: list[ast.expr], depth: int
    ) -> list[Any]:
        values = self.visit(source, depth)
        outer_locals = dict(self._locals)
        results = []
        for value in values:
            parts = [value] if len(names) == 1 else list(value)
            self._budget.spend(len(parts))
            self._locals.update(zip(names, parts, strict=True))
            if all(self.visit(one, depth) for one in ifs):
                results.append(self.visit(element, depth))
        self._locals = outer_locals
        self._charge_size(results)
        return results


def _target_names(target: ast.expr) -> list[str]:
    """Return the names that ``for name in`` or ``for one, other in`` sets. Raises ExpressionError for other targets."""
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    if len(names) != len(parts) or not names:
        raise ExpressionError("only names are allowed as loop variables")
    return names


MAX_TEXT = 100_000  # maximum characters of a text, items of a list
MAX_BITS = 4_096  # maximum size of an integer


class ExpressionError(Exception):
    """An expression is malformed, has an unknown name, or exceeds a limit."""


class XacroNamespace(Mapping[str, Any]):
    """Namespace of names behind a dot: ``math.pi``, ``limits.joint1``, ``robot.wheel_radius``."""

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self._name = name
        self._values = values

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __str__(self) -> str:
        return f"<{self._name}>"


def require_bounded(value: Any) -> Any:
    """Return `value` if its size is within the limits. Raises ExpressionError."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value.bit_length() > MAX_BITS:
            raise ExpressionError("a number becomes too large")
    elif isinstance(value, str | list | tuple | dict):
        count_values(value)
    elif isinstance(value, complex):
        raise ExpressionError("the result is not a real number")
    return value


def count_values(value: Any, counted: dict[int, int] | None = None) -> int:
    """Count the characters and values of a text, list or mapping; shared parts count each time.

    Raises ExpressionError if there are too many, or if a value contains itself.
    """
    if isinstance(value, str):
        total = 1 + len(value)
    elif isinstance(value, list | tuple | dict):
        counted = {} if counted is None else counted
        if id(value) in counted:
            total = counted[id(value)]
        else:
            counted[id(value)] = MAX_TEXT + 1  # detects a value that contains itself
            parts = [*value.keys(), *value.values()] if isinstance(value, dict) else value
            total = 1
            for part in parts:
                total += count_values(part, counted)
            counted[id(value)] = total
    else:
        return 1
    if total > MAX_TEXT:
        raise ExpressionError("a text or list becomes too long")
    return total


def multiply(a: Any, b: Any) -> Any:
    """Compute ``a * b``, also a text or list times a number."""
    if isinstance(b, str | list | tuple):
        a, b = b, a
    if isinstance(a, str | list | tuple) and isinstance(b, int) and len(a) * max(b, 0) > MAX_TEXT:
        raise ExpressionError("a text or list becomes too long")
    return a * b


def power(a: Any, b: Any) -> Any:
    """Compute ``a ** b``."""
    if isinstance(a, int) and isinstance(b, int):
        if b > 0 and a.bit_length() * b > MAX_BITS:
            raise ExpressionError("a number becomes too large")
        if b < -MAX_BITS:
            return float(a) ** b
    elif isinstance(a, float) and a < 0.0 and isinstance(b, float) and not b.is_integer():
        raise ExpressionError("a negative number has no real power with this exponent")
    return a**b


def modulo(a: Any, b: Any) -> Any:
    """Compute ``a % b`` of numbers, or format a text with ``%``."""
    if isinstance(a, str):
        return format_percent(a, b)
    return a % b


_CONVERSION = re.compile(r"%(?:%|[-+ 0#]{0,5}[0-9]{0,3}(?:\.[0-9]{0,3})?[sdifeEgGxXo])")


def format_percent(text: str, arguments: Any) -> str:
    """Format ``text % arguments`` with limited field widths. Raises ExpressionError."""
    values = arguments if isinstance(arguments, tuple) else (arguments,)
    if "%" in _CONVERSION.sub("", text) or not all(isinstance(one, str | int | float | bool) for one in values):
        raise ExpressionError("'%' supports fields like %s, %d, %.3f with texts and numbers")
    for one in values:
        require_bounded(one)
    return text % values


BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: multiply,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: modulo,
    ast.Pow: power,
}
UNARY: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
COMPARE: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


def _range(*bounds: int) -> list[int]:
    numbers = range(*bounds)
    if len(numbers) > MAX_TEXT:
        raise ExpressionError("a list becomes too long")
    return list(numbers)


def _round(value: float, digits: int | None = None) -> Any:
    if digits is not None and abs(digits) > 400:
        raise ExpressionError("round() has too many digits")
    return round(value, digits)


def _to_text(value: Any = "") -> str:
    if callable(value):
        raise ExpressionError("a function is not a value")
    return str(value)


_MATH_NAMES = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "degrees",
    "dist", "e", "erf", "erfc", "exp", "expm1", "fabs", "floor", "fmod", "gamma", "hypot", "inf", "isclose",
    "isfinite", "isinf", "isnan", "lgamma", "log", "log10", "log1p", "log2", "modf", "nan", "pi", "radians",
    "remainder", "sin", "sinh", "sqrt", "tan", "tanh", "tau", "trunc",
]  # fmt: skip
MATH_FUNCTIONS: dict[str, Any] = {name: getattr(math, name) for name in _MATH_NAMES} | {"pow": power, "fsum": math.fsum}
FUNCTIONS: dict[str, Any] = {
    **MATH_FUNCTIONS,
    "math": XacroNamespace("math", MATH_FUNCTIONS),
    "abs": abs,
    "all": all,
    "any": any,
    "bool": bool,
    "dict": dict,
    "enumerate": lambda values: [list(pair) for pair in enumerate(values)],
    "float": float,
    "int": int,
    "len": len,
    "list": lambda values=(): list(values),
    "map": lambda function, values: [function(value) for value in values],
    "max": max,
    "min": min,
    "range": _range,
    "reversed": lambda values: list(reversed(values)),
    "round": _round,
    "sorted": sorted,
    "str": _to_text,
    "sum": sum,
    "tuple": lambda values=(): tuple(values),
    "zip": lambda *lists: [list(group) for group in zip(*lists, strict=False)],
    "True": True,
    "False": False,
    "None": None,
    "true": True,
    "false": False,
}
_TEXT_METHODS = [
    "capitalize", "count", "endswith", "find", "isalpha", "isdigit", "lower", "lstrip", "partition", "removeprefix",
    "removesuffix", "rfind", "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "title",
    "upper",
]  # fmt: skip
_ALLOWED_METHODS: dict[type, frozenset[str]] = {
    str: frozenset(_TEXT_METHODS),
    list: frozenset({"count", "index"}),
    tuple: frozenset({"count", "index"}),
    dict: frozenset({"get"}),
}


def get_attribute(value: Any, name: str) -> Any:
    """Return ``value.name``: a key of a mapping, or one of a few safe methods. Raises ExpressionError."""
    if isinstance(value, Mapping) and name in value:
        return value[name]
    if isinstance(value, dict) and name in ("keys", "values", "items"):
        return lambda: [list(one) if isinstance(one, tuple) else one for one in getattr(value, name)()]
    if isinstance(value, str) and name == "join":
        return lambda parts: _join(value, list(parts))
    if isinstance(value, str) and name == "replace":
        return lambda old, new: _join(new, value.split(old)) if old else value
    for kind, names in _ALLOWED_METHODS.items():
        if isinstance(value, kind) and name in names:
            return getattr(value, name)
    raise ExpressionError(f"unknown attribute '.{name[:60]}'")


def _join(glue: str, parts: list[str]) -> str:
    if sum(map(len, parts)) + len(glue) * len(parts) > MAX_TEXT:
        raise ExpressionError("a text becomes too long")
    return glue.join(parts)
