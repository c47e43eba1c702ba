"""Docstrings of classes, read from their source: to list what there is, nothing of it has to be imported."""

from __future__ import annotations

import ast
import importlib.util
import io
import re
import tokenize
from functools import lru_cache
from pathlib import Path

_MAX_REEXPORTS = 5
"""A class is looked for through so many modules that import it from one another."""


def read_class_docstring(module: str, name: str) -> str | None:
    """The docstring of a class as its source has it; "" if it has none, None if the source does not tell.

    Args:
        module: Full name of a module that defines the class, or imports it at its top level.
        name: Of the class.
    """
    for _ in range(_MAX_REEXPORTS):
        source = _source(module)
        if source is None:
            return None
        start = re.search(rf"^class {re.escape(name)}\b", source, re.MULTILINE)
        if start is not None:
            return _docstring_after(source[start.start() :])
        found = _imported_names(module).get(name)
        if found is None:
            return None
        module, name = found
    return None


@lru_cache(maxsize=256)
def _source(module: str) -> str | None:
    try:
        spec = importlib.util.find_spec(module)  # imports the packages that the module is in, not the module
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            return None
        return Path(spec.origin).read_text("utf-8")
    except (ImportError, ValueError, OSError):
        return None


@lru_cache(maxsize=256)
def _imported_names(module: str) -> dict[str, tuple[str, str]]:
    """What a module imports with ``from``: by the name it has there, the module it comes from and its name in that."""
    try:
        tree = ast.parse(_source(module) or "")
    except (SyntaxError, ValueError):
        return {}
    found: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            found |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    return found


def _docstring_after(source: str) -> str | None:
    """The docstring of the class that a text begins with."""
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
