"""Benchmarks of a source checkout: finding them, running them, and printing their figures."""

from __future__ import annotations

import importlib.util
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import roboyard
from roboyard.cli.terminal import print_heading, print_line, style, terminal_width
from roboyard.errors import InputError, RunError, UnknownNameError

INSTALL_COMMAND = "pip install 'roboyard[bench]'"
"""Command that installs the reference implementations."""
_TARGET = re.compile(r"\s*(ratio)?\s*(>=|<=|>|<)\s*([-+.\deE]+)\s*")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": lambda value, bound: value >= bound,
    "<=": lambda value, bound: value <= bound,
    ">": lambda value, bound: value > bound,
    "<": lambda value, bound: value < bound,
}


@dataclass(frozen=True, slots=True)
class BenchmarkFigure:
    """One measured figure.

    Attributes:
        name: Name of the figure.
        value: Value in ``unit``; None if it could not be measured.
        unit: Unit: SI or a rate.
        target: Target: ">= 300000", "<= 0.3", "ratio >= 6" for ``ratio``, or several separated by commas.
        peer: Reference implementation.
        peer_value: Value of the reference in the same unit; None if it could not be measured.
        ratio: Ratio of the two, as the benchmark defines it.
        missing: Reason why the reference could not be measured.
    """

    name: str
    value: float | None
    unit: str = ""
    target: str | None = None
    peer: str | None = None
    peer_value: float | None = None
    ratio: float | None = None
    missing: str | None = None

    @property
    def is_target_met(self) -> bool | None:
        """Whether every target with a value is met; None if there is no target."""
        comparisons = []
        for part in (self.target or "").split(","):
            match = _TARGET.fullmatch(part)
            value = self.value if match is None or match[1] is None else self.ratio
            if match is not None and value is not None:
                comparisons.append(_COMPARE[match[2]](value, float(match[3])))
        return all(comparisons) if comparisons else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "held": self.is_target_met}


@dataclass(slots=True)
class BenchmarkResult:
    """Result of one benchmark file.

    Attributes:
        figures: Measured figures.
        skipped: Parts that were left out since a package is missing: name and reason.
        details: Lines that explain the figures.
    """

    figures: list[BenchmarkFigure] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    details: list[str] = field(default_factory=list)


