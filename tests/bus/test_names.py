"""Names of topics, services and nodes resolve as in ROS."""

from __future__ import annotations

import pytest

from roboyard.bus.names import resolve
from roboyard.errors import InputError


@pytest.mark.parametrize(
    ("name", "expected"), [("x", "/r/x"), ("/x", "/x"), ("~x", "/r/n/x"), ("~/x/y", "/r/n/x/y"), ("a/b", "/r/a/b")]
)
def test_names_resolve_as_in_ros(name: str, expected: str) -> None:
    assert resolve(name, "/r", "n") == expected


@pytest.mark.parametrize("name", ["", "9x", "a b", "/", "a//b", "x/", "ä", "a-b"])
def test_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="not a valid name"):
        resolve(name, "", "n")
