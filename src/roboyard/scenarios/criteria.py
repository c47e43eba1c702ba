"""Success criteria: arithmetic and comparisons over a run's metrics, read as data and never run as Python.

path_length > 25 and contacts == 0
abs(odom_final_error) < 0.05 * path_length or rover2.contacts == 0
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from roboyard.config.wording import did_you_mean
from roboyard.errors import ConfigError

MAX_LENGTH = 1000
MAX_NODES = 200

_BINARY_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"abs": abs, "min": min, "max": max}
_CONSTANTS: dict[str, Any] = {"True": True, "False": False, "true": True, "false": False, "pi": math.pi}
ALLOWED_SYNTAX = "numbers, metrics, + - * /, < <= > >= == !=, and or not, abs min max, brackets"


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """What became of one criterion.

    Attributes:
        name: Its name in the scenario.
        expression: As written.
        passed: Whether it held; None when the run was interrupted before it could be judged.
        values: The metrics it used.
        reason: Why it could not be evaluated, or why its metrics cannot be relied on; "" if neither is so.
    """

    name: str
    expression: str
    passed: bool | None
    values: tuple[tuple[str, float | bool | None], ...] = ()
    reason: str = ""


class Criterion:
    """One expression, checked when it is made.

    Args:
        text: The expression.
        location: Its place, for errors.

    Attributes:
        metric_names: The metrics it uses, in order of first use; those of a named robot as "robot.metric".

    Raises:
        ConfigError: It is not an expression, or uses more than ``ALLOWED_SYNTAX``.
    """

    def __init__(self, text: str, location: str | None = None) -> None:
        self.text = text
        self.location = location
        if len(text) > MAX_LENGTH:
            raise self._error(f"criterion of {len(text)} characters", f"at most {MAX_LENGTH}")
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            reason = error.msg if isinstance(error, SyntaxError) else error
            raise self._error(f"{text!r} is not an expression: {reason}", ALLOWED_SYNTAX) from error
        if sum(1 for _ in ast.walk(self._tree)) > MAX_NODES:
            raise self._error("criterion is too long", f"at most {MAX_NODES} terms")
        self.metric_names: tuple[str, ...] = ()
        self._validate_node(self._tree)

    def _error(self, message: str, valid: str | None = None) -> ConfigError:
        return ConfigError(message, location=self.location, valid=valid)

    def _validate_node(self, node: ast.expr) -> None:
        if isinstance(node, ast.Name | ast.Attribute):
            name = self._metric_name(node)
            if name not in _CONSTANTS and name not in self.metric_names:
                self.metric_names += (name,)
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
            pass
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                self._validate_node(value)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.UAdd):
            self._validate_node(node.operand)
        elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY_OPERATORS:
            self._validate_node(node.left)
            self._validate_node(node.right)
        elif isinstance(node, ast.Compare) and all(type(op) in _COMPARISONS for op in node.ops):
            for value in (node.left, *node.comparators):
                self._validate_node(value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            if node.func.id not in _FUNCTIONS or not node.args:
                raise self._error(f"{self.text!r} calls {node.func.id!r}", f"functions: {', '.join(_FUNCTIONS)}")
            for value in node.args:
                self._validate_node(value)
        else:
            raise self._error(f"{ast.unparse(node)!r} cannot stand in a criterion", ALLOWED_SYNTAX)

    def _metric_name(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return f"{node.value.id}.{node.attr}"
        raise self._error(f"{ast.unparse(node)!r} cannot stand in a criterion", ALLOWED_SYNTAX)

    def validate_names(self, available: Mapping[str, Any] | tuple[str, ...] | list[str]) -> None:
        """Hold the metrics used against those that a run will have.

        Raises:
            ConfigError: One is not among ``available``.
        """
        for name in self.metric_names:
            if name not in available:
                hint = did_you_mean(name, list(available))
                raise self._error(f"no metric {name!r} in {self.text!r}{hint}", f"metrics: {', '.join(available)}")

    def evaluate(
        self, metrics: Mapping[str, Any], name: str = "", rejections: Mapping[str, str] | None = None
    ) -> CriterionResult:
        """Evaluate over ``metrics``.

        A metric without a value fails the criterion with that reason, and so does one of ``rejections``.

        Args:
            metrics: By name.
            name: The criterion's.
            rejections: Why metrics must not be relied on, by their names.
        """
        reasons = [f"{key}: {rejections[key]}" for key in self.metric_names if rejections and key in rejections]
        values = tuple((key, metrics.get(key)) for key in self.metric_names)
        missing = [key for key, value in values if value is None]
        if missing:
            return CriterionResult(
                name, self.text, False, values, "; ".join([f"no value: {', '.join(missing)}", *reasons])
            )
        if reasons:
            return CriterionResult(name, self.text, False, values, "; ".join(reasons))
        try:
            return CriterionResult(name, self.text, bool(self._evaluate_node(self._tree, metrics)), values)
        except (ZeroDivisionError, OverflowError, TypeError) as error:
            return CriterionResult(name, self.text, False, values, str(error))

    def preferred_directions(self) -> dict[str, int]:
        """For metrics that the criterion wants small -1, great +1; those of which it cannot be said are left out."""
        directions: dict[str, set[int]] = {}

        def collect_directions(node: ast.expr, direction: int) -> None:
            if isinstance(node, ast.Name | ast.Attribute):
                directions.setdefault(self._metric_name(node), set()).add(direction)
            elif isinstance(node, ast.BoolOp):
                for value in node.values:
                    collect_directions(value, 0)
            elif isinstance(node, ast.Compare):
                for op, left, right in zip(node.ops, (node.left, *node.comparators), node.comparators, strict=False):
                    left_direction = (
                        -1 if isinstance(op, ast.Lt | ast.LtE) else 1 if isinstance(op, ast.Gt | ast.GtE) else 0
                    )
                    collect_directions(left, left_direction)
                    collect_directions(right, -left_direction)
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
                collect_directions(node.left, direction)
                collect_directions(node.right, direction if isinstance(node.op, ast.Add) else -direction)
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
                collect_directions(node.operand, -direction if isinstance(node.op, ast.USub) else direction)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id != "abs":
                for value in node.args:
                    collect_directions(value, direction)
            else:  # a product's sign, and an absolute value's, depend on the numbers
                for name in (n for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)):
                    if not isinstance(name, ast.Name) or name.id not in _FUNCTIONS:
                        directions.setdefault(self._metric_name(name), set()).add(0)

        collect_directions(self._tree, 0)
        return {
            name: direction
            for name in self.metric_names
            for direction in directions[name]
            if directions[name] in ({-1}, {1})
        }

    def _evaluate_node(self, node: ast.expr, metrics: Mapping[str, Any]) -> Any:
        if isinstance(node, ast.Name | ast.Attribute):
            name = self._metric_name(node)
            return _CONSTANTS[name] if name in _CONSTANTS else metrics[name]
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.BoolOp):
            values = (bool(self._evaluate_node(value, metrics)) for value in node.values)
            return all(values) if isinstance(node.op, ast.And) else any(values)
        if isinstance(node, ast.UnaryOp):
            value = self._evaluate_node(node.operand, metrics)
            return not value if isinstance(node.op, ast.Not) else -value if isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.BinOp):
            return _BINARY_OPERATORS[type(node.op)](
                self._evaluate_node(node.left, metrics), self._evaluate_node(node.right, metrics)
            )
        if isinstance(node, ast.Compare):
            values_ = [self._evaluate_node(value, metrics) for value in (node.left, *node.comparators)]
            pairs = zip(node.ops, values_, values_[1:], strict=False)
            return all(_COMPARISONS[type(op)](left, right) for op, left, right in pairs)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return _FUNCTIONS[node.func.id](*(self._evaluate_node(value, metrics) for value in node.args))
        raise self._error(
            f"{ast.unparse(node)!r} cannot stand in a criterion", ALLOWED_SYNTAX
        )  # _check has let nothing else in
