"""Loads a `Model` or a `World` from a path or a text.

All formats go through the same steps: *find* the document, also through a launch file, and parse it; *expand* its
xacro; *read* it with the reader of its format, which expands includes, checks what it reads and repairs faults on
request; and add source, warnings and repairs to the result.  Each format's package offers ``read_model_document`` and
``read_world_document``.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from roboyard.description.model import Model, Repair, World
from roboyard.description.reader_context import ReaderContext
from roboyard.description.resources import Resources, expand_home
from roboyard.description.xml import MAX_CHARACTERS, XmlNode, parse_xml
from roboyard.description.xml_values import error_at
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
    """Read a robot or other model from URDF, xacro, SDF or MJCF, or from an XML launch file that names it.

    Args:
        path_or_text: A file, or the XML text itself (it starts with ``<``).
        search: Folders with packages and models that the description refers to; see `Resources`.
        arguments: Values for ``<xacro:arg>``, and for ``<arg>`` of launch files.
        name: Name of the model instead of the file's.
        repair: Repair faults where possible, such as a physically impossible inertia, instead of rejecting the file;
            `Model.repairs` lists each repair.

    Returns:
        The model; `Model.warnings` lists everything that was ignored or guessed, with file and line.

    Raises:
        DescriptionError: The file cannot be read, or the description is invalid; the message states the fault and its
            location.
    """
    context = _make_context(search, repair=repair)
    return _load(context, path_or_text, arguments, lambda reader, root: reader.read_model(context, root, name))


class ModelLoader:
    """Loads the models of one description file, and reads the file only once for each set of arguments.

    All users of the model in one run share one loader.  The loader caches the first result; to see a file that changed
    since, make a new loader.

    Args:
        path: The description file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._models: dict[tuple[tuple[tuple[str, str], ...], bool], Model] = {}

    def load(self, arguments: Mapping[str, str] | None = None, *, repair: bool = False) -> Model:
        """Return the model for these arguments, which are those of `load_model`.

        Args:
            arguments: As in `load_model`.
            repair: As in `load_model`.

        Raises:
            DescriptionError: As `load_model`; then no model is cached.
        """
        values = tuple(sorted((arguments or {}).items()))
        model = self._models.get((values, repair))
        if model is None:
            model = load_model(self.path, arguments=dict(values), repair=repair)
            self._models[values, repair] = model
            if repair and not model.repairs:  # without a repair, a strict reading gives the same model
                self._models[values, False] = model
        return model


def diagnose_model(
    path_or_text: str | os.PathLike[str],
    *,
    search: Sequence[str | os.PathLike[str]] = (),
    arguments: Mapping[str, str] | None = None,
) -> tuple[tuple[DescriptionError, ...], tuple[Repair, ...]]:
    """Find all faults of a model: those that cannot be repaired, and those that `repair` would repair.

    Reading continues after each fault as far as the format's reader can: in URDF from link to link, joint to joint and
    block to block; in SDF also from model to model, including nested and included ones; in MJCF from element to
    element. Faults that only follow from another fault are omitted where this can be determined.

    Args:
        path_or_text: As in `load_model`.
        search: As in `load_model`.
        arguments: As in `load_model`.
    """
    return _diagnose(
        path_or_text, search, arguments, lambda context, reader, root: reader.read_model(context, root, None)
    )


def diagnose_world(
    path_or_text: str | os.PathLike[str], *, search: Sequence[str | os.PathLike[str]] = ()
) -> tuple[tuple[DescriptionError, ...], tuple[Repair, ...]]:
    """Find all faults of a world; see `diagnose_model`."""
    return _diagnose(path_or_text, search, None, lambda context, reader, root: reader.read_world(context, root))


