"""Keeps YAML from others bounded: its scanner takes quadratic time for brackets that are never closed."""

from __future__ import annotations

MAX_NESTING = 100


def max_nesting(text: bytes) -> int:
    """The most brackets and braces open at once, those in quotes and comments included."""
    level = max_level = 0
    for byte in text:
        if byte in b"[{":
            level += 1
            max_level = max(max_level, level)
        elif byte in b"]}":
            level = max(level - 1, 0)
    return max_level
