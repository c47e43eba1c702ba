"""What has declared parameters and resources: checked when given, checked when changed."""

from __future__ import annotations

from typing import Any

from roboyard.bus.parameters import Param, Resource, Settings, find_descriptors
from roboyard.errors import ConfigError, UnknownNameError


class Configurable:
    """Base of nodes: parameters and resources declared in the class body are keyword arguments of the constructor.

    Attributes:
        full_name: For messages; empty before it has one.
    """

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.full_name = ""
        values = check_arguments(type(self), arguments)
        self.__dict__["_parameters"], self.__dict__["_resources"], self.__dict__["_configurations"] = values

    def on_parameter(self, name: str, value: Any) -> None:
        """Called before a parameter changes at run time; raise ConfigError to refuse."""

    @classmethod
    def parameters_declared(cls) -> dict[str, Param[Any]]:
        """The node's parameters with their types, ranges and defaults."""
        return find_descriptors(cls, Param)

    @classmethod
    def settings_declared(cls) -> dict[str, Settings[Any]]:
        """The node's nested configurations."""
        return find_descriptors(cls, Settings)

    @classmethod
    def resources_declared(cls) -> dict[str, Resource]:
        """What the node wants to be handed."""
        return find_descriptors(cls, Resource)

    def parameters(self) -> dict[str, Any]:
        """Present values of all parameters."""
        return dict(self.__dict__["_parameters"])

    def set_parameter(self, name: str, value: Any) -> None:
        """Change a parameter.

        Raises:
            UnknownNameError: there is none of this name.
            ConfigError: the value is not allowed, the parameter is fixed, or the node refuses.
        """
        parameters = self.parameters_declared()
        if name not in parameters:
            raise UnknownNameError(
                f"no parameter '{name}'", location=f"node {self.full_name}", valid="there are: " + ", ".join(parameters)
            )
        if parameters[name].fixed and self._is_running():
            raise ConfigError(f"parameter '{name}' can only be given at start", location=f"node {self.full_name}")
        checked_value = parameters[name].check(value, self.full_name or type(self).__name__)
        self.on_parameter(name, checked_value)
        self.__dict__["_parameters"][name] = checked_value
        self._on_parameter_changed(name, checked_value)

    def _is_running(self) -> bool:
        """Whether what is fixed cannot change any more."""
        return False

    def _on_parameter_changed(self, name: str, value: Any) -> None:
        """Called after a parameter changed."""


def check_arguments(cls: type, arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Checked values of a class's parameters, its resources, and its nested configurations, from keyword arguments.

    Raises:
        ConfigError: an unknown keyword, a missing resource, or a bad parameter value.
    """
    parameters, resources, nested = (
        find_descriptors(cls, Param),
        find_descriptors(cls, Resource),
        find_descriptors(cls, Settings),
    )
    unknown = [key for key in arguments if key not in parameters and key not in resources and key not in nested]
    if unknown:
        raise ConfigError(
            f"no parameter or resource '{unknown[0]}'",
            location=cls.__name__,
            valid="there are: " + ", ".join([*parameters, *nested, *resources]),
        )
    missing = [key for key, item in resources.items() if not item.optional and arguments.get(key) is None]
    if missing:
        raise ConfigError(f"resource '{missing[0]}' is missing", location=cls.__name__)
    for key, item in resources.items():
        if arguments.get(key) is not None and item.kind is not None and not isinstance(arguments[key], item.kind):
            raise ConfigError(
                f"resource '{key}' is a {type(arguments[key]).__name__}",
                location=cls.__name__,
                valid=item.kind.__name__,
            )
    values = {key: item.check(arguments.get(key, item.default), cls.__name__) for key, item in parameters.items()}
    nested_values = {key: item.check(arguments.get(key), cls.__name__) for key, item in nested.items()}
    resource_values = {
        key: item.make() if arguments.get(key) is None else arguments[key] for key, item in resources.items()
    }
    return values, resource_values, nested_values
