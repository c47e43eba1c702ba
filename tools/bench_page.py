"""The page of what benchmarks measured: figures, targets, peers, medians and spread, machines, commands."""

from __future__ import annotations

import ast
import json
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from roboyard.cli.benchmarks import format_number

DETAILS = 8
"""Lines of a benchmark's own explanations that are shown."""
TIME, RATE = re.compile(r"[nµm]?s( .*)?"), re.compile(r"(?!m/s|rad/s|°/s).*(/s|Hz)")
"""Units of which less, and of which more, is faster."""
INTRODUCTION = """# Benchmarks

Made by `make benchmarks` from what `roboyard bench` measured; nothing here is written by hand. Peers are measured in
the same run, on the same machine, unless their name says otherwise. With several runs, figures are medians, and beside
them stand the least and the largest; ✓ means that the target was met in each of them. A ratio above 1 says that ours is
that many times as fast, or as good.

<!-- no-run: measures for hours -->
```console
$ make benchmarks                              # all, one after the other
$ make benchmarks NAMES="bus ik" REPEATS=5     # only these sections of this page
$ make benchmarks NAMES=slam OPTIONS="--data DIR"
$ roboyard bench engine bus --against HEAD~1   # what a change did: both revisions in turn, ratios with their spread
```
"""


def page(store: Path, names: Sequence[str], folder: Path) -> str:
    """The whole page.

    Args:
        store: Folder of what was measured.
        names: Of all benchmarks, in the page's order.
        folder: Of the benchmarks.
    """
    found = {name: json.loads(file.read_text("utf-8")) for name in names if (file := store / f"{name}.json").is_file()}
    figures = {name: list(summed(one["runs"])) for name, one in found.items()}
    parts = [INTRODUCTION, *overview(figures), *machines(found)]
    waiting = [name for name in names if name not in found]
    if waiting:
        parts.append(f"Not measured yet: {', '.join(waiting)}.\n")
    parts += [section(name, one, figures[name], about(folder, name)) for name, one in found.items()]
    return "\n".join(parts)


def summed(runs: Sequence[Sequence[Mapping[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Figures of several runs as one list: medians, and between what they lie.

    Those of the first run count, and others in their order: a name may tell what was measured, too.
    """
    for place, figure in enumerate(runs[0]):
        same = [run[place] for run in runs if len(run) == len(runs[0])]
        values, peers = ([one[key] for one in same if one[key] is not None] for key in ("value", "peer_value"))
        ratios = [one for one in map(ratio, same) if one is not None]
        yield {
            **figure,
            "value": statistics.median(values) if values else None,
            "spread": (min(values), max(values)) if values and min(values) != max(values) else None,
            "peer_value": statistics.median(peers) if peers else None,
            "ratio": statistics.median(ratios) if ratios else None,
            "held": None if figure["held"] is None else all(one["held"] is not False for one in same),
        }


def ratio(figure: Mapping[str, Any]) -> float | None:
    """As the benchmark says, else how many times as fast ours is, where the unit tells."""
    ours, theirs, unit = figure["value"], figure["peer_value"], figure["unit"]
    if figure["ratio"] is not None or not ours or not theirs:
        return None if figure["ratio"] is None else float(figure["ratio"])
    return theirs / ours if TIME.fullmatch(unit) else ours / theirs if RATE.fullmatch(unit) else None


def overview(figures: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """Everything that has a peer, in one table."""
    rows = [
        f"| [{name}](#{name}) | {cell(one['name'])} | {measured(one)} | {cell(one['peer'])} | {theirs(one)} | "
        f"{format_number(one['ratio']) if one['ratio'] is not None else ''} |\n"
        for name, found in figures.items()
        for one in found
        if one["peer"]
    ]
    if rows:
        head = "| benchmark | figure | here | peer | there | ratio |\n| --- | --- | --- | --- | --- | --- |\n"
        yield f"## Beside peers\n\n{head}{''.join(rows)}"


def machines(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Each machine once, with what was measured on it."""
    kinds: dict[str, list[str]] = {}
    for name, one in found.items():
        kinds.setdefault(json.dumps(one["machine"], sort_keys=True), []).append(name)
    for text, names in kinds.items():
        here = json.loads(text)
        versions = ", ".join(f"{name} {version}" for name, version in sorted(here["versions"].items(), key=str))
        only = "" if len(kinds) == 1 else f" ({', '.join(names)})"
        about = f"{here['processor']}, {here['cores']} cores, {here['memory']}; {here['system']}"
        yield f"## Machine{only}\n\n{about}. {versions}.\n"


def section(name: str, one: Mapping[str, Any], figures: Sequence[Mapping[str, Any]], said: str) -> str:
    """A benchmark's own part."""
    count = len(one["runs"])
    runs = f"{count} runs of {one['seconds']} s" if count > 1 else f"one run of {one['seconds']} s"
    busy = f"; others kept {one['busy']} cores busy before" if "busy" in one else ""
    lines = [
        f"## {name}\n\n{said}\n\n<!-- no-run: measures -->\n```console\n$ {one['command']}\n```\n",
        f"Commit {one['commit']}, {runs}{busy}.\n",
        "| figure | measured | target | | peer | ratio |\n| --- | --- | --- | --- | --- | --- |",
    ]
    for figure in figures:
        mark = {True: "✓", False: "✗", None: ""}[figure["held"]]
        peer = f"{cell(figure['peer'])}: {theirs(figure)}" if figure["peer"] else ""
        shown = format_number(figure["ratio"]) if figure["ratio"] is not None else ""
        target = cell(figure["target"] or "")
        lines.append(f"| {cell(figure['name'])} | {measured(figure)} | {target} | {mark} | {peer} | {shown} |")
    lines.append("")
    lines += [f"- Left out: {cell(line)}" for line in one["skipped"]]
    lines += [f"- {cell(line)}" for line in one["details"][:DETAILS]]
    more = len(one["details"]) - DETAILS
    if more > 0:
        lines.append(f"- … and {more} lines more, in [{name}.json](benchmarks/{name}.json)")
    return "\n".join(lines).rstrip() + "\n"


def measured(figure: Mapping[str, Any]) -> str:
    """The value with its unit, and between what it lay."""
    between = (
        f" ({format_number(figure['spread'][0])} … {format_number(figure['spread'][1])})" if figure["spread"] else ""
    )
    return f"{format_number(figure['value'])}{unit(figure)}{between}"


def theirs(figure: Mapping[str, Any]) -> str:
    """The peer's value, or why there is none."""
    if figure["peer_value"] is None:
        return f"not measured: {cell(figure['missing'])}" if figure["missing"] else "not measured"
    return f"{format_number(figure['peer_value'])}{unit(figure)}"


def unit(figure: Mapping[str, Any]) -> str:
    """With the space before it."""
    return f" {cell(figure['unit'])}" if figure["unit"] else ""


def cell(text: str) -> str:
    """Text that is no markup: of tables, links, headings."""
    return re.sub(r"([|<*_\[\]`])", r"\\\1", " ".join(text.split()))


def about(folder: Path, name: str) -> str:
    """What a benchmark says of itself."""
    said = ast.get_docstring(ast.parse((folder / f"{name.replace('-', '_')}.py").read_text("utf-8"))) or ""
    return re.sub(r"``(.+?)``", r"`\1`", said)
