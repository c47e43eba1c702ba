"""Evaluates text with `${…}` and `$(…)`, and loads YAML files for expressions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from roboyard.config.yaml_tree import MAX_OPEN_BRACKETS, count_open_brackets
from roboyard.description.reader_context import ReaderContext
from roboyard.description.xacro.expressions import (
    MAX_TEXT,
    ExpressionBudget,
    ExpressionError,
    XacroNamespace,
    evaluate,
    require_bounded,
)
from roboyard.description.xacro.scopes import Properties, parse_literal
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at, quote
from roboyard.errors import DescriptionError

MAX_YAML_BYTES = 256 * 1024
_UNITS = {
    "!radians": 1.0,
    "!degrees": math.pi / 180.0,
    "!meters": 1.0,
    "!millimeters": 0.001,
    "!foot": 0.3048,
    "!inches": 0.0254,
}


def load_yaml_file(path: Path, evaluate_number: Callable[[str], float]) -> Any:
    """Load a YAML file.

    Args:
        path: The file, already known to be readable and allowed.
        evaluate_number: Evaluates the text after a unit tag (``!degrees 90``, ``!radians pi/2``).

    Raises:
        ExpressionError: The file is not YAML, is too large, has other tags than units, or aliases that expand too much.
    """

    class Loader(yaml.SafeLoader):
        """Safe YAML with xacro's unit tags."""

    def make_unit_constructor(factor: float) -> Callable[[yaml.SafeLoader, yaml.Node], float]:
        return lambda loader, node: factor * evaluate_number(str(loader.construct_scalar(node)))  # type: ignore[arg-type]

    for tag, factor in _UNITS.items():
        Loader.add_constructor(tag, make_unit_constructor(factor))
    try:
        text = path.read_bytes()
        if len(text) > MAX_YAML_BYTES:
            raise ExpressionError(f"{path.name} has more than {MAX_YAML_BYTES} bytes")
        if count_open_brackets(text) > MAX_OPEN_BRACKETS:
            raise ExpressionError(f"{path.name} has more than {MAX_OPEN_BRACKETS} nested brackets")
        data = yaml.load(text, Loader)  # noqa: S506  (a SafeLoader)
        require_bounded(data)
    except OSError as error:
        raise ExpressionError(f"{path.name} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        line_label = f" line {line + 1}" if line is not None else ""
        raise ExpressionError(f"{path.name}{line_label} is not valid YAML") from None
    return data


# $${ and $$( are escapes of ${ and $(. Parentheses within $(eval …) may nest twice.
_TOKEN = re.compile(
    r"\$\$+(?=[{(])[{(]|\$\{[^}]*\}|\$\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|\$\([^)]*\)|[^$]+|\$", re.S
)
_MAX_NESTING = 20


class TextEvaluator:
    """Evaluator of the texts of one document.

    Args:
        context: Resolves files and packages, receives warnings.
        arguments: Values of ``<xacro:arg>``; the expander adds defaults.
        environment: Variables for ``$(env)`` and ``$(optenv)``.
    """

    def __init__(self, context: ReaderContext, arguments: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self.arguments: dict[str, str] = dict(arguments)
        self.budget = ExpressionBudget()
        self._context = context
        self._environment = environment
        self._yaml: dict[Path, Any] = {}
        self._nesting = 0

    def evaluate(self, text: str, scope: Properties, node: XmlNode) -> Any:
        """Evaluate a text: a single expression has its own type, several parts are concatenated.

        Raises:
            DescriptionError: An expression or substitution is wrong; with the location of `node`.
        """
        try:
            return self._evaluate_text(text, scope, node)
        except ExpressionError as error:
            raise error_at(f"{quote(text)}: {error}", node) from None

    def evaluate_to_text(self, text: str, scope: Properties, node: XmlNode) -> str:
        """Evaluate as `evaluate`, and convert to text. Raises DescriptionError."""
        if "$" not in text:
            return text
        return str(self.evaluate(text, scope, node))

    def deferred(self, node: XmlNode) -> Callable[[str, Properties], Any]:
        """Return an evaluator for the property text of `node`."""
        return lambda text, scope: self._evaluate_text(text, scope, node)

    # -- parts ---------------------------------------------------------------------------------------------------------
    def _evaluate_text(self, text: str, scope: Properties, node: XmlNode) -> Any:
        if "$" not in text:
            return text
        self._nesting += 1
        if self._nesting > _MAX_NESTING:
            self._nesting = 0
            raise ExpressionError("definitions refer to each other too deeply")
        try:
            self.budget.spend(1 + len(text) // 20)
            values = [self._evaluate_token(token, scope, node) for token in _TOKEN.findall(text)]
        finally:
            self._nesting = max(self._nesting - 1, 0)
        if len(values) == 1:
            return values[0]
        texts = [str(one) for one in values]
        if sum(map(len, texts)) > MAX_TEXT:
            raise ExpressionError("a text becomes too long")
        return "".join(texts)

    def _evaluate_token(self, token: str, scope: Properties, node: XmlNode) -> Any:
        if token.startswith("${"):
            inner = str(self._evaluate_text(token[2:-1], scope, node))
            special = self._xacro_functions(node)

            def lookup(name: str) -> Any:
                try:
                    return scope.lookup(name)
                except KeyError:
                    return special[name]

            return evaluate(inner, lookup, self.budget)
        if token.startswith("$("):
            return self._substitution(str(self._evaluate_text(token[2:-1], scope, node)), scope, node)
        if token.startswith("$$"):
            return token[1:]
        return token

    def _substitution(self, text: str, scope: Properties, node: XmlNode) -> Any:
        command, _, argument = text.strip().partition(" ")
        argument = argument.strip()
        match command:
            case "arg":
                if argument in self.arguments:
                    return self.arguments[argument]
                argument_names = ", ".join(self.arguments) or "none"
                raise ExpressionError(
                    f"the argument '{argument}' is not declared and not given (arguments: {argument_names})"
                )
            case "find" | "find-pkg-share":
                return self._find_package(argument, node)
            case "env":
                if argument in self._environment:
                    return self._environment[argument]
                raise ExpressionError(f"the environment variable '{argument}' is not set")
            case "optenv":
                name, _, default = argument.partition(" ")
                return self._environment.get(name, default.strip())
            case "dirname" | "cwd":
                return str(Path(node.file).parent)
            case "anon":
                return f"{argument}_anonymous"  # ROS adds the host and a number; a constant name is equivalent here
            case "eval":
                return evaluate(argument, self._eval_lookup(scope, node), self.budget)
        raise ExpressionError(
            f"unknown substitution '$({command[:40]} …)': arg, find, env, optenv, anon, dirname, eval"
        )

    def _find_package(self, name: str, node: XmlNode) -> str:
        folder = self._context.resources.find_package(name, node.file)
        if folder is None:
            raise ExpressionError(f"package '{name}' not found: add the folder that contains it to search")
        return str(folder)

    def _eval_lookup(self, scope: Properties, node: XmlNode) -> Callable[[str], Any]:
        """Return a look-up for ``$(eval …)``: properties, arguments, and the other substitutions as functions, as
        roslaunch.
        """

        def substituted(command: str) -> Callable[..., Any]:
            return lambda *parts: self._substitution(" ".join((command, *map(str, parts))), scope, node)

        def lookup(name: str) -> Any:
            if scope.has(name):
                return scope.lookup(name)
            if name in self.arguments:
                return parse_literal(self.arguments[name])
            if name in ("arg", "find", "env", "optenv", "anon", "dirname"):
                return substituted(name) if name != "arg" else lambda one: parse_literal(substituted("arg")(one))
            raise KeyError(name)

        return lookup

    # -- functions that need their location
    # ----------------------------------------------------------------------------------------
    def _xacro_functions(self, node: XmlNode) -> dict[str, Any]:
        """Return the ``xacro.…`` functions, which need the location of the call."""

        def warn(*parts: Any) -> str:
            self._context.warn(node, " ".join(str(part) for part in parts))
            return ""

        def fail(*parts: Any) -> str:
            raise error_at(" ".join(str(part) for part in parts) or "xacro.error", node)

        functions = {
            "load_yaml": lambda name: self._load_yaml(str(name), node),
            "arg": lambda name: self._substitution(f"arg {name}", Properties(), node),
            "abs_filename": lambda name: str(Path(node.file).parent / str(name)),
            "dotify": lambda value: value,
            "message": warn,
            "warning": warn,
            "error": fail,
            "fatal": fail,
            "tokenize": lambda text: [one for one in re.split("[,; ]", str(text)) if one],
        }
        return {"xacro": XacroNamespace("xacro", functions), "load_yaml": functions["load_yaml"]}

    def _load_yaml(self, name: str, node: XmlNode) -> Any:
        resolved = self._context.resources.resolve(name, node.file)
        if resolved.path is None:
            raise ExpressionError(f"{quote(name, 300)}: {resolved.problem}")
        if resolved.path.suffix.lower() not in (".yaml", ".yml", ".json"):
            raise ExpressionError(f"{resolved.path.name} is not a .yaml file")
        if resolved.path not in self._yaml:

            def evaluate_number(text: str) -> float:
                value = evaluate(text, _no_names, self.budget)
                if not isinstance(value, int | float):
                    raise ExpressionError(f"{quote(text)} is not a number")
                return float(value)

            self._context.count_elements(node, 1)
            self._yaml[resolved.path] = load_yaml_file(resolved.path, evaluate_number)
        return self._yaml[resolved.path]


def _no_names(name: str) -> Any:
    raise KeyError(name)


def add_call_location(error: DescriptionError, node: XmlNode, call: str) -> DescriptionError:
    """Add the location of the call to an error."""
    return DescriptionError(
        f"{error.message}, in {call} at {node.location}", location=error.location, valid=error.valid
    )
