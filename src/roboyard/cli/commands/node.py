"""``roboyard node``: who is on the bus."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from roboyard.cli.app import FileOption, JsonOption, RunOption, command_group

app = command_group("Nodes: list, info.")


@app.command("list")
def list_command(run: RunOption = None, file: FileOption = None, json: JsonOption = False) -> None:
    """All nodes, how they are and what they cost.

    Of a recording those that published.
    """
    from roboyard.cli.graph import list_nodes
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_json, print_table

    with open_source(run, file) as source:
        nodes = list_nodes(source)
        live = source.is_live
    if json:
        print_json({"nodes": nodes})
    elif live:
        rows = [
            (n["name"], n["class_name"], n["health"] or None, f"{_callback_time(n):.3f}", n["health_text"])
            for n in nodes
        ]
        print_table(("node", "class", "health", "callbacks [s]", ""), rows, right=("callbacks [s]",))
    else:
        print_table(("node", "publishes"), [(n["name"], ", ".join(n["publishes"])) for n in nodes])


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
    from roboyard.cli.graph import find_node
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_json

    with open_source(run, file) as source:
        found = find_node(source, node)
    if json:
        print_json({"node": found})
    else:
        _print_node(found)


def _callback_time(node: dict[str, Any]) -> float:
    return float(sum(call["total"] for call in node["callbacks"]))


def _print_node(node: dict[str, Any]) -> None:
    from roboyard.cli.message_text import to_text
    from roboyard.cli.terminal import print_fields, print_line, print_table

    class_name, health = node.get("class_name"), node.get("health")
    print_fields(
        [
            ("node", node["name"]),
            ("class", class_name),
            ("health", f"{health} {node['health_text']}" if health else None),
        ]
    )
    for heading in ("publishes", "subscribes", "services", "actions"):
        if node.get(heading):
            print_line(f"\n{heading}:")
            for name in node[heading]:
                print_line(f"  {name}")
    if node.get("parameters"):
        print_line("\nparameters:")
        for name, value in node["parameters"].items():
            print_line(f"  {name}: {to_text(value)}")
    if node.get("callbacks"):
        print_line()
        rows = [
            (c["trigger"], c["count"], f"{c['total'] / c['count'] * 1e3:.3f}", f"{c['max'] * 1e3:.3f}")
            for c in node["callbacks"]
        ]
        print_table(("callback", "calls", "mean [ms]", "max [ms]"), rows, right=("calls", "mean [ms]", "max [ms]"))