def _diagnose(
    path_or_text: str | os.PathLike[str],
    search: Sequence[str | os.PathLike[str]],
    arguments: Mapping[str, str] | None,
    read: Callable[[ReaderContext, _FormatReader, XmlNode], _Description],
) -> tuple[tuple[DescriptionError, ...], tuple[Repair, ...]]:
    context = _make_context(search, repair=True, collect_errors=True)
    try:
        _load(context, path_or_text, arguments, partial(read, context))
    except DescriptionError as error:
        if error not in context.errors:
            context.errors.append(error)
    return tuple(context.errors), context.repairs


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
        search: Folders with the models that the world includes; see `Resources`.
        arguments: Values for ``<xacro:arg>``.
        repair: As in `load_model`.

    Raises:
        DescriptionError: As `load_model`.
    """
    context = _make_context(search, repair=repair)
    return _load(context, path_or_text, arguments, lambda reader, root: reader.read_world(context, root))


class _FormatReader(NamedTuple):
    """Readers of one format; the last argument of `read_model` is an optional name of the model."""

    read_model: Callable[[ReaderContext, XmlNode, str | None], Model]
    read_world: Callable[[ReaderContext, XmlNode], World]


_Description = TypeVar("_Description", Model, World)


@dataclass(frozen=True)
class _Document:
    """Parsed document, with the arguments for its xacro; `source` is None for a text."""

    root: XmlNode
    source: Path | None
    arguments: Mapping[str, str]


def _load(
    context: ReaderContext,
    path_or_text: str | os.PathLike[str],
    arguments: Mapping[str, str] | None,
    read: Callable[[_FormatReader, XmlNode], _Description],
) -> _Description:
    """Load a description in all steps; `read` is the step of its format."""
    document = _find_document(context, path_or_text, arguments or {})
    root = require_known_root(_expand_xacro(context, document))
    description = read(_select_reader(root), root)
    return replace(description, source=document.source, warnings=context.warnings, repairs=context.repairs)


def _select_reader(root: XmlNode) -> _FormatReader:
    """Return the readers of the document's format, imported only here: most processes use one format."""
    match root.tag:
        case "robot":
            from roboyard.description.urdf import read_model_document, read_world_document
        case "mujoco":
            from roboyard.description.mjcf import read_model_document, read_world_document
        case _:
            from roboyard.description.sdf import read_model_document, read_world_document
    return _FormatReader(read_model_document, read_world_document)


def _make_context(
    search: Sequence[str | os.PathLike[str]], *, repair: bool, collect_errors: bool = False
) -> ReaderContext:
    for folder in search:
        if not expand_home(folder).is_dir():
            raise DescriptionError(f"the search folder {os.fspath(folder)!r} does not exist")
    return ReaderContext(
        Resources([Path(folder) for folder in search], os.environ), repair=repair, collect_errors=collect_errors
    )


def _find_document(
    context: ReaderContext, path_or_text: str | os.PathLike[str], arguments: Mapping[str, str]
) -> _Document:
    """Find and parse the document; for a launch file, the document that it names."""
    document = _parse_document(context, path_or_text, arguments)
    if document.root.tag != "launch":
        return document
    file, file_arguments = find_robot_description(document.root, context.resources, arguments)
    document = _parse_document(context, file, file_arguments)
    if document.root.tag == "launch":
        raise error_at("robot_description is a launch file", document.root, "a xacro or URDF file")
    return document


def _parse_document(
    context: ReaderContext, path_or_text: str | os.PathLike[str], arguments: Mapping[str, str]
) -> _Document:
    source = None
    if isinstance(path_or_text, str) and path_or_text.lstrip("\ufeff \t\r\n").startswith("<"):
        root, warnings = parse_xml(path_or_text, "<text>")
    else:
        source, data = read_file(path_or_text)
        root, warnings = parse_xml(data, str(path_or_text))
    context.add_warnings(warnings)
    return _Document(root, source, arguments)


