"""Parsers of arguments: numbers, planes, boxes, masses, joints, YAML values; checks of output files."""

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

IMAGE_SUFFIXES = (".png", ".svg")
"""Formats of drawn images."""
PHOTO_SUFFIXES = (".png", ".jpg", ".jpeg")
"""Formats of rendered images."""
_TYPE_NAME = re.compile(r"[A-Za-z]\w*(/\w+){0,2}")


def parse_yaml_value(text: str) -> Any:
    """Parse YAML on the command line into plain data; empty text is an empty mapping.

    Raises:
        ConfigError: The text is not valid YAML.
    """
    from roboyard.config import parse_yaml

    return parse_yaml(text, "the value").to_data() if text.strip() else {}


def parse_numbers(option: str, text: str, counts: int | tuple[int, ...], limit: float = math.inf) -> list[float]:
    """Parse numbers that are separated by commas or spaces.

    Args:
        option: The option or quantity that holds them, for the error.
        text: The numbers.
        counts: How many there may be.
        limit: Their largest magnitude.

    Raises:
        InputError: The text holds another count, a word, an infinite number or one beyond the limit.
    """
    allowed = (counts,) if isinstance(counts, int) else counts
    try:
        numbers = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        numbers = []
    if len(numbers) not in allowed or not all(math.isfinite(number) and abs(number) <= limit for number in numbers):
        noun = "number" if allowed == (1,) else "numbers"
        expected = f"{' or '.join(map(str, allowed))} finite {noun} separated by commas"
        raise InputError(
            f"{option} {text[:80]!r}", valid=expected + (f", up to {limit:g}" if math.isfinite(limit) else "")
        )
    return numbers


def parse_plane(text: str) -> tuple[NDArray[np.float64], float]:
    """Parse ``x=0.1``, or ``a,b,c,d`` for a x + b y + c z = d.

    Returns:
        Unit normal (3,), and distance of the plane from the origin along it [m].

    Raises:
        InputError: The text describes no plane.
    """
    import numpy as np

    axis, equals, value = text.partition("=")
    if equals and axis.strip() in ("x", "y", "z"):
        (offset,) = parse_numbers("--plane", value, 1)
        return np.eye(3)["xyz".index(axis.strip())], offset
    a, b, c, d = parse_numbers("--plane", text, 4)
    length = math.sqrt(a * a + b * b + c * c)
    if length <= 0.0:
        raise InputError(f"--plane {text!r} has no direction", valid="x=0.1, or a,b,c,d with a x + b y + c z = d")
    return np.array([a, b, c]) / length, d / length


def parse_box(text: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Parse ``x0,y0,z0,x1,y1,z1`` into the lower and the upper corner, each (3,) [m].

    Raises:
        InputError: The text describes no box, or an empty one.
    """
    import numpy as np

    corners = np.array(parse_numbers("--box", text, 6))
    if not (corners[:3] < corners[3:]).all():
        raise InputError(f"--box {text!r} is empty", valid="x0,y0,z0,x1,y1,z1, the lower corner first")
    return corners[:3], corners[3:]


def parse_masses(words: list[str]) -> dict[str, float]:
    """Parse ``wheel=0.4`` into masses by link [kg].

    Raises:
        InputError: A word is not LINK=KG.
    """
    masses = {}
    for word in words:
        name, equals, value = word.rpartition("=")
        if not equals or not name:
            raise InputError(f"--link-mass {word!r}", valid="LINK=KG, e.g. wheel=0.4")
        (masses[name],) = parse_numbers("--link-mass", value, 1)
    return masses


def parse_joints(words: list[str]) -> dict[str, LinkAttachment]:
    """Parse ``wheel=continuous,y`` or ``hand=fixed,z,arm`` into the attachment of each link.

    Raises:
        InputError: A word is not LINK=TYPE[,AXIS[,PARENT]].
        UnknownNameError: There is no such type or axis.
    """
    from roboyard.description.meshes import LinkAttachment

    found = {}
    for word in words:
        name, equals, definition = word.partition("=")
        parts = [part.strip() for part in definition.split(",")]
        if not equals or not name or len(parts) > 3:
            raise InputError(f"--joint {word!r}", valid="LINK=TYPE[,AXIS[,PARENT]], e.g. wheel=continuous,y")
        found[name] = LinkAttachment(*parts)
    return found


def validate_output_path(option: str, file: Path | None, suffixes: tuple[str, ...]) -> None:
    """Check before a long computation that a file can be written.

    Args:
        option: The option that names it, for the error.
        file: The file; None passes.
        suffixes: Allowed suffixes, in lower case, with their dots.

    Raises:
        InputError: The file has another suffix, its folder does not exist, or it is a folder.
    """
    if file is None:
        return
    if file.suffix.lower() not in suffixes:
        suffix_text = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}" if len(suffixes) > 1 else suffixes[0]
        raise InputError(f"{option} {file}", valid=f"a name that ends in {suffix_text}")
    if not file.parent.is_dir() or file.is_dir():
        raise InputError(f"{option} {file} cannot be written", valid="a file in a folder that exists")


def write_text(file: Path, text: str) -> None:
    """Write a text file as a whole.

    Raises:
        InputError: The file cannot be written.
    """
    from roboyard.config import write_atomic

    try:
        write_atomic(file, text)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", location=str(file), valid="a file in a folder"
        ) from None


def parse_type_and_values(words: Sequence[str]) -> tuple[str | None, Any]:
    """Parse ``[TYPE] [VALUES]`` into the type's name, or None, and the values as plain data.

    Raises:
        InputError: There are more than two words.
        ConfigError: The values are not valid YAML.
    """
    remaining = list(words)
    kind = remaining.pop(0) if remaining and _TYPE_NAME.fullmatch(remaining[0]) else None
    if len(remaining) > 1:
        raise InputError(f"{len(words)} words after the name", valid="a type and values, the values in quotes")
    return kind, parse_yaml_value(remaining[0]) if remaining else {}