def find_benchmarks(names: Sequence[str]) -> dict[str, Path]:
    """Return the files of benchmarks by name; all if ``names`` is empty.

    Raises:
        InputError: There is no source checkout.
        UnknownNameError: There is no such benchmark.
    """
    folders = [Path("benchmarks"), Path(roboyard.__file__).resolve().parents[2] / "benchmarks"]
    folder = next((candidate for candidate in folders if candidate.is_dir()), None)
    if folder is None:
        raise InputError("there is no folder benchmarks/", valid="a clone of Roboyard's repository")
    found = {path.stem.replace("_", "-"): path for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_")}
    for name in names:
        if name not in found:
            raise UnknownNameError(f"no benchmark {name!r}", location=str(folder), valid=", ".join(found))
    return {name: found[name] for name in names} if names else found


def run_benchmark(path: Path, *, nightly: bool, **options: Any) -> BenchmarkResult:
    """Run a benchmark file.

    The file has a function ``run(nightly)``, or a list ``PARTS`` of several. Each returns figures: a list of mappings,
    or a mapping with this list as "figures" and optional explaining lines as "details". A part gets the given options
    for which it has parameters: ``run(nightly, folder)`` reads files. A part that needs a package which is not
    installed is skipped; the other parts run.

    Raises:
        RunError: It fails, or returns no figures.
    """
    found = BenchmarkResult()
    try:
        parts = _benchmark_parts(_load_module(path))
    except ImportError as error:
        found.skipped.append((path.stem, str(error)))
        return found
    for part in parts:
        try:
            parameters = signature(part).parameters
            output = part(nightly, **{name: value for name, value in options.items() if name in parameters})
            if isinstance(output, Mapping):
                found.details += [str(line) for line in output.get("details", ())]
            entries: Iterable[Mapping[str, Any]] = output["figures"] if isinstance(output, Mapping) else output
            found.figures += [_make_figure(entry) for entry in entries]
        except ImportError as error:
            found.skipped.append((_describe_part(part, path), str(error)))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise RunError(f"cannot be measured: {type(error).__name__}: {error}", location=str(path)) from error
    return found


def _load_module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"roboyard_benchmark_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise RunError("the file is not a Python module", location=str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses need their module there
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise RunError(f"the file is not valid Python: {error.msg}", location=f"{path}:{error.lineno}") from error
    return module


def _benchmark_parts(module: ModuleType) -> Sequence[Callable[..., Any]]:
    parts = getattr(module, "PARTS", None) or [getattr(module, "run", None)]
    if not all(callable(part) for part in parts):
        raise RunError(
            "the file has no function run(nightly)", location=str(module.__file__), valid="run, or PARTS: several"
        )
    return list(parts)


def _describe_part(part: Callable[..., Any], path: Path) -> str:
    """Return the name of a part from its docstring."""
    first = (part.__doc__ or "").strip().split("\n", 1)[0].rstrip(".")
    return f"{path.stem}: {first[:1].lower()}{first[1:]}" if first else path.stem


def _make_figure(entry: Mapping[str, Any]) -> BenchmarkFigure:
    values = {key: entry[key] for key in BenchmarkFigure.__dataclass_fields__ if key in entry}
    if isinstance(values.get("target"), (int, float)):
        values["target"] = f"ratio >= {values['target']:g}"
    if "limit" in entry:
        values["target"] = ", ".join(filter(None, [f"<= {entry['limit']:g}", values.get("target")]))
    return BenchmarkFigure(**{"value": None, **values})


_MARKS = {True: ("✓", "32"), False: ("✗", "31"), None: ("·", "")}
_MARGIN = 4
_MIN_NAME_WIDTH = 24
"""Minimum width of the column of names."""
FigureRow = tuple[str, str, str, str]
"""Name, value, unit, and remark."""


def print_figures(figures: Mapping[str, Sequence[BenchmarkFigure]]) -> None:
    """Print the figures of each benchmark under its name."""
    rows = [row for found in figures.values() for figure in found for row in _figure_rows(figure)]
    if not rows:
        return
    sizes = [max(len(row[column]) for row in rows) for column in range(4)]
    names = max(_MIN_NAME_WIDTH, min(sizes[0], terminal_width() - _MARGIN - sum(sizes[1:]) - 5))
    for number, (name, found) in enumerate(figures.items()):
        if found:
            print_heading(("\n" if number else "") + name)
        for figure in found:
            mark, color = _MARKS[figure.is_target_met]
            for index, row in enumerate(_figure_rows(figure)):
                head = f"  {style(mark, color, sys.stdout) if color else mark} " if index == 0 else " " * 6
                _print_row(head, 6 if index else _MARGIN, row, names, sizes)


def _figure_rows(figure: BenchmarkFigure) -> list[FigureRow]:
    rows: list[FigureRow] = [(figure.name, format_number(figure.value), figure.unit, figure.target or "")]
    if figure.peer is not None:
        ratio = (
            "not measured" if figure.missing else "" if figure.ratio is None else f"ratio {format_number(figure.ratio)}"
        )
        rows.append((figure.peer, format_number(figure.peer_value), figure.unit, ratio))
    return rows


def _print_row(head: str, indent: int, row: FigureRow, names: int, sizes: Sequence[int]) -> None:
    """Print one row; a long name takes several lines, with the values in the first."""
    name, value, unit, remark = row
    space = names + _MARGIN - indent
    first, *others = textwrap.wrap(name, space) or [""]
    print_line(f"{head}{first.ljust(space)}  {value.rjust(sizes[1])} {unit.ljust(sizes[2])}  {remark}".rstrip())
    for line in others:
        print_line(" " * indent + line)


def format_number(value: float | None) -> str:
    """Return a measured value with four digits; "-" if there is none."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
