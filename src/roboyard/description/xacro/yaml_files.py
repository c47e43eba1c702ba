"""``xacro.load_yaml``: plain data from a YAML file inside the folders that may be read."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from roboyard.config.yaml_tree import MAX_OPEN_BRACKETS, count_open_brackets
from roboyard.description.xacro.operations import ExpressionError, require_bounded

MAX_YAML_BYTES = 256 * 1024
_UNITS = {
    "!radians": 1.0,
    "!degrees": math.pi / 180.0,
    "!meters": 1.0,
    "!millimeters": 0.001,
    "!foot": 0.3048,
    "!inches": 0.0254,
}


def load_yaml_file(path: Path, evaluate_number: Callable[[str], float]) -> Any:
    """Content of a YAML file.

    Args:
        path: The file, already known to be readable and allowed.
        evaluate_number: Evaluates the text behind a unit tag (``!degrees 90``, ``!radians pi/2``).

    Raises:
        ExpressionError: no YAML, too large, tags other than units, or aliases that blow it up.
    """

    class Loader(yaml.SafeLoader):
        """Safe YAML with xacro's unit tags."""

    def make_unit_constructor(factor: float) -> Callable[[yaml.SafeLoader, yaml.Node], float]:
        return lambda loader, node: factor * evaluate_number(str(loader.construct_scalar(node)))  # type: ignore[arg-type]

    for tag, factor in _UNITS.items():
        Loader.add_constructor(tag, make_unit_constructor(factor))
    try:
        text = path.read_bytes()
        if len(text) > MAX_YAML_BYTES:
            raise ExpressionError(f"{path.name} has more than {MAX_YAML_BYTES} bytes")
        if count_open_brackets(text) > MAX_OPEN_BRACKETS:
            raise ExpressionError(f"{path.name} has more than {MAX_OPEN_BRACKETS} brackets within each other")
        data = yaml.load(text, Loader)  # noqa: S506  (a SafeLoader)
        require_bounded(data)
    except OSError as error:
        raise ExpressionError(f"{path.name} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        line_label = f" line {line + 1}" if line is not None else ""
        raise ExpressionError(f"{path.name}{line_label} is not valid YAML") from None
    return data
