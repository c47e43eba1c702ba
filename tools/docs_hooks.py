"""Hooks of the documentation's build: pages of all nodes and commands, and the table of all metrics.

Each room that has nodes gets the page ``reference/nodes/ROOM.md``; ``reference/nodes/index.md`` lists all nodes. They
are made whenever the pages are built, so they say what the classes declare.

The table of metrics is part of ``docs/reference/metrics.md``; ``python tools/docs_hooks.py`` writes it there anew.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from roboyard.bringup import catalog
from roboyard.bringup.node_documentation import NodeDescription, describe_node
from roboyard.config import SchemaRow
from roboyard.evaluation.plugin import robot_metrics

FOLDER = "reference/nodes"
METRICS_PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "metrics.md"
METRICS_HEADER = "| metric | unit | better | meaning |"
INTERFACE_NAMES = {"in": "Subscribes to", "out": "Publishes", "action": "Action", "service": "Service"}
RUNTIME_MARK = "*(runtime)*"
INTRODUCTION = """Every node that a scenario or a robot may name, by room. `roboyard list nodes NAME` shows the same for
one node, `roboyard schema node NAME` prints the JSON Schema of its parameters, and `roboyard param describe` shows the
parameters of a running node.

Names of topics are relative to the robot's namespace, `~` stands for the node's own name. Parameters are given in the
[scenario](../../rooms/scenarios.md) or in the robot's file. Numbers may carry a unit, such as `500 mm`. *Runtime* marks
parameters that may change while the node runs. A *resource* is an object that a node needs and that does not travel
over the bus; the run provides it.
"""
COMMAND_PAGE = "reference/commands.md"
COMMANDS_INTRODUCTION = """Every command of the program with its arguments and options, as `roboyard COMMAND --help`
prints them. [Command line](cli.md) explains their use, the exit codes and the output.
"""


def make_node_pages() -> dict[str, str]:
    """Return the pages' texts by path below the folder of the pages."""
    rooms: dict[str, list[NodeDescription]] = {}
    for name in catalog.NODES.names():
        node = describe_node(name)
        rooms.setdefault(node.class_name.split(".")[1], []).append(node)
    pages = {f"{FOLDER}/{room}.md": _make_page(room, nodes) for room, nodes in sorted(rooms.items())}
    lines = ["# Nodes", "", INTRODUCTION]
    for room, nodes in sorted(rooms.items()):
        lines += [f"## {room}", "", "| node | purpose |", "| --- | --- |"]
        lines += [_make_row((f"[`{node.name}`]({room}.md#{node.name})", _escape(node.summary))) for node in nodes]
        lines.append("")
    return {f"{FOLDER}/index.md": "\n".join(lines), **pages}


def _make_page(room: str, nodes: Iterable[NodeDescription]) -> str:
    lines = [f"# Nodes of {room}", ""]
    tables: dict[tuple[SchemaRow, ...], str] = {}
    for node in nodes:
        lines += [f"## {node.name}", "", _escape(node.summary), ""]
        interfaces = [(INTERFACE_NAMES.get(kind, kind.capitalize()), _escape(text)) for kind, text in node.interfaces]
        if node.resources:
            interfaces.append(("Resources", ", ".join(f"`{one}`" for one in node.resources)))
        interfaces.append(("Class", f"`{node.class_name}`"))
        lines += [*(f"- **{kind}**: {text}" for kind, text in interfaces), ""]
        for paragraph in node.details:
            lines += [_escape(paragraph), ""]
        if not node.parameters:
            lines += ["It has no parameters.", ""]
        elif node.parameters in tables:
            lines += [f"Its parameters are those of [{tables[node.parameters]}](#{tables[node.parameters]}).", ""]
        else:
            tables[node.parameters] = node.name
            lines += [*_make_parameter_table(node.parameters), ""]
    return "\n".join(lines)


