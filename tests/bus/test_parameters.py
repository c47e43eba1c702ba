"""Parameters are typed and ranged, and a node can refuse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import BusHarness

import roboyard as ry
from roboyard.bus.parameter_services import from_value, to_value
from roboyard.errors import ConfigError, UnknownNameError

Parameter = ry.msg.rcl_interfaces.Parameter


class WallFollower(ry.Node):
    """Keeps a distance."""

    distance: float = ry.param(0.5, unit="m", low=0.1, high=5.0, doc="distance to the wall")
    side: str = ry.param("left", choices=("left", "right"))
    count: int = ry.param(3, low=0, high=10)
    active: bool = ry.param(True)
    gains: tuple[float, ...] = ry.param((1.0, 2.0))
    frame: str = ry.param("base_link", fixed=True)
    robot = ry.resource(dict, optional=True)

    def on_parameter(self, name: str, value: object) -> None:
        if name == "count" and value == 7:
            raise ConfigError("seven is unlucky", location=self.full_name)


def test_parameters_take_defaults_and_keywords() -> None:
    assert (WallFollower().distance, WallFollower(distance=2).distance, WallFollower().gains) == (0.5, 2.0, (1.0, 2.0))
    assert isinstance(WallFollower(distance=2).distance, float)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"distance": 9.0}, r"distance.*9.0 is out of range \(float in \[0.1, 5\] m\)"),
        ({"distance": float("nan")}, "out of range"),
        ({"distance": "far"}, "'far' is not a float"),
        ({"distance": True}, "True is not a float"),
        ({"side": "up"}, "one of 'left', 'right'"),
        ({"count": 2.5}, "2.5 is not an int"),
        ({"gains": (1.0, "x")}, "entries of another type"),
        ({"speed": 1.0}, "no parameter or resource 'speed'.*distance, side"),
        ({"robot": 3}, "resource 'robot' is a int"),
    ],
)
def test_bad_parameter_values_give_reason_and_range(given_: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        WallFollower(**given_)


def test_missing_resource_is_named() -> None:
    class Needs(ry.Node):
        hardware = ry.resource(dict)

    with pytest.raises(ConfigError, match="resource 'hardware' is missing"):
        Needs()


def test_parameter_changes_are_checked_and_announced(harness: BusHarness) -> None:
    node = harness.add(WallFollower(), "wall")
    node.set_parameter("distance", 1)
    assert node.distance == 1.0
    events = harness.published("/parameter_events").messages
    assert [(e.node, e.changed_parameters[0].name) for e in events] == [("/wall", "distance")]
    for name, value in (("distance", 7.0), ("count", 7), ("frame", "map")):
        before = node.parameters()
        with pytest.raises(ConfigError):
            node.set_parameter(name, value)
        assert node.parameters() == before
    with pytest.raises(UnknownNameError, match="there are: distance"):
        node.set_parameter("nothing", 1)
    with pytest.raises(ConfigError):
        node.distance = 2.0  # type: ignore[misc]


def test_parameter_services_list_get_describe_and_set(harness: BusHarness) -> None:
    wall = harness.add(WallFollower(), "wall")
    listed = harness.call("/wall/list_parameters", ry.srv.ListParameters)
    assert listed.result.names == sorted(wall.parameters())
    got = harness.call("/wall/get_parameters", ry.srv.GetParameters, names=["distance", "nothing"])
    assert [from_value(v) for v in got.values] == [0.5, None]
    names = ["distance", "count", "frame"]
    described = harness.call("/wall/describe_parameters", ry.srv.DescribeParameters, names=names).descriptors
    assert described[0].floating_point_range[0].to_value == 5.0
    assert described[2].read_only
    changes = [Parameter(name="distance", value=to_value(value)) for value in (2.0, 99.0)]
    results = harness.call("/wall/set_parameters", ry.srv.SetParameters, parameters=changes).results
    assert [r.successful for r in results] == [True, False]
    assert "out of range" in results[1].reason
    assert wall.distance == 2.0


values = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1).map(tuple),
    st.lists(st.floats(allow_nan=False), min_size=1).map(tuple), st.lists(st.text(), min_size=1).map(tuple),
    st.lists(st.booleans(), min_size=1).map(tuple),
)  # fmt: skip


@given(values)
def test_parameter_values_survive_their_message(value: object) -> None:
    assert from_value(to_value(value)) == value


class BoundedNode(ry.Node):
    """Tuples with limits."""

    gains: tuple[float, ...] = ry.param((1.0, 2.0), low=0.0, high=5.0)
    whole: int = ry.param(1)
    names: tuple[str, ...] = ry.param(())


@pytest.mark.parametrize(
    ("name", "value"),
    [("gains", (1.0, 9.0)), ("gains", (1.0, float("nan"))), ("whole", 2**63), ("names", ({},)), ("names", ("a", 1))],
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
        assert node.gains == tuple(float(value) for value in values)
        assert all(type(value) is float for value in node.gains)


@pytest.mark.parametrize("default", [None, [1.0], {}, object()])
def test_impossible_parameter_defaults_fail_in_the_class(default: object) -> None:
    with pytest.raises((TypeError, RuntimeError)):  # before Python 3.12 the one is wrapped in the other

        class _Odd(ry.Node):
            value = ry.param(default)


@given(st.lists(st.tuples(st.sampled_from(["distance", "count", "side"]), st.integers(-1, 8)), max_size=4))
def test_set_atomically_sets_all_or_none(changes: list[tuple[str, int]]) -> None:
    with BusHarness() as harness:
        wall = harness.add(WallFollower(), "wall")
        before = wall.parameters()
        answer = harness.call(
            "/wall/set_parameters_atomically",
            ry.srv.SetParametersAtomically,
            parameters=[Parameter(name=name, value=to_value(value)) for name, value in changes],
        )
        allowed = {"distance": range(1, 6), "count": [n for n in range(11) if n != 7], "side": ()}
        fits = all(value in allowed[name] for name, value in changes)
        assert answer.result.successful == fits
        assert wall.parameters() == (before | dict(changes) if fits else before)
        assert fits or answer.result.reason
