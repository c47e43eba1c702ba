"""Text with ``${expressions}`` and ``$(substitutions)``: what it becomes in a scope."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from roboyard.description.reading import Reading
from roboyard.description.values import fault, shown
from roboyard.description.xacro import yaml_files
from roboyard.description.xacro.expressions import Budget, evaluate
from roboyard.description.xacro.operations import MAX_TEXT, ExpressionError, Namespace
from roboyard.description.xacro.tables import Properties, literal
from roboyard.description.xml import Node
from roboyard.errors import DescriptionError

# $${ and $$( are written for ${ and $( themselves.
# Parentheses within $(eval …) may nest twice.
_TOKEN = re.compile(
    r"\$\$+(?=[{(])[{(]|\$\{[^}]*\}|\$\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|\$\([^)]*\)|[^$]+|\$", re.S
)
_MAX_NESTING = 20


class Texts:
    """Evaluates texts of one document.

    Args:
        reading: Resolves files and packages, takes findings.
        arguments: Values of ``<xacro:arg>``; the expander adds defaults.
        environment: For ``$(env)`` and ``$(optenv)``.
    """

    def __init__(self, reading: Reading, arguments: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self.arguments: dict[str, str] = dict(arguments)
        self.budget = Budget()
        self._reading = reading
        self._environment = environment
        self._yaml: dict[Path, Any] = {}
        self._nesting = 0

    def value(self, text: str, scope: Properties, node: Node) -> Any:
        """What ``text`` means: with one single part its value in its own type, otherwise the parts joined.

        Raises:
            DescriptionError: an expression or substitution is wrong; with the place of ``node``.
        """
        try:
            return self._parts(text, scope, node)
        except ExpressionError as error:
            raise fault(f"{shown(text)}: {error}", node) from None

    def string(self, text: str, scope: Properties, node: Node) -> str:
        """As `value`, as text. Raises DescriptionError."""
        if "$" not in text:
            return text
        return str(self.value(text, scope, node))

    def lazy(self, node: Node) -> Callable[[str, Properties], Any]:
        """Evaluator for a property whose text stands at ``node``."""
        return lambda text, scope: self._parts(text, scope, node)

    # -- parts -------------------------------------------------------------------------------------------------------
    def _parts(self, text: str, scope: Properties, node: Node) -> Any:
        if "$" not in text:
            return text
        self._nesting += 1
        if self._nesting > _MAX_NESTING:
            self._nesting = 0
            raise ExpressionError("definitions refer to each other too deep")
        try:
            self.budget.spend(1 + len(text) // 20)
            found = [self._part(token, scope, node) for token in _TOKEN.findall(text)]
        finally:
            self._nesting = max(self._nesting - 1, 0)
        if len(found) == 1:
            return found[0]
        written = [str(one) for one in found]
        if sum(map(len, written)) > MAX_TEXT:
            raise ExpressionError("a text becomes too long")
        return "".join(written)

    def _part(self, token: str, scope: Properties, node: Node) -> Any:
        if token.startswith("${"):
            inner = str(self._parts(token[2:-1], scope, node))
            special = self._special(node)

            def names(name: str) -> Any:
                try:
                    return scope.lookup(name)
                except KeyError:
                    return special[name]

            return evaluate(inner, names, self.budget)
        if token.startswith("$("):
            return self._substitution(str(self._parts(token[2:-1], scope, node)), scope, node)
        if token.startswith("$$"):
            return token[1:]
        return token

    def _substitution(self, text: str, scope: Properties, node: Node) -> Any:
        word, _, rest = text.strip().partition(" ")
        rest = rest.strip()
        match word:
            case "arg":
                if rest in self.arguments:
                    return self.arguments[rest]
                known = ", ".join(self.arguments) or "none"
                raise ExpressionError(f"the argument '{rest}' is not declared and not given (arguments: {known})")
            case "find" | "find-pkg-share":
                return self._package(rest, node)
            case "env":
                if rest in self._environment:
                    return self._environment[rest]
                raise ExpressionError(f"the environment variable '{rest}' is not set")
            case "optenv":
                name, _, default = rest.partition(" ")
                return self._environment.get(name, default.strip())
            case "dirname" | "cwd":
                return str(Path(node.file).parent)
            case "anon":
                return f"{rest}_anonymous"  # ROS adds the host and a number: the same name each time is as good
            case "eval":
                return evaluate(rest, self._in_eval(scope, node), self.budget)
        raise ExpressionError(f"'$({word[:40]} …)' is not known: arg, find, env, optenv, anon, dirname, eval")

    def _package(self, name: str, node: Node) -> str:
        folder = self._reading.resources.package(name, node.file)
        if folder is None:
            raise ExpressionError(f"package '{name}' is not found: name the folder that holds it in search")
        return str(folder)

    def _in_eval(self, scope: Properties, node: Node) -> Callable[[str], Any]:
        """Names within ``$(eval …)``: properties, arguments, and the other substitutions as functions, as roslaunch."""

        def substituted(word: str) -> Callable[..., Any]:
            return lambda *parts: self._substitution(" ".join((word, *map(str, parts))), scope, node)

        def names(name: str) -> Any:
            if scope.has(name):
                return scope.lookup(name)
            if name in self.arguments:
                return literal(self.arguments[name])
            if name in ("arg", "find", "env", "optenv", "anon", "dirname"):
                return substituted(name) if name != "arg" else lambda one: literal(substituted("arg")(one))
            raise KeyError(name)

        return names

    # -- functions with a place ----------------------------------------------------------------------------------------
    def _special(self, node: Node) -> dict[str, Any]:
        """``xacro.…`` functions, which need to know where they are called."""

        def said(*parts: Any) -> str:
            self._reading.note(node, " ".join(str(part) for part in parts))
            return ""

        def failed(*parts: Any) -> str:
            raise fault(" ".join(str(part) for part in parts) or "xacro.error", node)

        tools = {
            "load_yaml": lambda name: self._load(str(name), node),
            "arg": lambda name: self._substitution(f"arg {name}", Properties(), node),
            "abs_filename": lambda name: str(Path(node.file).parent / str(name)),
            "dotify": lambda value: value,
            "message": said,
            "warning": said,
            "error": failed,
            "fatal": failed,
            "tokenize": lambda text: [one for one in re.split("[,; ]", str(text)) if one],
        }
        return {"xacro": Namespace("xacro", tools), "load_yaml": tools["load_yaml"]}

    def _load(self, name: str, node: Node) -> Any:
        found = self._reading.resources.resolve(name, node.file)
        if found.path is None:
            raise ExpressionError(f"{shown(name, 300)}: {found.problem}")
        if found.path.suffix.lower() not in (".yaml", ".yml", ".json"):
            raise ExpressionError(f"{found.path.name} is not a .yaml file")
        if found.path not in self._yaml:

            def number(text: str) -> float:
                value = evaluate(text, _nothing, self.budget)
                if not isinstance(value, int | float):
                    raise ExpressionError(f"{shown(text)} is no number")
                return float(value)

            self._reading.count(node, 1)
            self._yaml[found.path] = yaml_files.load(found.path, number)
        return self._yaml[found.path]


def _nothing(name: str) -> Any:
    raise KeyError(name)


def placed(error: DescriptionError, node: Node, what: str) -> DescriptionError:
    """The error with the call it happened in."""
    return DescriptionError(f"{error.what}, in {what} at {node.where}", where=error.where, valid=error.valid)
