"""Configurations of all nodes of the package: their data make them again, bounds hold, and everything is explained."""

from __future__ import annotations

import math
from dataclasses import MISSING
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from roboyard.config import Config, ParameterDescriptor
from roboyard.config.conversion import convert
from roboyard.config.yaml_tree import yaml_from_data
from roboyard.errors import ConfigError

NODES = {entry.name: entry for entry in entry_points(group="roboyard.nodes") if entry.value.startswith("roboyard.")}
"""Entry points of the package's own nodes."""


@cache
def config_class(name: str) -> type[Config]:
    found: type[Config] = NODES[name].load().config_class
    return found


def values_of(item: ParameterDescriptor) -> st.SearchStrategy[Any] | None:
    """Values that the declaration allows; None for types of which there are other laws."""
    limits = item.info.constraint
    if limits.choices:
        return st.sampled_from(limits.choices)
    if item.annotation is bool:
        return st.booleans()
    if item.annotation is int:
        low = None if limits.low is None else math.ceil(limits.low)
        return st.integers(low, None if limits.high is None else math.floor(limits.high))
    if item.annotation is str:
        return st.text(max_size=8)
    if item.annotation is float:
        return st.floats(limits.low, limits.high, allow_nan=False, allow_infinity=limits.high == math.inf)
    return None


def data_with(data: dict[str, Any], item: ParameterDescriptor, name: str, value: Any) -> dict[str, Any]:
    """The data of a configuration with another value of one parameter."""
    if name in data:
        return data | {name: value}
    first, _, remaining = name.partition(".")
    return data | {first: data_with(data[first], item, remaining, value)}


@pytest.mark.parametrize("name", NODES)
def test_default_configuration_equals_its_reloaded_data(name: str) -> None:
    default = config_class(name)()
    assert type(default).load(default.to_data()) == default


@pytest.mark.parametrize("name", NODES)
def test_defaults_are_within_their_own_bounds(name: str) -> None:
    for key, item in config_class(name).descriptors().items():
        if item.default is not MISSING:
            convert(yaml_from_data(item.default, key), item.annotation, item.info.constraint)


@pytest.mark.parametrize("name", NODES)
def test_every_parameter_is_explained_by_a_phrase(name: str) -> None:
    unexplained = {
        key: item.info.doc
        for key, item in config_class(name).descriptors().items()
        if not item.info.doc or item.info.doc[0].islower() or item.info.doc[-1] != "."
    }
    assert not unexplained


@given(st.data())
def test_changed_configuration_equals_its_reloaded_data(data: st.DataObject) -> None:
    cls = config_class(data.draw(st.sampled_from(sorted(NODES)), label="node"))
    default = cls()
    candidates = {key: values for key, item in cls.descriptors().items() if (values := values_of(item)) is not None}
    assume(candidates)
    changes = {
        key: data.draw(candidates[key], label=key)
        for key in data.draw(st.lists(st.sampled_from(sorted(candidates)), max_size=4, unique=True), label="keys")
    }
    try:
        changed = default.replace(changes)
    except ConfigError:  # values that contradict each other
        assume(False)
    assert {key: changed.values()[key] for key in changes} == changes
    assert cls.load(changed.to_data()) == changed
    assert changed.replace({key: default.values()[key] for key in changes}) == default


@given(st.data())
def test_values_outside_their_bounds_are_refused(data: st.DataObject) -> None:
    cls = config_class(data.draw(st.sampled_from(sorted(NODES)), label="node"))
    bounded = {
        key: item.info.constraint
        for key, item in cls.descriptors().items()
        if item.annotation is float and item.info.constraint.low is not None
    }
    assume(bounded)
    key = data.draw(st.sampled_from(sorted(bounded)), label="key")
    below = data.draw(st.floats(max_value=bounded[key].low, exclude_max=True, allow_nan=False), label="value")
    with pytest.raises(ConfigError, match=key.rpartition(".")[2]):
        cls().replace({key: below})
