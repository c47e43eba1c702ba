"""The parameters of a batch's trials: distributions by key, and designs (random, Latin hypercube, grid)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from roboyard.config.wording import did_you_mean
from roboyard.errors import InputError

if TYPE_CHECKING:
    from roboyard.scenarios.batch.options import Design

ScalarValue = str | int | float
DESIGNS: Final = ("random", "lhs", "grid")

_LOCATION: Final = "--vary"
_FORMS: Final = {
    "uniform": "uniform:low,high",
    "loguniform": "loguniform:low,high with 0 < low < high",
    "normal": "normal:mean,deviation",
    "integer": "integer:first,last",
    "range": "range:low,high,count",
    "choice": "choice:value,value",
}
_ALL_FORMS: Final = f"{', '.join(_FORMS.values())}, or plain values: key=a,b"
_STREAM: Final = 0xBA7C
_NORMAL_TAIL: Final = 1e-9
"""Normal values are drawn between these quantiles, six standard deviations, so that none is infinite."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Distribution of the values of one key.

    Attributes:
        key: Key, as of `--set`.
        kind: One of `uniform`, `loguniform`, `normal`, `integer`, `range`, `choice`.
        numbers: Parameters of the distribution; none for choices.
        values: All possible values as text; empty for continuous distributions.
    """

    key: str
    kind: str
    numbers: tuple[float, ...] = ()
    values: tuple[str, ...] = ()

    def quantile(self, u: float) -> str:
        """Return the quantile of a probability ``u``, 0 ≤ u < 1, as text."""
        if self.values:
            return self.values[min(int(u * len(self.values)), len(self.values) - 1)]
        low, high = self.numbers
        if self.kind == "integer":
            return str(min(int(low + math.floor(u * (high - low + 1))), int(high)))
        if self.kind == "uniform":
            return _format_number(low + u * (high - low))
        if self.kind == "loguniform":
            return _format_number(low * (high / low) ** u)
        from scipy.special import ndtri  # heavy, and only this kind needs it

        return _format_number(low + high * float(ndtri(min(max(u, _NORMAL_TAIL), 1.0 - _NORMAL_TAIL))))


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of a batch.

    Attributes:
        seed: Seed of the run.
        varied_values: Keys and values as text.
        name: Name of its folder.
    """

    seed: int
    varied_values: tuple[tuple[str, str], ...] = ()
    name: str = ""

    @property
    def assignments(self) -> tuple[str, ...]:
        """Overrides ``key=value``, as of `--set`."""
        return tuple(f"{key}={value}" for key, value in self.varied_values)

    @property
    def parsed_values(self) -> dict[str, ScalarValue]:
        """Values by key, numbers where they are some."""
        return {key: parse_scalar(value) for key, value in self.varied_values}


def parse_distribution(text: str) -> Distribution:
    """Parse ``key=kind:numbers`` or ``key=value,value``; commas within brackets do not separate values.

    Raises:
        InputError: The text has another form, the kind is unknown, or its numbers are not valid.
    """
    key, equals, definition = text.partition("=")
    named = re.match(r"([A-Za-z_]+):(.*)", definition, re.DOTALL)
    if not equals or not key.strip() or not definition.strip():
        raise InputError(
            f"{text!r} has no key or no distribution", location=_LOCATION, valid=f"key=distribution: {_ALL_FORMS}"
        )
    if named is None:
        return Distribution(key, "choice", values=_parse_choices(definition, text))
    kind, body = named[1], named[2]
    if kind not in _FORMS:
        raise InputError(
            f"no distribution {kind!r} in {text!r}{did_you_mean(kind, list(_FORMS))}",
            location=_LOCATION,
            valid=_ALL_FORMS,
        )
    if kind == "choice":
        return Distribution(key, kind, values=_parse_choices(body, text))
    numbers = _parse_numbers(body, kind, text)
    if not _IS_VALID[kind](numbers):
        raise InputError(f"{text!r} gives no numbers to draw", location=_LOCATION, valid=_FORMS[kind])
    if kind == "range":
        low, high, count = numbers
        return Distribution(
            key, kind, numbers, tuple(_format_number(v) for v in np.linspace(low, high, int(count)).tolist())
        )
    if kind == "integer" and numbers[1] - numbers[0] < 64:
        values = tuple(str(number) for number in range(int(numbers[0]), int(numbers[1]) + 1))
        return Distribution(key, kind, numbers, values)
    return Distribution(key, kind, numbers)


