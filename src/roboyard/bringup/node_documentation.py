"""Documentation of node classes.

`read_docstring` reads it from the source, so that a list of all nodes imports none of them. `describe_node`
imports one class and adds what it declares.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import io
import re
import tokenize
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from roboyard.bringup.catalog import resolve_node_class
from roboyard.config import SchemaRow, schema_rows

_MAX_REEXPORTS_FOLLOWED = 5
"""A class or function is looked for through so many modules that import it from one another."""


def read_docstring(module: str, name: str) -> str | None:
    """Read a docstring of a class or function from its source; "" if it has none, None if the source does not show it.

    Args:
        module: Full name of a module that defines it, or imports it at its top level.
        name: Name of the class or function.
    """
    for _ in range(_MAX_REEXPORTS_FOLLOWED):
        source = _read_source(module)
        if source is None:
            return None
        start = re.search(rf"^(?:class|def) {re.escape(name)}\b", source, re.MULTILINE)
        if start is not None:
            return _docstring_after(source[start.start() :])
        found = _imported_names(module).get(name)
        if found is None:
            return None
        module, name = found
    return None


@lru_cache(maxsize=256)
def _read_source(module: str) -> str | None:
    try:
        spec = importlib.util.find_spec(module)  # imports the packages that the module is in, not the module
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            return None
        return Path(spec.origin).read_text("utf-8")
    except (ImportError, ValueError, OSError):
        return None


@lru_cache(maxsize=256)
def _imported_names(module: str) -> dict[str, tuple[str, str]]:
    """Return the names that a module imports with ``from``: by local name, the source module and the name in that."""
    try:
        tree = ast.parse(_read_source(module) or "")
    except (SyntaxError, ValueError):
        return {}
    found: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            found |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    return found


def _docstring_after(source: str) -> str | None:
    """Return the docstring of the class or function that a text begins with."""
    try:
        is_inside = False
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in (tokenize.NL, tokenize.COMMENT):
                continue
            if is_inside:
                return str(ast.literal_eval(token.string)) if token.type == tokenize.STRING else ""
            is_inside = token.type == tokenize.INDENT
    except (SyntaxError, ValueError, tokenize.TokenError):
        return None
    return ""


_INTERFACE_LABEL = re.compile(
    r"(?:^|(?<=\s\s))(in|out|actions?|services?|actions, services|client of|health): +", re.MULTILINE
)
"""What a node subscribes to, publishes, serves and calls, as its docstring lists it."""


@dataclass(frozen=True, slots=True)
class NodeDescription:
    """Documentation of a node class.

    Attributes:
        name: The name that scenarios and robots use.
        class_name: Its module and class: "roboyard.safety.nodes:ArbiterNode".
        summary: First paragraph of its docstring.
        interfaces: What it subscribes to (in), publishes (out), serves and calls, as pairs of kind and text.
        details: Further paragraphs of the docstring.
        resources: Objects that it must be given, and, marked optional, those that it may be given.
        parameters: Its parameters.
    """

    name: str
    class_name: str
    summary: str
    interfaces: tuple[tuple[str, str], ...]
    details: tuple[str, ...]
    resources: tuple[str, ...]
    parameters: tuple[SchemaRow, ...]


def describe_node(name: str) -> NodeDescription:
    """Describe a node class.

    Args:
        name: Its registered name, ``module:Class`` or ``file.py:Class``.

    Raises:
        UnknownNameError: There is no such node.
        ConfigError: It is no node, or its module fails on import.
    """
    cls = resolve_node_class(name)
    paragraphs = inspect.cleandoc(cls.__doc__ or "").split("\n\n")
    interfaces: list[tuple[str, str]] = []
    prose: list[str] = []
    for paragraph in paragraphs:
        before, *parts = _INTERFACE_LABEL.split(paragraph)
        if before.strip():
            prose.append(_join_lines(before))
        interfaces += [(kind, _join_lines(text)) for kind, text in zip(parts[::2], parts[1::2], strict=True)]
    resources = [
        f"{key} (optional)" if declaration.optional else key for key, declaration in cls.resources_declared().items()
    ]
    return NodeDescription(
        name, f"{cls.__module__}:{cls.__qualname__}", prose[0] if prose else "", tuple(interfaces), tuple(prose[1:]),
        tuple(resources), schema_rows(cls.config_class),
    )  # fmt: skip


def _join_lines(text: str) -> str:
    return " ".join(text.split()).rstrip(";")
