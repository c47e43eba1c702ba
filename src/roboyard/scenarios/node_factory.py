"""Makes nodes from what files say about them: class by name, parameters with units, resources by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roboyard.bus import Node
from roboyard.config import did_you_mean
from roboyard.errors import ConfigError, describe_exception
from roboyard.scenarios.catalog import node_class


def make_node(
    use: str,
    parameters: Mapping[str, Any],
    resources: Mapping[str, Any],
    *,
    usual: Mapping[str, Any] | None = None,
    base: Path | None = None,
    where: str = "",
) -> Node:
    """A node, not on any bus yet.

    Args:
        use: Registered name, ``module:Class`` or ``file.py:Class``.
        parameters: Its declared parameters; numbers may carry a unit ("500 mm").
        resources: What there is to hand out by name; the node gets those that it declares.
        usual: Instead of defaults, for parameters that the node declares.
        base: Folder that paths are relative to.
        where: The node's place in a file, for errors.

    Raises:
        UnknownNameError: no such node class.
        ConfigError: an unknown parameter, a bad value, or a resource that nobody has.
    """
    cls = node_class(use, base)
    keys = cls.config_class.keys()
    values: dict[str, Any] = {key: value for key, value in (usual or {}).items() if key in keys}
    for key in parameters:
        if key not in keys:
            raise ConfigError(
                f"no parameter {key!r}{did_you_mean(key, keys)}",
                location=where or use,
                valid="there are: " + (", ".join(keys) or "none"),
            )
    values.update(parameters)
    handed: dict[str, Any] = {}
    for name, resource in cls.resources_declared().items():
        if name in resources:
            handed[name] = resources[name]
        elif not resource.optional:
            raise ConfigError(
                f"node {use} wants a resource {name!r}",
                location=where or None,
                valid=f"here there are: {', '.join(resources) or 'none'}",
            )
    try:
        return cls(**values, **handed)
    except ConfigError as error:
        if not where:
            raise
        raise ConfigError(str(error), location=where) from error
    except SystemExit as error:
        raise ConfigError(f"the constructor of {use} {describe_exception(error)}", location=where or None) from error
