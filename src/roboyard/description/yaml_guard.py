"""Keeps YAML from others bounded: its scanner takes quadratic time for brackets that are never closed."""

from __future__ import annotations

MAX_LEVELS = 100


def nesting(text: bytes) -> int:
    """The most brackets and braces open at once, those in quotes and comments included."""
    level = most = 0
    for byte in text:
        if byte in b"[{":
            level += 1
            most = max(most, level)
        elif byte in b"]}":
            level = max(level - 1, 0)
    return most
