"""Single values changed from outside: `--set robots.rover.at=[1, 0, 0]`."""

from __future__ import annotations

from roboyard.config.tree import YamlNode, parse_yaml
from roboyard.errors import ConfigError


def apply_override(root: YamlNode, assignment: str) -> YamlNode:
    """The tree with one value replaced or added; the given tree stays as it is.

    Args:
        root: What `read_yaml` gave.
        assignment: `key.path=value`; the value is YAML, a number in the path is an element of a list.

    Raises:
        ConfigError: There is no `=`, or the path leads through something that is no mapping or list.
    """
    key, equals, text = assignment.partition("=")
    location = f"--set {key}"
    if not equals or not all(key.split(".")):
        raise ConfigError(f"{assignment!r} is no assignment", location="--set", valid="key.path=value")
    value = parse_yaml(text, location) if text.strip() else YamlNode(None)
    return _replace(root, key.split("."), YamlNode(_with_location(value, location).value, location, location), location)


def _with_location(node: YamlNode, location: str) -> YamlNode:
    """Lines within the option's text mean nothing to its reader."""
    if isinstance(node.value, dict):
        return YamlNode({key: _with_location(child, location) for key, child in node.value.items()}, location, location)
    if isinstance(node.value, list):
        return YamlNode([_with_location(child, location) for child in node.value], location, location)
    return YamlNode(node.value, location, location)


def _replace(node: YamlNode, keys: list[str], value: YamlNode, location: str) -> YamlNode:
    if not keys:
        return value
    key, remaining_keys = keys[0], keys[1:]
    if isinstance(node.value, list):
        if not key.isdecimal() or int(key) >= len(node.value):
            raise ConfigError(f"{key!r} is no element of a list of {len(node.value)}", location=location)
        items = list(node.value)
        items[int(key)] = _replace(items[int(key)], remaining_keys, value, location)
        return YamlNode(items, node.location, node.key_location)
    if node.value is not None and not isinstance(node.value, dict):
        raise ConfigError(f"{key!r} cannot be set inside the single value {node.value!r:.40}", location=location)
    entries = dict(node.value or {})
    entries[key] = _replace(entries.get(key, YamlNode(None, location, location)), remaining_keys, value, location)
    return YamlNode(entries, node.location, node.key_location)
