"""Finds and runs the benchmarks of a source checkout."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import roboyard
from roboyard.errors import InputError, RunError, UnknownNameError

INSTALL = "pip install 'roboyard[bench]'"
"""What brings the peers that Roboyard is measured beside."""
_TARGET = re.compile(r"\s*(ratio)?\s*(>=|<=|>|<)\s*([-+.\deE]+)\s*")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": lambda value, bound: value >= bound,
    "<=": lambda value, bound: value <= bound,
    ">": lambda value, bound: value > bound,
    "<": lambda value, bound: value < bound,
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure.

    Attributes:
        name: What was measured.
        value: In ``unit``; None if it could not be measured.
        unit: SI or a rate.
        target: What is promised: ">= 300000", "<= 0.3", "ratio >= 6" about ``ratio``, or several with commas between.
        peer: What it is compared with.
        peer_value: The peer's, in the same unit; None if it could not be measured.
        ratio: How the two compare, as the benchmark defines it.
        missing: Why the peer could not be measured.
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
    def held(self) -> bool | None:
        """Whether every target that can be judged was reached; None if there is none."""
        verdicts = []
        for part in (self.target or "").split(","):
            match = _TARGET.fullmatch(part)
            value = self.value if match is None or match[1] is None else self.ratio
            if match is not None and value is not None:
                verdicts.append(_COMPARE[match[2]](value, float(match[3])))
        return all(verdicts) if verdicts else None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "held": self.held}


@dataclass(slots=True)
class Measured:
    """What one benchmark file gave.

    Attributes:
        figures: What could be measured.
        skipped: What could not, since a package is missing: a part's name and why.
        details: Lines that explain the figures.
    """

    figures: list[Figure] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    details: list[str] = field(default_factory=list)


def benchmarks(names: Sequence[str]) -> dict[str, Path]:
    """Files of the benchmarks called ``names``; all if none is named.

    Raises:
        InputError: there is no source checkout.
        UnknownNameError: no benchmark of that name.
    """
    places = [Path("benchmarks"), Path(roboyard.__file__).resolve().parents[2] / "benchmarks"]
    folder = next((place for place in places if place.is_dir()), None)
    if folder is None:
        raise InputError("there is no folder benchmarks/ here", valid="a clone of Roboyard's repository")
    found = {path.stem.replace("_", "-"): path for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_")}
    for name in names:
        if name not in found:
            raise UnknownNameError(f"no benchmark {name!r}", location=str(folder), valid=", ".join(found))
    return {name: found[name] for name in names} if names else found


def measure(path: Path, *, nightly: bool, **options: Any) -> Measured:
    """Run a benchmark file.

    It has a function ``run(nightly)``, or a list ``PARTS`` of several.  Each gives figures: a list of mappings, or a
    mapping that holds it as "figures", and may hold lines that explain them as "details".  A part gets those of the
    options that it has parameters for, if they were given: ``run(nightly, folder)`` looks at files.  A part that needs
    a package which is not installed is skipped alone.

    Raises:
        RunError: it fails, or does not answer with figures.
    """
    found = Measured()
    try:
        parts = _parts(_load(path))
    except ImportError as error:
        found.skipped.append((path.stem, str(error)))
        return found
    for part in parts:
        try:
            known = signature(part).parameters
            answer = part(nightly, **{name: value for name, value in options.items() if name in known})
            if isinstance(answer, Mapping):
                found.details += [str(line) for line in answer.get("details", ())]
            entries: Iterable[Mapping[str, Any]] = answer["figures"] if isinstance(answer, Mapping) else answer
            found.figures += [_figure(entry) for entry in entries]
        except ImportError as error:
            found.skipped.append((_about(part, path), str(error)))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise RunError(f"cannot be measured: {type(error).__name__}: {error}", location=str(path)) from error
    return found


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"roboyard_benchmark_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise RunError("is no Python module", location=str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise RunError(f"is no Python: {error.msg}", location=f"{path}:{error.lineno}") from error
    return module


def _parts(module: ModuleType) -> Sequence[Callable[..., Any]]:
    parts = getattr(module, "PARTS", None) or [getattr(module, "run", None)]
    if not all(callable(part) for part in parts):
        raise RunError("has no function run(nightly)", location=str(module.__file__), valid="run, or PARTS: several")
    return list(parts)


def _about(part: Callable[..., Any], path: Path) -> str:
    """What a part measures, by its docstring."""
    first = (part.__doc__ or "").strip().split("\n", 1)[0].rstrip(".")
    return f"{path.stem}: {first[:1].lower()}{first[1:]}" if first else path.stem


def _figure(entry: Mapping[str, Any]) -> Figure:
    known = {key: entry[key] for key in Figure.__dataclass_fields__ if key in entry}
    if isinstance(known.get("target"), (int, float)):
        known["target"] = f"ratio >= {known['target']:g}"
    if "limit" in entry:
        known["target"] = ", ".join(filter(None, [f"<= {entry['limit']:g}", known.get("target")]))
    return Figure(**{"value": None, **known})
