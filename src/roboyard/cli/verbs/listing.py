"""``roboyard list``: what there is to choose from, and what is running."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.grammar import JsonOption

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Kind(enum.StrEnum):
    """What can be listed."""

    ROBOTS = "robots"
    WORLDS = "worlds"
    FURNITURE = "furniture"
    SCENARIOS = "scenarios"
    NODES = "nodes"
    SENSORS = "sensors"
    RUNS = "runs"


def list_things(
    kind: Annotated[
        Kind | None,
        typer.Argument(metavar="[KIND]", help="robots, worlds, furniture, scenarios, nodes, sensors or runs."),
    ] = None,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Of a node: show its topics and parameters.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """What there is by name, and which runs are live."""
    from roboyard.cli.terminal import columns, emit, heading, say

    if name is not None:
        _show_node(kind, name, json)
        return
    kinds = [kind] if kind else [each for each in Kind if each not in (Kind.NODES, Kind.SENSORS, Kind.FURNITURE)]
    found = {each.value: _entries(each) for each in kinds}
    if json:
        emit(found)
        return
    shown = {name: entries for name, entries in found.items() if entries or kind}
    for number, (name, entries) in enumerate(shown.items()):
        if len(shown) > 1:
            heading(("\n" if number else "") + name)
        columns([(("  " if len(shown) > 1 else "") + e["name"], _sentence(e["summary"])) for e in entries])
        if not entries:
            say("none")


def _show_node(kind: Kind | None, name: str, as_json: bool) -> None:
    from roboyard.cli.terminal import emit, fields, heading, say, table
    from roboyard.errors import InputError

    if kind is not Kind.NODES:
        raise InputError(
            f"list {kind.value if kind else ''}: unexpected name {name!r}", valid="a name only after `list nodes`"
        )
    from roboyard.scenarios.source_docs import describe_node

    node = describe_node(name)
    if as_json:
        emit({"node": node})
        return
    fields([
        ("node", node.name), ("class", node.class_name), ("", node.summary), *node.interfaces,
        ("resources", ", ".join(node.resources) or None), *(("", text) for text in node.details),
    ])  # fmt: skip
    if not node.parameters:
        say("\nno parameters")
        return
    heading("\nparameters")
    rows = [(row.key, row.default, "yes" if row.runtime else "no", row.expected, row.doc) for row in node.parameters]
    table(("name", "default", "runtime", "must be", "meaning"), rows)


def _entries(kind: Kind) -> list[dict[str, Any]]:
    if kind is Kind.RUNS:
        from roboyard.bus.socket import live_runs

        return [{"name": run.name, "summary": f"pid {run.pid}", "pid": run.pid} for run in live_runs()]
    if kind is Kind.SENSORS:
        from roboyard.description.sensor_presets import PRESETS
        from roboyard.description.sensor_reader import plugin_sensor_kinds

        presets = [{"name": name, "summary": one.summary, "kind": one.kind} for name, one in PRESETS.items()]
        brought = sorted(plugin_sensor_kinds())
        return presets + [{"name": name, "summary": "a kind of another package", "kind": name} for name in brought]
    from roboyard.scenarios import catalog

    if kind is Kind.NODES:
        return [
            {"name": name, "summary": _first_line(_docstring(point)), "class": point.value}
            for name, point in catalog.NODES.entry_points().items()
        ]
    entries = {
        Kind.ROBOTS: catalog.robots,
        Kind.WORLDS: catalog.worlds,
        Kind.FURNITURE: catalog.furniture,
        Kind.SCENARIOS: catalog.scenarios,
    }[kind]()
    return [{"name": e.name, "summary": e.summary, "path": str(e.path), "origin": e.origin} for e in entries.values()]


def _docstring(point: EntryPoint) -> str | None:
    from roboyard.scenarios.catalog import node_class
    from roboyard.scenarios.source_docs import read_class_docstring

    found = read_class_docstring(point.module, point.attr)
    return node_class(point.name).__doc__ if found is None else found


def _sentence(text: str) -> str:
    """The first one; --json has the whole text."""
    return re.split(r"\.(?:\s|$)", text, maxsplit=1)[0]


def _first_line(text: str | None) -> str:
    return (text or "").strip().split("\n", 1)[0].partition("  in:")[0].rstrip()
