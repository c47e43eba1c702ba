"""Words of ``roboyard mesh`` as numbers: points, planes, boxes, masses, joints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from roboyard.errors import DescriptionError, InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from roboyard.description.meshes import LinkAttachment, TriangleMesh


def load(file: Path, unit: str) -> TriangleMesh:
    """A mesh file's surface, gaps by rounding closed."""
    from roboyard.description.meshes.repair import merge_narrow_gaps

    return merge_narrow_gaps(read(file, unit))


def load_closed(file: Path, unit: str, repair: bool) -> tuple[TriangleMesh, tuple[str, ...]]:
    """A mesh file's closed surface, and what was mended."""
    from roboyard.description.meshes import repair_mesh

    return repair_mesh(read(file, unit), repair, str(file))


@contextmanager
def about(file: Path) -> Iterator[None]:
    """Errors inside that do not say where are about this file."""
    try:
        yield
    except DescriptionError as error:
        raise DescriptionError(error.message, location=error.location or str(file), valid=error.valid) from error


def read(file: Path, unit: str) -> TriangleMesh:
    """A mesh file's surface; COLLADA says its unit itself, to which ``unit`` then is a factor."""
    from roboyard.description.meshes import read_mesh

    def collada(path: Path, most: int) -> NDArray[np.float64]:
        from roboyard.description.meshes.collada import read_collada_triangles

        return read_collada_triangles(path, most)

    return read_mesh(file, unit, {".dae": collada})


def numbers(text: str, count: int, what: str) -> tuple[float, ...]:
    """Numbers with commas between. Raises InputError."""
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if len(values) != count or not all(map(math.isfinite, values)):
        raise InputError(f"{what} {text!r}", valid=f"{count} numbers with commas between")
    return values


def plane(text: str) -> tuple[NDArray[np.float64], float]:
    """``x=0.1``, or ``a,b,c,d`` for a x + b y + c z = d. Raises InputError."""
    import numpy as np

    axis, equals, value = text.partition("=")
    if equals and axis.strip() in ("x", "y", "z"):
        (offset,) = numbers(value, 1, "plane")
        return np.eye(3)["xyz".index(axis.strip())], offset
    a, b, c, d = numbers(text, 4, "plane")
    length = math.sqrt(a * a + b * b + c * c)
    if length <= 0.0:
        raise InputError(f"plane {text!r} has no direction", valid="x=0.1, or a,b,c,d with a x + b y + c z = d")
    return np.array([a, b, c]) / length, d / length


def box(text: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``x0,y0,z0,x1,y1,z1``. Raises InputError."""
    import numpy as np

    corners = np.array(numbers(text, 6, "box"))
    if not (corners[:3] < corners[3:]).all():
        raise InputError(f"box {text!r} is empty", valid="x0,y0,z0,x1,y1,z1, the lesser corner first")
    return corners[:3], corners[3:]


def masses(words: list[str]) -> tuple[float | None, dict[str, float]]:
    """``12.5`` is the whole, ``wheel=0.4`` a link that was weighed. Raises InputError."""
    total, weighed = None, {}
    for word in words:
        name, equals, value = word.rpartition("=")
        (mass,) = numbers(value, 1, "mass")
        if equals:
            weighed[name] = mass
        elif total is not None:
            raise InputError(f"two masses of the whole: {total:g} and {mass:g} kg", valid="one, others as NAME=KG")
        else:
            total = mass
    return total, weighed


def joints(words: list[str]) -> dict[str, LinkAttachment]:
    """``wheel=continuous,y`` or ``hand=fixed,z,arm``. Raises InputError, UnknownNameError."""
    from roboyard.description.meshes import LinkAttachment

    found = {}
    for word in words:
        name, equals, rest = word.partition("=")
        parts = [part.strip() for part in rest.split(",")]
        if not equals or not name or len(parts) > 3:
            raise InputError(f"joint {word!r}", valid="LINK=TYPE[,AXIS[,PARENT]], e.g. wheel=continuous,y")
        found[name] = LinkAttachment(*parts)
    return found


def parted(
    surface: TriangleMesh, planes: list[str], boxes: list[str], names: str | None = None
) -> tuple[dict[str, TriangleMesh], str]:
    """Parts of a surface by name, and how they were found: by components, planes or boxes. Raises InputError."""
    from roboyard.description.meshes import split_by_boxes, split_by_planes, split_components

    if planes and boxes:
        raise InputError("planes and boxes together", valid="one of them; a second call splits further")
    if planes:
        parts, how = split_by_planes(surface, [plane(text) for text in planes]), "planes"
    elif boxes:
        parts, how = split_by_boxes(surface, [box(text) for text in boxes]), "boxes"
    else:
        parts, how = split_components(surface), "components"
    wanted = [name.strip() for name in names.split(",")] if names else []
    if len(wanted) > len(parts):
        raise InputError(f"{len(wanted)} names for {len(parts)} parts", valid="a name for each part, or fewer")
    for name in wanted:
        if not name or not all(letter.isalnum() or letter in "_-" for letter in name):
            raise InputError(f"a part named {name!r}", valid="letters, digits, _ and -")
    everything = wanted + [f"part_{number}" for number in range(len(wanted), len(parts))]
    if len(set(everything)) < len(everything):
        raise InputError(f"names {names!r} occur twice", valid="a name for each part")
    return dict(zip(everything, parts, strict=True)), how


def millimetres(length: float) -> str:
    """A small length as people read it."""
    return f"{1000.0 * length:.3g} mm"
