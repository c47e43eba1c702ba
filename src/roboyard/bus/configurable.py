"""What has declared parameters and resources: checked when given, checked when changed."""

from __future__ import annotations

from typing import Any

from roboyard.bus.parameters import Param, Resource, Settings, declared
from roboyard.errors import ConfigError, UnknownNameError


class Configurable:
    """Base of nodes: parameters and resources declared in the class body are keyword arguments of the constructor.

    Attributes:
        full_name: For messages; empty before it has one.
    """

    def __init__(self, given: dict[str, Any]) -> None:
        self.full_name = ""
        values = given_values(type(self), given)
        self.__dict__["_parameters"], self.__dict__["_resources"], self.__dict__["_configurations"] = values

    def on_parameter(self, name: str, value: Any) -> None:
        """Called before a parameter changes at run time; raise ConfigError to refuse."""

    @classmethod
    def parameters_declared(cls) -> dict[str, Param[Any]]:
        """The node's parameters with their types, ranges and defaults."""
        return declared(cls, Param)

    @classmethod
    def settings_declared(cls) -> dict[str, Settings[Any]]:
        """The node's nested configurations."""
        return declared(cls, Settings)

    @classmethod
    def resources_declared(cls) -> dict[str, Resource]:
        """What the node wants to be handed."""
        return declared(cls, Resource)

    def parameters(self) -> dict[str, Any]:
        """Present values of all parameters."""
        return dict(self.__dict__["_parameters"])

    def set_parameter(self, name: str, value: Any) -> None:
        """Change a parameter.

        Raises:
            UnknownNameError: there is none of this name.
            ConfigError: the value is not allowed, the parameter is fixed, or the node refuses.
        """
        known = self.parameters_declared()
        if name not in known:
            raise UnknownNameError(
                f"no parameter '{name}'", where=f"node {self.full_name}", valid="there are: " + ", ".join(known)
            )
        if known[name].fixed and self._is_running():
            raise ConfigError(f"parameter '{name}' can only be given at start", where=f"node {self.full_name}")
        checked = known[name].check(value, self.full_name or type(self).__name__)
        self.on_parameter(name, checked)
        self.__dict__["_parameters"][name] = checked
        self._parameter_changed(name, checked)

    def _is_running(self) -> bool:
        """Whether what is fixed cannot change any more."""
        return False

    def _parameter_changed(self, name: str, value: Any) -> None:
        """Called after a parameter changed."""


def given_values(cls: type, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Checked values of a class's parameters, its resources, and its nested configurations, from keyword arguments.

    Raises:
        ConfigError: an unknown keyword, a missing resource, or a bad parameter value.
    """
    parameters, resources, nested = declared(cls, Param), declared(cls, Resource), declared(cls, Settings)
    unknown = [key for key in given if key not in parameters and key not in resources and key not in nested]
    if unknown:
        raise ConfigError(
            f"no parameter or resource '{unknown[0]}'",
            where=cls.__name__,
            valid="there are: " + ", ".join([*parameters, *nested, *resources]),
        )
    missing = [key for key, item in resources.items() if not item.optional and given.get(key) is None]
    if missing:
        raise ConfigError(f"resource '{missing[0]}' is missing", where=cls.__name__)
    for key, item in resources.items():
        if given.get(key) is not None and item.kind is not None and not isinstance(given[key], item.kind):
            raise ConfigError(
                f"resource '{key}' is a {type(given[key]).__name__}", where=cls.__name__, valid=item.kind.__name__
            )
    values = {key: item.check(given.get(key, item.default), cls.__name__) for key, item in parameters.items()}
    configured = {key: item.check(given.get(key), cls.__name__) for key, item in nested.items()}
    handed = {key: item.make() if given.get(key) is None else given[key] for key, item in resources.items()}
    return values, handed, configured
