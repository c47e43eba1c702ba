"""Parameters are typed and ranged, and a node can refuse a change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import BusHarness

import roboyard as ry
from roboyard.bus.parameter_services import from_value, ros_parameters, to_value
from roboyard.errors import ConfigError, UnknownNameError

Parameter = ry.msg.rcl_interfaces.Parameter


class GainsConfig(ry.Config):
    """Nested configuration."""

    proportional: float = ry.parameter(1.0, low=0.0, high=100.0, runtime=True)
    limit: float | None = ry.parameter(None, unit="rad/s")


class WallFollowerConfig(ry.Config):
    """Configuration of `WallFollower`."""

    distance: float = ry.parameter(0.5, unit="m", low=0.1, high=5.0, doc="Distance to the wall.", runtime=True)
    side: str = ry.parameter("left", choices=("left", "right"), runtime=True)
    count: int = ry.parameter(3, low=0, high=10, runtime=True)
    active: bool = ry.parameter(True, runtime=True)
    gains: tuple[float, ...] = ry.parameter((1.0, 2.0), runtime=True)
    frame: str = ry.parameter("base_link")
    controller: GainsConfig = ry.parameter(factory=GainsConfig)
    filters: dict[str, GainsConfig] = ry.parameter(factory=dict)


class WallFollower(ry.Node[WallFollowerConfig]):
    """Keeps a distance."""

    robot = ry.resource(dict, optional=True)

    def on_config_change(self, old: WallFollowerConfig, new: WallFollowerConfig) -> None:
        assert old == self.config
        if new.count == 7:
            raise ConfigError("seven is unlucky", location=self.full_name)


def test_parameters_take_defaults_and_keywords() -> None:
    assert (WallFollower().config.distance, WallFollower(distance=2).config.distance) == (0.5, 2.0)
    assert isinstance(WallFollower(distance=2).config.distance, float)
    assert WallFollower(distance="40 cm").config.distance == 0.4
    assert WallFollower(controller={"proportional": 3}).config.controller.proportional == 3.0
    assert WallFollower.config_class is WallFollowerConfig


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"distance": 9.0}, r"WallFollower, distance: 9 m is above 5 m \(allowed: 0.1 to 5 m\)"),
        ({"distance": float("nan")}, "finite"),
        ({"distance": "far"}, "distance.*'far'"),
        ({"distance": True}, "distance: is true"),
        ({"side": "up"}, "one of: left, right"),
        ({"count": 2.5}, "count: is the number 2.5 .must be a whole number"),
        ({"gains": (1.0, "x")}, r"gains\[1\]: .*'x'"),
        ({"speed": 1.0}, "no parameter or resource 'speed'.*distance, side"),
        ({"controller": {"integral": 1.0}}, "controller: unknown key 'integral'"),
        ({"robot": 3}, "resource 'robot' is a int"),
    ],
)
def test_bad_parameter_values_give_reason_and_range(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        WallFollower(**arguments)


def test_missing_resource_is_named() -> None:
    class Needs(ry.Node):
        hardware = ry.resource(dict)

    with pytest.raises(ConfigError, match="resource 'hardware' is missing"):
        Needs()


def test_configuration_of_a_derived_node_extends_that_of_its_base() -> None:
    class FasterConfig(WallFollowerConfig):
        speed: float = ry.parameter(1.0)

    class Faster(WallFollower, ry.Node[FasterConfig]):  # type: ignore[misc]
        pass

    assert set(Faster.parameters_declared()) == {*WallFollower.parameters_declared(), "speed"}
    assert Faster(speed=2).config.values() == {**WallFollower().config.values(), "speed": 2.0}


def test_parameter_changes_are_checked_and_announced(harness: BusHarness) -> None:
    node = harness.add(WallFollower(), "wall")
    node.set_parameter("distance", 1)
    assert node.config.distance == 1.0
    node.set_parameter("controller.proportional", 5)
    assert node.config.controller == GainsConfig(proportional=5.0)
    events = harness.published("/parameter_events").messages
    assert [(e.node, e.changed_parameters[0].name) for e in events] == [
        ("/wall", "distance"), ("/wall", "controller.proportional"),
    ]  # fmt: skip
    for name, value in (("distance", 7.0), ("count", 7), ("frame", "map"), ("controller.proportional", -1.0)):
        before = node.parameters()
        with pytest.raises(ConfigError):
            node.set_parameter(name, value)
        assert node.parameters() == before
    with pytest.raises(UnknownNameError, match="there are: distance"):
        node.set_parameter("nothing", 1)
    with pytest.raises(AttributeError):
        node.config.distance = 2.0  # type: ignore[misc]


def test_parameter_services_list_get_describe_and_set(harness: BusHarness) -> None:
    wall = harness.add(WallFollower(), "wall")
    listed = harness.call("/wall/list_parameters", ry.srv.ListParameters)
    assert listed.result.names == sorted(ros_parameters(wall))
    assert set(wall.parameters()) - set(listed.result.names) == {"controller.limit", "filters"}, "ROS holds neither"
    nested = harness.call("/wall/list_parameters", ry.srv.ListParameters, prefixes=["controller"])
    assert nested.result.names == ["controller.proportional"]
    got = harness.call("/wall/get_parameters", ry.srv.GetParameters, names=["distance", "nothing"])
    assert [from_value(v) for v in got.values] == [0.5, None]
    names = ["distance", "count", "frame", "controller.proportional"]
    described = harness.call("/wall/describe_parameters", ry.srv.DescribeParameters, names=names).descriptors
    assert described[0].floating_point_range[0].to_value == 5.0
    assert (described[0].description, described[1].integer_range[0].to_value) == ("Distance to the wall.", 10)
    assert [item.read_only for item in described] == [False, False, True, False]
    changes = [Parameter(name="distance", value=to_value(value)) for value in (2.0, 99.0)]
    results = harness.call("/wall/set_parameters", ry.srv.SetParameters, parameters=changes).results
    assert [r.successful for r in results] == [True, False]
    assert "99 m is above 5 m" in results[1].reason
    assert wall.config.distance == 2.0


def test_entries_of_mappings_are_read_only_parameters(harness: BusHarness) -> None:
    wall = harness.add(WallFollower(filters={"slow": {"proportional": 2}, "fast": {}}), "wall")
    name = "filters.slow.proportional"
    got = harness.call("/wall/get_parameters", ry.srv.GetParameters, names=[name, "filters.fast.proportional"])
    assert [from_value(value) for value in got.values] == [2.0, 1.0]
    described = harness.call("/wall/describe_parameters", ry.srv.DescribeParameters, names=[name]).descriptors[0]
    assert (described.read_only, described.floating_point_range[0].to_value) == (True, 100.0)
    with pytest.raises(ConfigError, match="at start"):
        wall.set_parameter(name, 3.0)


values = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1).map(tuple),
    st.lists(st.floats(allow_nan=False), min_size=1).map(tuple), st.lists(st.text(), min_size=1).map(tuple),
    st.lists(st.booleans(), min_size=1).map(tuple),
)  # fmt: skip


@given(values)
def test_parameter_values_survive_their_message(value: object) -> None:
    assert from_value(to_value(value)) == value


class BoundedNodeConfig(ry.Config):
    """Configuration of `BoundedNode`."""

    gains: tuple[float, ...] = ry.parameter((1.0, 2.0), low=0.0, high=5.0, runtime=True)
    number: int = ry.parameter(1, runtime=True)
    names: tuple[str, ...] = ry.parameter((), runtime=True)


class BoundedNode(ry.Node[BoundedNodeConfig]):
    """Tuples with limits."""


@pytest.mark.parametrize(
    ("name", "value"),
    [("gains", (1.0, 9.0)), ("gains", (1.0, float("nan"))), ("number", 2**63), ("names", ({},)), ("names", ("a", 1))],
)
def test_parameter_values_without_message_form_are_refused(harness: BusHarness, name: str, value: object) -> None:
    node = harness.add(BoundedNode(), "node")
    before = node.parameters()
    with pytest.raises(ConfigError, match=f"/node, parameter '{name}'"):
        node.set_parameter(name, value)
    assert node.parameters() == before


@given(st.lists(st.one_of(st.integers(0, 5), st.floats(0.0, 5.0)), max_size=5))
def test_integers_become_floats_in_float_parameters(values: list[float]) -> None:
    with BusHarness() as harness:
        node = harness.add(BoundedNode(), "node")
        node.set_parameter("gains", values)
        assert node.config.gains == tuple(float(value) for value in values)
        assert all(type(value) is float for value in node.config.gains)


@given(st.lists(st.tuples(st.sampled_from(["distance", "count", "side"]), st.integers(-1, 8)), max_size=4))
def test_set_atomically_sets_all_or_none(changes: list[tuple[str, int]]) -> None:
    with BusHarness() as harness:
        wall = harness.add(WallFollower(), "wall")
        before = wall.parameters()
        reply = harness.call(
            "/wall/set_parameters_atomically",
            ry.srv.SetParametersAtomically,
            parameters=[Parameter(name=name, value=to_value(value)) for name, value in changes],
        )
        allowed = {"distance": range(1, 6), "count": [n for n in range(11) if n != 7], "side": ()}
        fits = all(value in allowed[name] for name, value in dict(changes).items())
        assert reply.result.successful == fits
        assert wall.parameters() == (before | dict(changes) if fits else before)
        assert fits or reply.result.reason
