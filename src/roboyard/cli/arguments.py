"""Parsers of what people type: numbers, planes, boxes, masses, joints, YAML values; and paths of output files."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roboyard.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from roboyard.description.meshes import LinkAttachment

_TYPE_NAME = re.compile(r"[A-Za-z]\w*(/\w+){0,2}")


def parse_yaml_value(text: str) -> Any:
    """YAML on the command line as plain data; empty text is an empty mapping.

    Raises:
        ConfigError: it is no YAML.
    """
    from roboyard.config import parse_yaml

    return parse_yaml(text, "the value").to_data() if text.strip() else {}


def parse_numbers(text: str, count: int, quantity: str) -> tuple[float, ...]:
    """Numbers with commas between. Raises InputError."""
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if len(values) != count or not all(map(math.isfinite, values)):
        raise InputError(f"{quantity} {text!r}", valid=f"{count} numbers with commas between")
    return values


def parse_plane(text: str) -> tuple[NDArray[np.float64], float]:
    """``x=0.1``, or ``a,b,c,d`` for a x + b y + c z = d. Raises InputError."""
    import numpy as np

    axis, equals, value = text.partition("=")
    if equals and axis.strip() in ("x", "y", "z"):
        (offset,) = parse_numbers(value, 1, "plane")
        return np.eye(3)["xyz".index(axis.strip())], offset
    a, b, c, d = parse_numbers(text, 4, "plane")
    length = math.sqrt(a * a + b * b + c * c)
    if length <= 0.0:
        raise InputError(f"plane {text!r} has no direction", valid="x=0.1, or a,b,c,d with a x + b y + c z = d")
    return np.array([a, b, c]) / length, d / length


def parse_box(text: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``x0,y0,z0,x1,y1,z1``. Raises InputError."""
    import numpy as np

    corners = np.array(parse_numbers(text, 6, "box"))
    if not (corners[:3] < corners[3:]).all():
        raise InputError(f"box {text!r} is empty", valid="x0,y0,z0,x1,y1,z1, the lesser corner first")
    return corners[:3], corners[3:]


def parse_masses(words: list[str]) -> tuple[float | None, dict[str, float]]:
    """``12.5`` is the whole, ``wheel=0.4`` a link that was weighed. Raises InputError."""
    total, link_masses = None, {}
    for word in words:
        name, equals, value = word.rpartition("=")
        (mass,) = parse_numbers(value, 1, "mass")
        if equals:
            link_masses[name] = mass
        elif total is not None:
            raise InputError(f"two masses of the whole: {total:g} and {mass:g} kg", valid="one, others as NAME=KG")
        else:
            total = mass
    return total, link_masses


def parse_joints(words: list[str]) -> dict[str, LinkAttachment]:
    """``wheel=continuous,y`` or ``hand=fixed,z,arm``. Raises InputError, UnknownNameError."""
    from roboyard.description.meshes import LinkAttachment

    found = {}
    for word in words:
        name, equals, definition = word.partition("=")
        parts = [part.strip() for part in definition.split(",")]
        if not equals or not name or len(parts) > 3:
            raise InputError(f"joint {word!r}", valid="LINK=TYPE[,AXIS[,PARENT]], e.g. wheel=continuous,y")
        found[name] = LinkAttachment(*parts)
    return found


def validate_output_path(option: str, file: Path | None, suffixes: tuple[str, ...]) -> None:
    """Before something long: whether what it finds can be written there. Raises InputError."""
    if file is None:
        return
    if file.suffix.lower() not in suffixes:
        suffix_text = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}" if len(suffixes) > 1 else suffixes[0]
        raise InputError(f"{option} {file}", valid=f"a name that ends in {suffix_text}")
    if not file.parent.is_dir() or file.is_dir():
        raise InputError(f"{option} {file}: cannot be written", valid="a file in a folder that exists")


def write_text(file: Path, text: str) -> None:
    """Write a file. Raises InputError."""
    from roboyard.config import write_atomic

    try:
        write_atomic(file, text)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", location=str(file), valid="a file in a folder"
        ) from None


def parse_type_and_values(words: Sequence[str]) -> tuple[str | None, Any]:
    """What ``[TYPE] [VALUES]`` on the command line say.

    Raises:
        InputError: more than two words.
        ConfigError: the values are no YAML.
    """
    remaining = list(words)
    kind = remaining.pop(0) if remaining and _TYPE_NAME.fullmatch(remaining[0]) else None
    if len(remaining) > 1:
        raise InputError(f"{len(words)} words after the name", valid="a type and values, the values in quotes")
    return kind, parse_yaml_value(remaining[0]) if remaining else {}
