"""`field`: the constraints of a configuration's field, declared with the field."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, dataclass
from typing import Any

from roboyard.config.units import parse_unit


@dataclass(frozen=True, slots=True)
class ValueConstraint:
    """What a value may be: its unit ("" for a bare number), its range (ends included), its choices.

    On a list, tuple or dict they hold for every element. `units` gives the elements of a fixed tuple one each:
    ("m", "m", "rad") for a pose in the plane.
    """

    unit: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[Any, ...] = ()
    units: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for unit in (self.unit, *self.units):
            parse_unit(unit)
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")

    def of_element(self, index: int) -> ValueConstraint:
        """The limits of a tuple's element."""
        if not self.units:
            return self
        unit = self.units[index] if index < len(self.units) else ""
        return dataclasses.replace(self, unit=unit, units=())


UNCONSTRAINED = ValueConstraint()


@dataclass(frozen=True, slots=True)
class ParameterInfo:
    """What `field` keeps in a dataclass field's metadata under "roboyard"."""

    constraint: ValueConstraint = UNCONSTRAINED
    doc: str = ""
    key: str | None = None


def field(
    default: Any = MISSING,
    *,
    factory: Callable[[], Any] | Any = MISSING,
    unit: str | tuple[str, ...] = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[Any, ...] = (),
    doc: str = "",
    key: str | None = None,
) -> Any:
    """A dataclass field with limits that `load` and `check` hold, and that `schema_table` shows.

    Args:
        default: As in `dataclasses.field`; a list or dict is copied for every instance.
        factory: Makes the default instead.
        unit: The unit of the stored number: "m". Files may write "500 mm". A tuple of units serves a tuple of numbers.
        low: Smallest value allowed.
        high: Largest value allowed. Infinity is accepted where a limit is infinite, NaN nowhere.
        choices: All values allowed.
        doc: What it means, one clause.
        key: The name in files where it differs from the attribute's, e.g. "from".

    Raises:
        ValueError: The unit is unknown or the limits contradict each other: a mistake in the program.
    """
    constraint = ValueConstraint(
        unit=unit if isinstance(unit, str) else "", low=low, high=high, choices=tuple(choices),
        units=() if isinstance(unit, str) else unit,
    )  # fmt: skip
    metadata = {"roboyard": ParameterInfo(constraint, doc, key)}
    if isinstance(default, list | dict):
        template = default
        return dataclasses.field(default_factory=lambda: template.copy(), metadata=metadata)
    if factory is not MISSING:
        return dataclasses.field(default_factory=factory, metadata=metadata)
    if default is MISSING:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def parameter_info(field: dataclasses.Field[Any]) -> ParameterInfo:
    """What `field` noted, or nothing in particular for a plain dataclass field."""
    info = field.metadata.get("roboyard")
    return info if isinstance(info, ParameterInfo) else ParameterInfo()


def yaml_key(field: dataclasses.Field[Any]) -> str:
    """The field's name in files."""
    return parameter_info(field).key or field.name
