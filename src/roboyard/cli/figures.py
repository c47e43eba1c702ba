"""Finds and runs the benchmarks of a source checkout."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import roboyard
from roboyard.errors import InputError, RunError, UnknownNameError

_TARGET = re.compile(r"\s*(ratio)?\s*(>=|<=|>|<)\s*([-+.\deE]+)")


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure.

    Attributes:
        name: What was measured.
        value: In ``unit``; None if it could not be measured.
        unit: SI or a rate.
        target: What is promised: ">= 300000", "<= 0.3", or "ratio >= 6" about ``ratio``; a plain number is the least
            ``ratio``.
        peer: What it is compared with.
        peer_value: The peer's, in the same unit.
        ratio: How the two compare, as the benchmark defines it.
    """

    name: str
    value: float | None
    unit: str = ""
    target: str | None = None
    peer: str | None = None
    peer_value: float | None = None
    ratio: float | None = None

    @property
    def held(self) -> bool | None:
        """Whether the target was reached; None if there is none, or nothing to judge."""
        match = _TARGET.match(self.target or "")
        value = self.value if match is None or match[1] is None else self.ratio
        if match is None or value is None:
            return None
        bound = float(match[3])
        return {">=": value >= bound, "<=": value <= bound, ">": value > bound, "<": value < bound}[match[2]]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "held": self.held}


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
    found = {path.stem: path for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_")}
    for name in names:
        if name not in found:
            raise UnknownNameError(f"no benchmark {name!r}", where=str(folder), valid=", ".join(found))
    return {name: found[name] for name in names} if names else found


def measure(path: Path, *, nightly: bool) -> list[Figure]:
    """Run a benchmark file's ``run(nightly)``.

    Raises:
        RunError: it fails, or does not answer with figures.
    """
    spec = importlib.util.spec_from_file_location(f"roboyard_benchmark_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise RunError("is no Python module", where=str(path))
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        answer = module.run(nightly)
        return [_figure(entry) for entry in answer["figures"]]
    except ImportError as error:
        valid = "the peers of benchmarks: pip install 'roboyard[bench]'"
        raise RunError(f"cannot be measured: {error}", where=str(path), valid=valid) from error
    except (AttributeError, KeyError, TypeError) as error:
        raise RunError(f"cannot be measured: {type(error).__name__}: {error}", where=str(path)) from error


def _figure(entry: Mapping[str, Any]) -> Figure:
    known = {key: entry[key] for key in Figure.__dataclass_fields__ if key in entry}
    if isinstance(known.get("target"), (int, float)):
        known["target"] = f"ratio >= {known['target']:g}"
    return Figure(**{"value": None, **known})