def _make_parameter_table(rows: Iterable[SchemaRow]) -> list[str]:
    lines = ["| parameter | default | values | meaning |", "| --- | --- | --- | --- |"]
    for row in rows:
        default = f"`{row.default}`" if row.default not in ("", "required") else row.default
        expected = _escape(row.expected) + (f" {RUNTIME_MARK}" if row.runtime else "")
        lines.append(_make_row((f"`{row.key}`", default, expected, _escape(row.doc))))
    return lines


def _make_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _escape(text: str) -> str:
    """Text in which only code in backticks is markup."""
    parts = re.split(r"(``.+?``|`[^`]+`)", text)
    escaped = [part if i % 2 else re.sub(r"([<*])", r"\\\1", part) for i, part in enumerate(parts)]
    return "".join(escaped)


def make_command_page() -> tuple[str, str]:
    """Return the path and the text of the page of all commands, made from the program itself."""
    import typer

    from roboyard.cli.app import make_app

    program = typer.main.get_command(make_app())
    lines = ["# Commands", "", COMMANDS_INTRODUCTION]
    for words, command in iterate_commands(program):
        lines += [f"## {words}", "", *_make_command_section(words, command), ""]
    return COMMAND_PAGE, "\n".join(lines)


def iterate_commands(command: Any, words: tuple[str, ...] = ()) -> Iterable[tuple[str, Any]]:
    """Yield every command below a group with its words: ("topic echo", command)."""
    for name, inner in command.commands.items():
        if hasattr(inner, "commands"):
            yield from iterate_commands(inner, (*words, name))
        else:
            yield " ".join((*words, name)), inner


def _make_command_section(words: str, command: Any) -> list[str]:
    paragraphs = [" ".join(text.split()) for text in re.split(r"\n\s*\n", command.help or "")]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    usage = " ".join(["roboyard", words, *(one.metavar or one.name.upper() for one in arguments)])
    lines = [f"`{usage}`"]
    for paragraph in paragraphs:
        lines += ["", _escape(paragraph)]
    if arguments:
        lines += ["", "| argument | meaning |", "| --- | --- |"]
        lines += [_make_row((f"`{one.metavar or one.name.upper()}`", _escape(one.help or ""))) for one in arguments]
    if options:
        lines += ["", "| option | default | meaning |", "| --- | --- | --- |"]
        lines += [_make_row((_format_names(one), _format_default(one), _escape(one.help or ""))) for one in options]
    return lines


def _format_names(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    return names if option.metavar is None else f"{names} `{option.metavar}`"


def _format_default(option: Any) -> str:
    if option.required:
        return "required"
    return "" if option.default in (None, False, "") or callable(option.default) else f"`{option.default}`"


def on_files(files, config):
    """For mkdocs: add the pages to those of the folder ``docs``."""
    from mkdocs.structure.files import File

    for path, text in {**make_node_pages(), **dict([make_command_page()])}.items():
        files.append(File.generated(config, path, content=text))
    return files


def make_metric_table() -> list[str]:
    """Return the lines of the table of all metrics of a robot, as their collectors declare them."""
    rows = (
        (f"`{metric.name}`", "share" if metric.unit == "ratio" else metric.unit, metric.better, metric.doc)
        for metric in robot_metrics()
    )
    return [METRICS_HEADER, "| --- | --- | --- | --- |", *map(_make_row, rows)]


def with_metric_table(page: str) -> str:
    """Return the text of the page of metrics with its table as the collectors declare it."""
    lines = page.splitlines()
    start = lines.index(METRICS_HEADER)
    end = next((i for i in range(start, len(lines)) if not lines[i].startswith("|")), len(lines))
    return "\n".join([*lines[:start], *make_metric_table(), *lines[end:]]) + "\n"


if __name__ == "__main__":
    METRICS_PAGE.write_text(with_metric_table(METRICS_PAGE.read_text("utf-8")), "utf-8")
