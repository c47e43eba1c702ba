"""Single values changed from outside: `--set robots.rover.at=[1, 0, 0]`."""

from __future__ import annotations

from roboyard.config.tree import Node, read_text
from roboyard.errors import ConfigError


def override(root: Node, assignment: str) -> Node:
    """The tree with one value replaced or added; the given tree stays as it is.

    Args:
        root: What `read_file` gave.
        assignment: `key.path=value`; the value is YAML, a number in the path is an element of a list.

    Raises:
        ConfigError: There is no `=`, or the path leads through something that is no mapping or list.
    """
    key, equals, text = assignment.partition("=")
    place = f"--set {key}"
    if not equals or not all(key.split(".")):
        raise ConfigError(f"{assignment!r} is no assignment", where="--set", valid="key.path=value")
    value = read_text(text, place) if text.strip() else Node(None)
    return _replace(root, key.split("."), Node(_unplace(value, place).value, place, place), place)


def _unplace(node: Node, place: str) -> Node:
    """Lines within the option's text mean nothing to its reader."""
    if isinstance(node.value, dict):
        return Node({key: _unplace(child, place) for key, child in node.value.items()}, place, place)
    if isinstance(node.value, list):
        return Node([_unplace(child, place) for child in node.value], place, place)
    return Node(node.value, place, place)


def _replace(node: Node, keys: list[str], value: Node, place: str) -> Node:
    if not keys:
        return value
    key, rest = keys[0], keys[1:]
    if isinstance(node.value, list):
        if not key.isdecimal() or int(key) >= len(node.value):
            raise ConfigError(f"{key!r} is no element of a list of {len(node.value)}", where=place)
        items = list(node.value)
        items[int(key)] = _replace(items[int(key)], rest, value, place)
        return Node(items, node.place, node.key_place)
    if node.value is not None and not isinstance(node.value, dict):
        raise ConfigError(f"{key!r} cannot be set inside the single value {node.value!r:.40}", where=place)
    entries = dict(node.value or {})
    entries[key] = _replace(entries.get(key, Node(None, place, place)), rest, value, place)
    return Node(entries, node.place, node.key_place)
