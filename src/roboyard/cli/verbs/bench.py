"""``roboyard bench``: the figures that Roboyard promises, measured here and now beside their peers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from roboyard.cli.grammar import JsonOption

if TYPE_CHECKING:
    from roboyard.cli.figures import Figure


def bench(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]…", help="engine, bus, …; default: all.")] = None,
    nightly: Annotated[bool, typer.Option("--nightly", help="Longer, with more repeats.")] = False,
    json: JsonOption = False,
) -> None:
    """Measure what is promised, beside its peers.

    Needs a source checkout: the benchmarks are files in its folder benchmarks/.

    Exit code 1 if a target is missed.
    """
    from roboyard.cli.figures import benchmarks, measure
    from roboyard.cli.terminal import emit, note

    figures: dict[str, list[Figure]] = {}
    for name, path in benchmarks(names or []).items():
        if not json:
            note(f"measuring {name} …")
        figures[name] = measure(path, nightly=nightly)
    missed = [figure.name for found in figures.values() for figure in found if figure.held is False]
    if json:
        shown = {name: [figure.to_dict() for figure in found] for name, found in figures.items()}
        emit({"figures": shown, "missed": missed})
    else:
        _show(figures)
    if missed:
        raise typer.Exit(1)


def _show(figures: dict[str, list[Figure]]) -> None:
    from roboyard.cli.terminal import table

    marks = {True: "✓", False: "✗", None: ""}
    rows = []
    for name, found in figures.items():
        for f in found:
            peer = None if f.peer is None else f"{f.peer} {number(f.peer_value)}"
            rows.append((f"{name}: {f.name}", number(f.value), f.unit, f.target, marks[f.held], peer, number(f.ratio)))
    table(("figure", "value", "unit", "target", "", "peer", "ratio"), rows, right=("value", "ratio"))


def number(value: float | None) -> str:
    """A measured value with four digits; "-" if there is none."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
