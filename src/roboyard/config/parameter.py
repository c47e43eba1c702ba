"""`parameter`: the one declaration of a configuration's field, with its default, unit, bounds and meaning."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from dataclasses import MISSING, dataclass
from typing import Any, Protocol


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
        units = [unit for unit in (self.unit, *self.units) if unit]
        if units:
            from roboyard.config.units import check_unit  # its exact fractions take time to import

            for unit in units:
                check_unit(unit)
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")

    def of_element(self, index: int) -> ValueConstraint:
        """The constraint of a tuple's element."""
        if not self.units:
            return self
        unit = self.units[index] if index < len(self.units) else ""
        return dataclasses.replace(self, unit=unit, units=())


UNCONSTRAINED = ValueConstraint()


class NameRegistry(Protocol):
    """Names that stand for something; `Registry` is one."""

    def names(self) -> tuple[str, ...]:
        """Return all names, sorted."""

    def __contains__(self, name: str) -> bool:
        """Return whether something is registered under this name."""


class ClassRegistry(NameRegistry, Protocol):
    """Configuration classes by name; `Registry` is one."""

    def __getitem__(self, name: str) -> type[Any]:
        """Return the class of a name. Raises ConfigError if its package does not offer it."""


@dataclass(frozen=True, slots=True)
class RegisteredName:
    """Marks a text that must be a registered name: ``Annotated[str, RegisteredName(TERRAINS)]``.

    Attributes:
        registry: What the names stand for.
    """

    registry: NameRegistry

    @staticmethod
    def of(metadata: Collection[Any]) -> RegisteredName | None:
        """Return the mark among the metadata of an ``Annotated`` type; None if there is none."""
        return next((mark for mark in metadata if isinstance(mark, RegisteredName)), None)


@dataclass(frozen=True, slots=True)
class RegisteredType:
    """Marks an annotation whose mappings name their class by a key: ``Annotated[FaultConfig, RegisteredType(FAULTS)]``.

    Each class of the registry is a dataclass whose fields are declared with `parameter`; one of them, a text, is the
    key and holds the name under which the class is registered.

    Attributes:
        registry: The classes by name.
        key: Key of the mapping that names the class.
    """

    registry: ClassRegistry
    key: str = "type"

    @staticmethod
    def of(metadata: Collection[Any]) -> RegisteredType | None:
        """Return the mark among the metadata of an ``Annotated`` type; None if there is none."""
        return next((mark for mark in metadata if isinstance(mark, RegisteredType)), None)


@dataclass(frozen=True, slots=True)
class ParameterInfo:
    """Metadata that `parameter` attaches to a dataclass field.

    Attributes:
        constraint: Unit, range and choices of its value.
        doc: Its meaning, a noun phrase.
        key: Its name in files where that differs from the attribute's.
        runtime: It may change while a node runs.
        aliases: Its names in parameter files of ROS.
        flatten: Prefix of the keys of a nested configuration that lie on the level of this one; None: they do not.
    """

    constraint: ValueConstraint = UNCONSTRAINED
    doc: str = ""
    key: str | None = None
    runtime: bool = False
    aliases: tuple[str, ...] = ()
    flatten: str | None = None


def parameter(
    default: Any = MISSING,
    *,
    factory: Callable[[], Any] | Any = MISSING,
    unit: str | tuple[str, ...] = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[Any, ...] = (),
    doc: str = "",
    key: str | None = None,
    runtime: bool = False,
    aliases: tuple[str, ...] = (),
    flatten: str | None = None,
) -> Any:
    """Declare a field of a configuration.

    Files and ROS parameters, error messages, tables of the documentation and JSON Schema follow from the declaration.

    Args:
        default: As in `dataclasses.field`; a list or dict is copied for every instance.
        factory: Makes the default instead.
        unit: Unit of the stored number: "m". Files may write "500 mm". A tuple of units serves a tuple of numbers.
        low: Smallest value allowed.
        high: Largest value allowed. Infinity is accepted where a limit is infinite, NaN nowhere.
        choices: All values allowed.
        doc: Its meaning: a noun phrase.
        key: Name in files where it differs from the attribute's, e.g. "from".
        runtime: The value of a node may change while the node runs; ROS calls the others read-only.
        aliases: Names in parameter files of ROS 1 and ROS 2: ("laser_max_beams",).
        flatten: For a nested configuration: its keys lie on the level of this one, with this prefix ("" for none).

    Raises:
        ValueError: The unit is unknown or the bounds contradict each other: a mistake in the program.
    """
    constraint = ValueConstraint(
        unit=unit if isinstance(unit, str) else "", low=low, high=high, choices=tuple(choices),
        units=() if isinstance(unit, str) else unit,
    )  # fmt: skip
    metadata = {"roboyard": ParameterInfo(constraint, doc, key, runtime, aliases, flatten)}
    if isinstance(default, list | dict):
        template = default
        return dataclasses.field(default_factory=lambda: template.copy(), metadata=metadata)
    if factory is not MISSING:
        return dataclasses.field(default_factory=factory, metadata=metadata)
    if default is MISSING:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def required_parameter(cls: type, name: str, *, doc: str = "") -> Any:
    """Declare a field with the unit and the bounds that another configuration declares, but without a default.

    Args:
        cls: The other configuration.
        name: Attribute of it.
        doc: Meaning, where it differs.

    Raises:
        ValueError: The other configuration has no such attribute: a mistake in the program.
    """
    declared = next((field for field in dataclasses.fields(cls) if field.name == name), None)
    if declared is None:
        raise ValueError(f"{cls.__name__} has no parameter {name}")
    info = parameter_info(declared)
    metadata = {"roboyard": dataclasses.replace(info, doc=doc or info.doc, runtime=False)}
    return dataclasses.field(metadata=metadata)


def parameter_info(field: dataclasses.Field[Any]) -> ParameterInfo:
    """Return the metadata that `parameter` attached, or the defaults for a plain dataclass field."""
    info = field.metadata.get("roboyard")
    return info if isinstance(info, ParameterInfo) else ParameterInfo()


def yaml_key(field: dataclasses.Field[Any]) -> str:
    """Return the field's name in files."""
    key = parameter_info(field).key
    return field.name if key is None else key
