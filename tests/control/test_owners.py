"""One owner of joints at a time: laws of `JointOwners`."""

from __future__ import annotations

import pytest

from roboyard.control.owners import JointOwners
from roboyard.errors import InputError


def test_moving_owner_keeps_its_joints() -> None:
    owners = JointOwners()
    owners.take("/a", ("x", "y"))
    with pytest.raises(InputError, match="being moved by /a"):
        owners.take("/b", ("z", "y"))
    assert not owners.owns("/b", ("z",))  # the refusal took nothing
    assert owners.owns("/a", ("y", "x"))


def test_owner_at_rest_releases_joints_to_the_next() -> None:
    owners = JointOwners()
    owners.take("/a", ("x",))
    owners.rest("/a")
    assert owners.owns("/a", ("x",))
    owners.take("/b", ("x",))
    assert not owners.owns("/a", ("x",))
    with pytest.raises(InputError):
        owners.take("/a", ("x",))
    owners.leave("/b")
    owners.take("/a", ("x",))


def test_holding_owner_takes_only_free_joints() -> None:
    owners = JointOwners()
    owners.hold("/a", ("x",))
    owners.hold("/b", ("x", "y"))
    assert owners.owns("/a", ("x",))
    assert not owners.owns("/b", ("y",))
    owners.take("/b", ("x", "y"))  # who holds is at rest
    assert owners.owns("/b", ("x", "y"))


def test_stop_reaches_the_moving_owner_only() -> None:
    owners, told = JointOwners(), []
    for source in ("/a", "/b", "/c"):
        owners.join(source, lambda source=source: told.append(source))
    owners.take("/a", ("x", "y"))
    owners.take("/b", ("z",))
    owners.hold("/c", ("w",))
    assert owners.stop(("y", "w")) == ["/a"]
    assert told == ["/a"]


def test_pause_belongs_to_joints() -> None:
    owners = JointOwners()
    owners.pause(("x", "y"), True)
    owners.pause(("y",), False)
    assert owners.paused(("x", "z"))
    assert not owners.paused(("y", "z"))
