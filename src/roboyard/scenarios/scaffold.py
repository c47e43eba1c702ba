"""Creates new robots, worlds, scenarios and nodes from templates."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from roboyard.config import schema_comment
from roboyard.errors import InputError
from roboyard.scenarios.run_folder import RunFolder, make_write_error

Kind = Literal["robot", "world", "scenario", "node"]
ROBOT: Final = "robot"
WORLD: Final = "world"
SCENARIO: Final = "scenario"
NODE: Final = "node"

_TEMPLATES: Final[Mapping[str, Mapping[str, str]]] = {
    ROBOT: {"robot.yaml.jinja": "{name}/{name}.yaml", "robot.urdf.xacro.jinja": "{name}/{name}.urdf.xacro"},
    WORLD: {"world.sdf.jinja": "{name}.sdf"},
    SCENARIO: {"scenario.yaml.jinja": "{name}.yaml"},
    NODE: {"node.py.jinja": "{name}.py"},
}
"""Templates of each kind, with the paths of the files made from them."""


@dataclass(frozen=True, slots=True)
class CreatedFiles:
    """Files that were created.

    Attributes:
        kind: robot, world, scenario or node.
        name: Name of what was created.
        files: Paths relative to the folder; the first is the one that other files name.
    """

    kind: Kind
    name: str
    files: tuple[Path, ...]


def create_from_template(
    kind: Kind,
    name: str,
    folder: str | Path = ".",
    *,
    robot: str = "rover",
    world: str = "arena",
    node: str = "",
) -> CreatedFiles:
    """Create the files of a new robot, world, scenario or node.

    Args:
        kind: What to create.
        name: A word; it also names a node's class: `wall_follower` gives `WallFollower`.
        folder: Folder in which the files are created.
        robot: Robot of a scenario: a name, or a path relative to the folder.
        world: World of a scenario, likewise.
        node: Node that drives the robot of a scenario: a name, `module:Class` or `file.py:Class`; "": an operator
            script.

    Raises:
        InputError: The name is not valid, or one of the files exists already.
        RunError: The files cannot be written.
    """
    import jinja2

    if kind not in _TEMPLATES:
        raise InputError(f"a new {kind}", valid=", ".join(_TEMPLATES))
    _check_name(kind, name)
    variables: dict[str, Any] = {
        "name": name,
        "title": re.sub(r"[_-]", " ", name).capitalize(),
        "cls": _class_name(name),
        "robot": robot,
        "robot_name": _short_name(robot),
        "world": world,
        "node": node,
        "node_name": _short_name(node.partition(":")[0]),
        "schema_comment": schema_comment,
    }
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")), trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, undefined=jinja2.StrictUndefined, autoescape=False,  # noqa: S701 - no page
        variable_start_string="<<", variable_end_string=">>",
    )  # fmt: skip
    texts = {
        Path(path.format(name=name)): environment.get_template(template).render(variables)
        for template, path in _TEMPLATES[kind].items()
    }
    for path in texts:
        if (Path(folder) / path).exists():
            raise InputError(
                f"{path} is there already", location=f"new {kind}", valid="another name, or another folder"
            )
    for path, text in texts.items():
        target = Path(folder) / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise make_write_error(target.parent, error) from error
        RunFolder(target.parent).write_text(target, text)
    return CreatedFiles(kind, name, tuple(texts))


def _check_name(kind: str, name: str) -> None:
    joined = r"[a-z][a-z0-9]*(_[a-z0-9]+)*" if kind == NODE else r"[a-z][a-z0-9]*([_-][a-z0-9]+)*"
    if not re.fullmatch(joined, name) or len(name) > 60 or (kind == NODE and _is_python_keyword(name)):
        dash = "_" if kind == NODE else "_ or -"
        raise InputError(
            f"a {kind} cannot be called {name!r}", location=f"new {kind}",
            valid=f"small letters and digits, in words joined by {dash}, beginning with a letter"
            + (", no word of Python's own" if kind == NODE else ""),
        )  # fmt: skip


def _is_python_keyword(name: str) -> bool:
    """Return whether the name of a node's file or class is a keyword or a standard module of Python."""
    return keyword.iskeyword(name) or keyword.iskeyword(_class_name(name))


def _class_name(name: str) -> str:
    return "".join(word.capitalize() for word in re.split(r"[_-]", name))


def _short_name(path: str) -> str:
    """Return a word for a name or path: "my_bot" for "robots/my-bot/my-bot.yaml"."""
    return re.sub(r"\W+", "_", Path(path).name.partition(".")[0]) or "it"
