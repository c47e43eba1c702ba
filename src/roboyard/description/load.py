"""From a path or a text to a `Model` or a `World`: find the file, know the format, read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from roboyard.description.findings import Mending
from roboyard.description.model import Model, World
from roboyard.description.reading import Reading
from roboyard.description.resources import Resources, at_home
from roboyard.description.values import fault
from roboyard.description.xml import MAX_CHARACTERS, Node, parse
from roboyard.errors import DescriptionError

_EXTENSIONS = (".urdf", ".xacro", ".sdf", ".world", ".xml", ".gazebo", ".model", ".launch")
_FORMATS = "a .urdf, .xacro, .sdf, .world, .launch or MJCF .xml file"


def load_model(
    path_or_text: str | os.PathLike[str],
    *,
    search: Sequence[str | os.PathLike[str]] = (),
    arguments: Mapping[str, str] | None = None,
    name: str | None = None,
    repair: bool = False,
) -> Model:
    """Read a robot or piece of furniture from URDF, xacro, SDF or MJCF, or from a launch file in XML that names it.

    Args:
        path_or_text: A file, or the XML text itself (it starts with ``<``).
        search: Folders that hold packages and models the description refers to; see `Resources`.
        arguments: Values for ``<xacro:arg>``, and for ``<arg>`` of launch files.
        name: Name for the model instead of the file's.
        repair: Mend the faults that can be mended, such as an inertia that no body has, instead of refusing the file;
            `Model.mendings` lists each.

    Returns:
        The model; `Model.findings` lists what was not understood, with file and line.

    Raises:
        DescriptionError: the file cannot be read, or what it describes is wrong; the message says what and where.
    """
    reading = _reading(search, repair=repair)
    root, source = _open(reading, path_or_text, arguments)
    model = _model(reading, root, name)
    return replace(model, source=source, findings=reading.findings, mendings=reading.mendings)


def _model(reading: Reading, root: Node, name: str | None) -> Model:
    if root.tag == "robot":
        from roboyard.description.urdf import read_robot

        return read_robot(reading, root, name)
    if root.tag == "mujoco":
        from roboyard.description.mjcf import read_model_document as read_mjcf

        return read_mjcf(reading, root, name)
    from roboyard.description.sdf import read_model_document

    return read_model_document(reading, root, name)


def survey_model(
    path_or_text: str | os.PathLike[str],
    *,
    search: Sequence[str | os.PathLike[str]] = (),
    arguments: Mapping[str, str] | None = None,
) -> tuple[tuple[DescriptionError, ...], tuple[Mending, ...]]:
    """Everything that is wrong with a model: what cannot be mended, and what ``repair`` would mend.

    Reading goes on after each fault as far as the format's reader can: in URDF from link to link, joint to joint and
    block to block; in SDF also from model to model, nested and included ones too; in MJCF from element to element.
    What only follows of a fault found is left out where that can be told.

    Args:
        path_or_text: As in `load_model`.
        search: As there.
        arguments: As there.
    """
    return _survey(path_or_text, search, arguments, lambda reading, root: _model(reading, root, None))


def survey_world(
    path_or_text: str | os.PathLike[str], *, search: Sequence[str | os.PathLike[str]] = ()
) -> tuple[tuple[DescriptionError, ...], tuple[Mending, ...]]:
    """As `survey_model`, of a world."""
    return _survey(path_or_text, search, None, _world)


def _survey(
    given: str | os.PathLike[str],
    search: Sequence[str | os.PathLike[str]],
    arguments: Mapping[str, str] | None,
    read: Callable[[Reading, Node], object],
) -> tuple[tuple[DescriptionError, ...], tuple[Mending, ...]]:
    reading = _reading(search, repair=True, survey=True)
    try:
        root, _ = _open(reading, given, arguments)
        read(reading, root)
    except DescriptionError as error:
        if error not in reading.faults:
            reading.faults.append(error)
    return tuple(reading.faults), reading.mendings


def load_world(
    path_or_text: str | os.PathLike[str],
    *,
    search: Sequence[str | os.PathLike[str]] = (),
    arguments: Mapping[str, str] | None = None,
    repair: bool = False,
) -> World:
    """Read a world from SDF (xacro around it allowed) or MJCF.

    Args:
        path_or_text: A file, or the XML text itself.
        search: Folders that hold the models the world includes; see `Resources`.
        arguments: Values for ``<xacro:arg>``.
        repair: As in `load_model`.

    Raises:
        DescriptionError: as `load_model`.
    """
    reading = _reading(search, repair=repair)
    root, source = _open(reading, path_or_text, arguments)
    world = _world(reading, root)
    return replace(world, source=source, findings=reading.findings, mendings=reading.mendings)


def _world(reading: Reading, root: Node) -> World:
    if root.tag == "robot":
        raise fault("this describes a robot, not a world", root, "load it as a model")
    if root.tag == "mujoco":
        from roboyard.description.mjcf import read_world_document as read_mjcf

        return read_mjcf(reading, root)
    from roboyard.description.sdf import read_world_document

    return read_world_document(reading, root)


def _reading(search: Sequence[str | os.PathLike[str]], *, repair: bool, survey: bool = False) -> Reading:
    for folder in search:
        if not at_home(folder).is_dir():
            raise DescriptionError(f"the search folder {os.fspath(folder)!r} does not exist")
    return Reading(Resources([Path(folder) for folder in search], os.environ), repair=repair, survey=survey)


def _open(
    reading: Reading, given: str | os.PathLike[str], arguments: Mapping[str, str] | None, *, launched: bool = False
) -> tuple[Node, Path | None]:
    if isinstance(given, str) and given.lstrip("\ufeff \t\r\n").startswith("<"):
        source, text = None, given
        root, findings = parse(text, "<text>")
    else:
        source, data = read_file(given)
        root, findings = parse(data, str(given))
    reading.add(findings)
    if root.tag == "launch":
        from roboyard.description.launch import described_in

        if launched:
            raise fault("robot_description is a launch file", root, "a xacro or URDF file")
        found, arguments = described_in(root, reading.resources, arguments or {})
        return _open(reading, found, arguments, launched=True)
    return known_root(_expand(reading, root, source, arguments)), source


def load_srdf_document(path: str | os.PathLike[str]) -> Node:
    """The XML of an SRDF, which says more of a robot that a URDF describes; of a ``.srdf.xacro``, expanded.

    Raises:
        DescriptionError: it cannot be read, or is none.
    """
    reading = _reading((), repair=False)
    source, data = read_file(path, (".srdf", ".xacro"))
    root, _ = parse(data, str(path))
    if root.tag != "robot":
        raise fault(f"the document is a <{root.tag[:60]}>", root, "<robot>, as SRDF has it")
    from roboyard.description.xacro import expand, is_xacro

    return expand(reading, root, {}) if is_xacro(root, source) else root


def read_file(
    given: str | os.PathLike[str], extensions: tuple[str, ...] = _EXTENSIONS, formats: str = _FORMATS
) -> tuple[Path, bytes]:
    """Path and bytes of a description file. Raises DescriptionError saying why it cannot be one."""
    shown = os.fspath(given)
    if not shown.strip() or "\x00" in shown:
        raise DescriptionError("the name of the file is empty or not a path", valid=formats)
    path = at_home(shown)
    try:
        if path.is_dir():
            raise DescriptionError("this is a folder", where=shown, valid=f"{formats} in it")
        if not path.exists():
            raise DescriptionError("no such file", where=shown[:300], valid=formats)
        if not path.is_file():
            raise DescriptionError("this is not a regular file", where=shown, valid=formats)
        if path.suffix == ".py":
            raise DescriptionError(
                "a launch file in Python is a program, and not run",
                where=shown,
                valid="the xacro or URDF file it loads",
            )
        if not path.name.lower().endswith(extensions):
            raise DescriptionError(f"unknown extension '{path.suffix}'", where=shown, valid=formats)
        if path.stat().st_size > MAX_CHARACTERS:
            raise DescriptionError(
                f"the file has {path.stat().st_size} bytes", where=shown, valid=f"at most {MAX_CHARACTERS}"
            )
        return path, path.read_bytes()
    except OSError as error:
        raise DescriptionError(f"cannot be read: {error.strerror}", where=shown[:300]) from None


def _expand(reading: Reading, root: Node, source: Path | None, arguments: Mapping[str, str] | None) -> Node:
    from roboyard.description.xacro import expand, is_xacro

    if is_xacro(root, source):
        plain = expand(reading, root, arguments or {})
        if root.tag in ("robot", "root") and not plain.all("link", "joint"):
            raise fault(
                "the file holds no robot, only parts for one (macros, properties)", root, "a file that uses them"
            )
        return plain
    if arguments:
        raise fault(
            f"arguments are given ({', '.join(sorted(arguments))}) but the file takes none", root, "a xacro file"
        )
    return root


def known_root(root: Node) -> Node:
    """The root, if it is of a format that is read. Raises DescriptionError."""
    if root.tag in ("robot", "sdf", "gazebo", "mujoco"):
        return root
    raise fault(f"the document is a <{root.tag[:60]}>", root, "<robot> (URDF, xacro), <sdf> or <mujoco>")
