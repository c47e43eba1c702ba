"""Evaluation of ``${…}``: Python-like expressions on their syntax tree, with allowed constructs and a step budget."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from roboyard.description.xacro.operations import (
    BINARY,
    COMPARE,
    FUNCTIONS,
    UNARY,
    ExpressionError,
    count_values,
    get_attribute,
    require_bounded,
)

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