def load_srdf_document(path: str | os.PathLike[str]) -> XmlNode:
    """Read the XML of an SRDF, which adds semantic data to a URDF; a ``.srdf.xacro`` is expanded.

    Raises:
        DescriptionError: It cannot be read, or is not an SRDF.
    """
    context = _make_context((), repair=False)
    source, data = read_file(path, (".srdf", ".xacro"))
    root, _ = parse_xml(data, str(path))
    if root.tag != "robot":
        raise error_at(f"the document is a <{root.tag[:60]}>, not an SRDF", root, "<robot>")
    from roboyard.description.xacro import expand, is_xacro

    return expand(context, root, {}) if is_xacro(root, source) else root


def read_file(
    file: str | os.PathLike[str], extensions: tuple[str, ...] = _EXTENSIONS, formats: str = _FORMATS
) -> tuple[Path, bytes]:
    """Return path and bytes of a description file. Raises DescriptionError with the reason if it is not usable."""
    file_name = os.fspath(file)
    if not file_name.strip() or "\x00" in file_name:
        raise DescriptionError("the file name is empty or not a path", valid=formats)
    path = expand_home(file_name)
    try:
        if path.is_dir():
            raise DescriptionError("this is a folder", location=file_name, valid=f"{formats} in it")
        if not path.exists():
            raise DescriptionError("no such file", location=file_name[:300], valid=formats)
        if not path.is_file():
            raise DescriptionError("this is not a regular file", location=file_name, valid=formats)
        if path.suffix == ".py":
            raise DescriptionError(
                "a Python launch file is a program and is not executed",
                location=file_name,
                valid="the xacro or URDF file it loads",
            )
        if not path.name.lower().endswith(extensions):
            raise DescriptionError(f"unknown extension '{path.suffix}'", location=file_name, valid=formats)
        if path.stat().st_size > MAX_CHARACTERS:
            raise DescriptionError(
                f"the file has {path.stat().st_size} bytes", location=file_name, valid=f"at most {MAX_CHARACTERS}"
            )
        return path, path.read_bytes()
    except OSError as error:
        raise DescriptionError(f"cannot be read: {error.strerror}", location=file_name[:300]) from None


def _expand_xacro(context: ReaderContext, document: _Document) -> XmlNode:
    from roboyard.description.xacro import expand, is_xacro

    root, arguments = document.root, document.arguments
    if is_xacro(root, document.source):
        expanded = expand(context, root, arguments)
        if root.tag in ("robot", "root") and not expanded.children_with_tag("link", "joint"):
            raise error_at("the file contains no robot, only macros and properties", root, "a file that uses them")
        return expanded
    if arguments:
        raise error_at(f"the file takes no arguments, got {', '.join(sorted(arguments))}", root, "a xacro file")
    return root


def require_known_root(root: XmlNode) -> XmlNode:
    """Return the root if its format is supported. Raises DescriptionError."""
    if root.tag in ("robot", "sdf", "gazebo", "mujoco"):
        return root
    raise error_at(
        f"the document is a <{root.tag[:60]}>, not an SRDF", root, "<robot> (URDF, xacro), <sdf> or <mujoco>"
    )


_PARAMETER: Final = "robot_description"
_SUBSTITUTION: Final = re.compile(r"\$\(([^()]*)\)")
_COMMAND: Final = re.compile(r"^\$\(command\s+(.*)\)$", re.DOTALL)
_XACRO: Final = "xacro"


def find_robot_description(
    root: XmlNode, resources: Resources, launch_arguments: Mapping[str, str]
) -> tuple[Path, dict[str, str]]:
    """Find the description that a launch file loads, and its arguments.

    Args:
        root: The ``<launch>``.
        resources: Finds packages.
        launch_arguments: Values of its ``<arg>``; other names are passed to the xacro file.

    Raises:
        DescriptionError: The file does not set ``robot_description``, or in an unsupported way.
    """
    values = dict(launch_arguments)
    declared = set()
    for node in root.walk():
        if node.tag in ("arg", "let") and node.get("name"):
            declared.add(node.get("name"))
            text = node.get("value") or node.get("default")
            if node.get("name") not in values and (text or "default" in node.attributes):
                values[node.get("name")] = _substitute(text, node, resources, values)
        elif node.tag == "param" and node.get("name").strip("/") == _PARAMETER:
            path, arguments = _read_parameter(node, resources, values)
            return path, {**{key: value for key, value in launch_arguments.items() if key not in declared}, **arguments}
    raise error_at(
        f"the launch file does not set {_PARAMETER}",
        root,
        "the launch file, or the xacro file, that describes the robot",
    )


