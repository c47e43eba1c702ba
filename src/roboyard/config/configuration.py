"""`Config`: base of configurations that hold what they declare, however they are made."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self, dataclass_transform

from roboyard.config.conversion import configuration_keys, convert, type_hints
from roboyard.config.loading import check, load
from roboyard.config.parameter import ParameterInfo, parameter_info, yaml_key
from roboyard.config.schema import dump
from roboyard.config.wording import describe_expected, did_you_mean
from roboyard.config.yaml_tree import YamlNode, yaml_from_data
from roboyard.errors import ConfigError, UnknownNameError


@dataclass(frozen=True, slots=True)
class ParameterDescriptor:
    """One parameter of a configuration, nested ones included.

    Attributes:
        name: Dotted name: "filter.max_beams".
        annotation: Type of its value.
        info: What its declaration says.
        default: Its default; `dataclasses.MISSING` where it is required.
        attributes: Attribute names that lead to it from the configuration.
    """

    name: str
    annotation: Any
    info: ParameterInfo
    default: Any
    attributes: tuple[str, ...]

    def describe(self) -> str:
        """Return what its value must be, in words: 'a number in m, 0.1 to 5'."""
        return describe_expected(self.annotation, self.info.constraint)


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True, kw_only=True)
class Config:
    """Base of configurations.

    A subclass declares its fields with `parameter` and becomes a frozen dataclass with keyword arguments. Types, units,
    bounds and choices hold for files, ROS parameters and configurations made in Python alike.

    Raises:
        ConfigError: A value is of the wrong type or out of its bounds, or `validate` refuses.
    """

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self) -> None:
        check(self)
        self.validate()

    def validate(self) -> None:
        """Check what bounds of single values cannot say.

        Raises:
            ConfigError: The values contradict each other.
        """

    @classmethod
    def load(
        cls,
        source: str | Path | Mapping[str, Any] | YamlNode,
        *,
        source_name: str | None = None,
        overrides: Iterable[str] = (),
    ) -> Self:
        """Read the configuration from a YAML file or from data in memory; see `roboyard.config.load`."""
        return load(cls, source, source_name=source_name, overrides=overrides)

    def to_data(self) -> dict[str, Any]:
        """Return plain data from which `load` makes an equal configuration."""
        data: dict[str, Any] = dump(self)
        return data

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Return the keys on the first level of its files."""
        return configuration_keys(cls)

    @classmethod
    def descriptors(cls) -> Mapping[str, ParameterDescriptor]:
        """Return all parameters by dotted name, those of nested configurations included."""
        return _cached_descriptors(cls)

    def parameters(self) -> dict[str, tuple[ParameterDescriptor, Any]]:
        """Return all parameters by dotted name, each with its value.

        Besides `descriptors` these are the parameters of nested configurations in mappings: "sources.teleop.priority".
        """
        found: dict[str, tuple[ParameterDescriptor, Any]] = {}
        for name, item in self.descriptors().items():
            value: Any = self
            for attribute in item.attributes:
                value = getattr(value, attribute)
            if isinstance(value, Mapping) and value and all(isinstance(one, Config) for one in value.values()):
                for key, nested in value.items():
                    for inner, (declared, content) in nested.parameters().items():
                        full_name = f"{name}.{key}.{inner}"
                        info = dataclasses.replace(declared.info, runtime=False)
                        found[full_name] = dataclasses.replace(declared, name=full_name, info=info), content
            else:
                found[name] = item, value
        return found

    def values(self) -> dict[str, Any]:
        """Return the values of `parameters` by dotted name."""
        return {name: value for name, (_, value) in self.parameters().items()}

    def replace(self, changes: Mapping[str, Any], location: str = "") -> Self:
        """Return a copy with other values.

        Args:
            changes: New values by dotted name: {"filter.max_beams": 60}.
            location: Names the owner in errors.

        Raises:
            UnknownNameError: There is no parameter of a name.
            ConfigError: A value is of the wrong type or out of its bounds, or the values contradict each other.
        """
        descriptors = self.descriptors()
        tree: dict[str, Any] = {}
        for name, value in changes.items():
            if name not in descriptors and name in self.parameters():
                raise ConfigError(f"parameter '{name}' can only be given at start", location=location or None)
            if name not in descriptors:
                raise UnknownNameError(
                    f"no parameter '{name}'{did_you_mean(name, descriptors)}", location=location or None,
                    valid="there are: " + ", ".join(descriptors),
                )  # fmt: skip
            item = descriptors[name]
            value_location = ", ".join(part for part in (location, f"parameter '{name}'") if part)
            branch = tree
            for attribute in item.attributes[:-1]:
                branch = branch.setdefault(attribute, {})
            branch[item.attributes[-1]] = (
                convert(yaml_from_data(value, value_location), item.annotation, item.info.constraint),
            )
        try:
            replaced: Self = _replace_tree(self, tree)
        except ConfigError as error:
            raise ConfigError(
                error.message, location=", ".join(filter(None, (location, error.location))) or None, valid=error.valid
            ) from None
        return replaced


def _replace_tree(config: Any, tree: dict[str, Any]) -> Any:
    """Replace attributes: a dict replaces within a nested configuration, a tuple of one holds a new value."""
    values = {
        name: _replace_tree(getattr(config, name), item) if isinstance(item, dict) else item[0]
        for name, item in tree.items()
    }
    return dataclasses.replace(config, **values)


def _descriptors(cls: type, prefix: str = "", attributes: tuple[str, ...] = ()) -> dict[str, ParameterDescriptor]:
    found: dict[str, ParameterDescriptor] = {}
    hints = type_hints(cls)
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        info, annotation, path = parameter_info(field), hints[field.name], (*attributes, field.name)
        name = prefix + yaml_key(field)
        if info.flatten is not None:
            found |= _descriptors(annotation, prefix + info.flatten, path)
        elif isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
            found |= _descriptors(annotation, f"{name}.", path)
        else:
            default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
            found[name] = ParameterDescriptor(name, annotation, info, default, path)
    return found


_cached_descriptors: Callable[[type], Mapping[str, ParameterDescriptor]] = lru_cache(maxsize=512)(_descriptors)
