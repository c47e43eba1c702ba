"""``roboyard node``: who is on the bus."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from roboyard.cli.grammar import FileOption, JsonOption, RunOption, group

app = group("Nodes: list, info.")


@app.command("list")
def list_nodes(run: RunOption = None, file: FileOption = None, json: JsonOption = False) -> None:
    """All nodes, how they are and what they cost.

    Of a recording those that published.
    """
    from roboyard.cli.graph import nodes_of
    from roboyard.cli.lookup import look
    from roboyard.cli.terminal import emit, table

    with look(run, file) as source:
        nodes = nodes_of(source)
        live = source.live
    if json:
        emit({"nodes": nodes})
    elif live:
        rows = [(n["name"], n["class_name"], n["health"] or None, f"{_busy(n):.3f}", n["health_text"]) for n in nodes]
        table(("node", "class", "health", "callbacks [s]", ""), rows, right=("callbacks [s]",))
    else:
        table(("node", "publishes"), [(n["name"], ", ".join(n["publishes"])) for n in nodes])


@app.command("info")
def info(
    node: Annotated[str, typer.Argument(metavar="NODE", help="Its name, with or without the leading slash.")],
    run: RunOption = None,
    file: FileOption = None,
    json: JsonOption = False,
) -> None:
    """One node: what it offers, hears, takes and costs.

    Topics, services, actions, parameters, and the time of its callbacks.
    """
    from roboyard.cli.graph import node_of
    from roboyard.cli.lookup import look
    from roboyard.cli.terminal import emit

    with look(run, file) as source:
        found = node_of(source, node)
    if json:
        emit({"node": found})
    else:
        _show(found)


def _busy(node: dict[str, Any]) -> float:
    return float(sum(call["total"] for call in node["callbacks"]))


def _show(node: dict[str, Any]) -> None:
    from roboyard.cli.message_text import to_text
    from roboyard.cli.terminal import fields, say, table

    class_name, health = node.get("class_name"), node.get("health")
    fields(
        [
            ("node", node["name"]),
            ("class", class_name),
            ("health", f"{health} {node['health_text']}" if health else None),
        ]
    )
    for heading in ("publishes", "subscribes", "services", "actions"):
        if node.get(heading):
            say(f"\n{heading}:")
            for name in node[heading]:
                say(f"  {name}")
    if node.get("parameters"):
        say("\nparameters:")
        for name, value in node["parameters"].items():
            say(f"  {name}: {to_text(value)}")
    if node.get("callbacks"):
        say()
        rows = [
            (c["trigger"], c["count"], f"{c['total'] / c['count'] * 1e3:.3f}", f"{c['max'] * 1e3:.3f}")
            for c in node["callbacks"]
        ]
        table(("callback", "calls", "mean [ms]", "max [ms]"), rows, right=("calls", "mean [ms]", "max [ms]"))