def _read_parameter(node: XmlNode, resources: Resources, values: Mapping[str, str]) -> tuple[Path, dict[str, str]]:
    command = node.get("command")
    if not command and (found := _COMMAND.match(node.get("value").strip())):
        command = found[1].strip().strip("'\"")
    if command:
        try:
            words = shlex.split(_substitute(command, node, resources, values))
        except ValueError as error:
            raise error_at(f"cannot parse the command: {error}", node, "xacro FILE name:=value") from None
        if not words or Path(words[0]).name not in (_XACRO, "xacro.py", "cat"):
            raise error_at(
                f"{_PARAMETER} is the output of the unsupported command '{command[:100]}'",
                node,
                "xacro FILE name:=value",
            )
        files = [word for word in words[1:] if ":=" not in word and not word.startswith("-")]
        arguments = dict(word.split(":=", 1) for word in words[1:] if ":=" in word)
    else:
        files, arguments = [_substitute(node.get("textfile"), node, resources, values)], {}
    if len(files) != 1 or not files[0]:
        raise error_at(
            f"{_PARAMETER} is not loaded from a file", node, "command='$(find xacro)/xacro FILE', or textfile=FILE"
        )
    return Path(files[0]), arguments


def _substitute(text: str, node: XmlNode, resources: Resources, values: Mapping[str, str]) -> str:
    """Replace all ``$(…)`` in the text, innermost first. Raises DescriptionError."""

    def replace_match(match: re.Match[str]) -> str:
        name, _, operand = match[1].strip().partition(" ")
        substitute = _SUBSTITUTES.get(name)
        if substitute is None:
            raise error_at(
                f"unknown substitution $({match[1][:60]})",
                node,
                ", ".join(f"$({keyword} …)" for keyword in _SUBSTITUTES),
            )
        return substitute(operand.strip(), node, resources, values)

    for _ in range(10):
        text, count = _SUBSTITUTION.subn(replace_match, text)
        if not count:
            break
    return text


def _find_package(operand: str, node: XmlNode, resources: Resources, values: Mapping[str, str]) -> str:
    if operand == _XACRO:
        return _XACRO
    folder = resources.find_package(operand, node.file)
    if folder is None:
        raise error_at(
            f"package '{operand[:60]}' not found", node, "a package in ROS_PACKAGE_PATH or AMENT_PREFIX_PATH"
        )
    return str(folder)


def _argument_value(operand: str, node: XmlNode, resources: Resources, values: Mapping[str, str]) -> str:
    if operand not in values:
        argument_names = ", ".join(sorted(values)) or "none"
        raise error_at(
            f"argument '{operand[:60]}' has no value", node, f"a value for it; arguments with a value: {argument_names}"
        )
    return values[operand]


def _environment_value(operand: str, node: XmlNode, resources: Resources, values: Mapping[str, str]) -> str:
    name, _, default = operand.partition(" ")
    return os.environ.get(name, default.strip())


def _launch_folder(operand: str, node: XmlNode, resources: Resources, values: Mapping[str, str]) -> str:
    return str(Path(node.file).parent)


_Substitute = Callable[[str, XmlNode, Resources, Mapping[str, str]], str]
_SUBSTITUTES: Final[dict[str, _Substitute]] = {
    "find": _find_package, "find-pkg-share": _find_package, "arg": _argument_value, "var": _argument_value,
    "env": _environment_value, "optenv": _environment_value, "dirname": _launch_folder,
}  # fmt: skip