def parse_distributions(texts: Sequence[str]) -> tuple[Distribution, ...]:
    """Parse the distributions of all keys.

    Raises:
        InputError: As of `parse_distribution`, or a key occurs twice.
    """
    distributions = tuple(parse_distribution(text) for text in texts)
    keys = [distribution.key for distribution in distributions]
    for key in keys:
        if keys.count(key) > 1:
            raise InputError(f"{key} varies twice", location=_LOCATION, valid="each key once")
    return distributions


def plan_trials(distributions: Sequence[Distribution], design: Design, first_seed: int, runs: int) -> list[Trial]:
    """Return the runs of a batch, each with its seed and varied values.

    - ``random``: the values of a run are drawn from its seed and the key alone, so further runs or keys change no other
      value.
    - ``lhs`` (Latin hypercube): the distribution of each key is divided into as many equally likely parts as there are
      runs, and each part is used once.
    - ``grid``: all combinations of all values, each with the same ``runs`` seeds.

    Raises:
        InputError: The design is unknown, or a grid has a continuous distribution.

    Source of the Latin hypercube: McKay, Beckman, Conover, Technometrics 21 (1979).
    """
    if design not in DESIGNS:
        raise InputError(f"no design {design!r}", location="--design", valid=", ".join(DESIGNS))
    seeds = range(first_seed, first_seed + runs)
    if design == "grid" and distributions:
        unbounded = [distribution for distribution in distributions if not distribution.values]
        if unbounded:
            raise InputError(
                f"{unbounded[0].key} has no end of values: {unbounded[0].kind}", location="--design grid",
                valid="range:low,high,count, choice:value,value or integer:first,last; or another design",
            )  # fmt: skip
        points = [
            tuple(zip((d.key for d in distributions), values, strict=True))
            for values in product(*(d.values for d in distributions))
        ]
        return [
            Trial(seed, point, f"point-{k:03d}-seed-{seed:06d}") for k, point in enumerate(points) for seed in seeds
        ]
    quantiles = {distribution.key: _sample_quantiles(distribution.key, design, seeds) for distribution in distributions}
    return [
        Trial(
            seed,
            tuple(
                (distribution.key, distribution.quantile(quantiles[distribution.key][k]))
                for distribution in distributions
            ),
            f"seed-{seed:06d}",
        )
        for k, seed in enumerate(seeds)
    ]


def parse_scalar(text: str) -> ScalarValue:
    """Return a number if the text is one, else the text."""
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text
    return int(number) if re.fullmatch(r"[+-]?\d+", text.strip()) else number


def _sample_quantiles(key: str, design: Design, seeds: range) -> list[float]:
    if design == "lhs":
        rng = np.random.default_rng([_STREAM, seeds.start, len(seeds), *key.encode()])
        parts: list[float] = ((rng.permutation(len(seeds)) + rng.random(len(seeds))) / len(seeds)).tolist()
        return parts
    return [float(np.random.default_rng([_STREAM, seed, *key.encode()]).random()) for seed in seeds]


def _format_number(value: float) -> str:
    return f"{value:.6g}"


def _parse_choices(body: str, text: str) -> tuple[str, ...]:
    parts = split_list(body)
    if not parts or len(set(parts)) != len(parts):
        raise InputError(f"{text!r} names no different values", location=_LOCATION, valid=_FORMS["choice"])
    return tuple(parts)


def split_list(text: str) -> list[str]:
    """Return the parts of ``a,b``; commas within brackets do not separate parts."""
    return [part.strip() for part in re.findall(r"(?:\[[^\]]*\]|\{[^}]*\}|[^,\[{])+", text)]


def _parse_numbers(body: str, kind: str, text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in body.split(","))
    except ValueError:
        numbers = ()
    n_expected = _FORMS[kind].split(" ", maxsplit=1)[0].count(",") + 1
    if len(numbers) != n_expected or not all(map(math.isfinite, numbers)):
        raise InputError(f"{text!r} does not say how {kind} varies", location=_LOCATION, valid=_FORMS[kind])
    return numbers


_IS_VALID: Final[dict[str, Callable[[tuple[float, ...]], bool]]] = {
    "uniform": lambda n: n[0] < n[1],
    "loguniform": lambda n: 0.0 < n[0] < n[1],
    "normal": lambda n: n[1] > 0.0,
    "integer": lambda n: n[0] == int(n[0]) and n[1] == int(n[1]) and n[0] <= n[1],
    "range": lambda n: n[0] < n[1] and n[2] == int(n[2]) and 2 <= n[2] <= 10_000,
}
