"""A scenario with something laid on it: what its smoke variant, another robot or an option change."""

from __future__ import annotations

from typing import Final

from roboyard.config import YamlNode

_WHOLE: Final = ("criteria", "operator", "smoke")
"""Keys that are replaced instead of added to."""


def laid_on(node: YamlNode, over: YamlNode) -> YamlNode:
    """``over`` laid on ``node``: mappings are joined, everything else is replaced, and so are those in ``_WHOLE``."""
    if not isinstance(node.value, dict) or not isinstance(over.value, dict):
        return over
    entries = dict(node.value)
    for key, child in over.value.items():
        joined = key in entries and key not in _WHOLE
        entries[key] = laid_on(entries[key], child) if joined else child
    return YamlNode(entries, node.location, node.key_location)
