"""Names of topics, services and nodes resolve as in ROS."""

from __future__ import annotations

import pytest

from roboyard.bus.names import frame_prefix, normalize_namespace, resolve
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


@pytest.mark.parametrize(
    ("namespace", "topic", "prefix"),
    [("", "/x", ""), ("/", "/x", ""), ("r", "/r/x", "r/"), ("/r/", "/r/x", "r/"), ("/a/b", "/a/b/x", "a/b/")],
)
def test_namespace_prefixes_topics_and_frames(namespace: str, topic: str, prefix: str) -> None:
    assert resolve("x", normalize_namespace(namespace), "n") == topic
    assert frame_prefix(namespace) == prefix
