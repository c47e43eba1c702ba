"""``roboyard node``: nodes of a live run or a recording."""

from __future__ import annotations

from typing import Any

from roboyard.cli.app import command_group
from roboyard.cli.options import FileOption, JsonOption, NodeArgument, RunOption

app = command_group("Nodes: list, info.")


@app.command("list")
def list_command(run: RunOption = None, file: FileOption = None, json: JsonOption = False) -> None:
    """List all nodes with their health and callback times.

    Of a recording, list the nodes that published.
    """
    from roboyard.cli.graph import list_nodes
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_result

    with open_source(run, file) as source:
        nodes = list_nodes(source)
    print_result({"nodes": nodes}, json, _print_live_nodes if source.is_live else _print_recorded_nodes)


@app.command("info")
def info(node: NodeArgument, run: RunOption = None, file: FileOption = None, json: JsonOption = False) -> None:
    """Show the topics, services and parameters of a node.

    Of a live run, also its actions and the times of its callbacks.
    """
    from roboyard.cli.graph import find_node
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_result

    with open_source(run, file) as source:
        found = find_node(source, node)
    print_result({"node": found}, json, lambda result: _print_node(result["node"]))


def _print_live_nodes(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_table

    rows = [
        (n["name"], n["class_name"], n["health"] or None, f"{_callback_time(n):.3f}", n["health_text"])
        for n in result["nodes"]
    ]
    print_table(("node", "class", "health", "callbacks [s]", ""), rows, right=("callbacks [s]",))


def _print_recorded_nodes(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_table

    print_table(("node", "publishes"), [(n["name"], ", ".join(n["publishes"])) for n in result["nodes"]])


def _callback_time(node: dict[str, Any]) -> float:
    return float(sum(callback["total"] for callback in node["callbacks"]))


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
