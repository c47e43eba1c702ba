"""Patterns of names, and the nearest of several names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from roboyard.errors import similar_names


def matches(text: str, pattern: str) -> bool:
    """Whether a text is as a pattern says, in which ``*`` is any text and ``?`` any character."""
    parts = re.split(r"([*?])", re.sub(r"\*+", "*", pattern))
    expression = "".join({"*": "(?s:.*)", "?": "(?s:.)"}.get(part, re.escape(part)) for part in parts)
    return re.fullmatch(expression, text) is not None


def choices(name: str, names: Iterable[str], most: int = 60) -> str:
    """The names that there are, for an error message; the most alike ones if they are many."""
    known = sorted(names)
    near = similar_names(name, known)
    hint = f"perhaps {', '.join(near)}; " if near else ""
    listed = ", ".join(known[:most]) + (f", and {len(known) - most} more" if len(known) > most else "")
    return f"{hint}there are {listed}" if known else f"{hint}there are none"
