"""ROS names: how relative, private and absolute names of topics, services and nodes resolve."""

from __future__ import annotations

import re

from roboyard.errors import InputError

_NAME_PATTERN = re.compile(r"^(/|~/?)?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*$")
_NODE_NAME_PATTERN = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


def resolve(name: str, namespace: str, node: str) -> str:
    """Absolute form of ``name`` as ``node`` in ``namespace`` ("" or "/ns") means it.

    ``/x`` is absolute, ``x`` becomes ``namespace/x``, ``~x`` and ``~/x`` become ``namespace/node/x``.

    Raises:
        InputError: not a valid ROS name.
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
    """Return ``name`` if it is a valid absolute name.

    Raises:
        InputError: it is not.
    """
    if not name.startswith("/") or not _NAME_PATTERN.match(name):
        raise InputError(f"'{name}' is not a valid absolute name", valid="e.g. '/rover/scan'")
    return name


def normalize_namespace(namespace: str) -> str:
    """``""`` for the root, else ``/a/b`` without a trailing slash.

    Raises:
        InputError: not a valid namespace.
    """
    stripped = namespace.strip("/")
    if stripped and not _NAME_PATTERN.match(stripped):
        raise InputError(f"'{namespace}' is not a valid namespace", valid="e.g. '' or '/rover'")
    return f"/{stripped}" if stripped else ""


def check_node_name(name: str) -> str:
    """Return ``name`` if a node may be called so.

    Raises:
        InputError: it may not.
    """
    if not _NODE_NAME_PATTERN.match(name):
        raise InputError(
            f"'{name}' is not a valid node name", valid="letters, digits and '_', not starting with a digit"
        )
    return name
