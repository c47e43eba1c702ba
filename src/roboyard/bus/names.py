"""ROS names: resolution of relative, private and absolute names of topics, services and nodes."""

from __future__ import annotations

import re

from roboyard.errors import InputError

_NAME_PATTERN = re.compile(r"^(/|~/?)?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*$")
_NODE_NAME_PATTERN = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


def resolve(name: str, namespace: str, node: str) -> str:
    """Resolve `name` to its absolute form for `node` in `namespace` ("" or "/ns").

    ``/x`` is absolute, ``x`` becomes ``namespace/x``, ``~x`` and ``~/x`` become ``namespace/node/x``.

    Raises:
        InputError: The name is not a valid ROS name.
    """
    if not _NAME_PATTERN.match(name):
        raise InputError(
            f"'{name}' is not a valid name", valid="letters, digits, '_' and '/', e.g. 'scan', '/tf' or '~state'"
        )
    if name.startswith("/"):
        return name
    if name.startswith("~"):
        return f"{namespace}/{node}/{name[1:].lstrip('/')}"
    return f"{namespace}/{name}"


def check_absolute(name: str) -> str:
    """Return `name` if it is a valid absolute name.

    Raises:
        InputError: It is not a valid absolute name.
    """
    if not name.startswith("/") or not _NAME_PATTERN.match(name):
        raise InputError(f"'{name}' is not a valid absolute name", valid="e.g. '/rover/scan'")
    return name


def normalize_namespace(namespace: str) -> str:
    """Normalize a namespace: ``""`` for the root, else ``/a/b`` without a trailing slash.

    Raises:
        InputError: The namespace is invalid.
    """
    stripped = namespace.strip("/")
    if stripped and not _NAME_PATTERN.match(stripped):
        raise InputError(f"'{namespace}' is not a valid namespace", valid="e.g. '' or '/rover'")
    return f"/{stripped}" if stripped else ""


def frame_prefix(namespace: str) -> str:
    """Return the prefix of a namespace's frames: ``""`` for the root, else ``a/b/``."""
    stripped = namespace.strip("/")
    return f"{stripped}/" if stripped else ""


def check_node_name(name: str) -> str:
    """Return `name` if it is a valid node name.

    Raises:
        InputError: It is not a valid node name.
    """
    if not _NODE_NAME_PATTERN.match(name):
        raise InputError(
            f"'{name}' is not a valid node name", valid="letters, digits and '_', not starting with a digit"
        )
    return name
