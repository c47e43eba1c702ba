"""One owner of joints at a time: laws of `JointOwners`."""

from __future__ import annotations

import pytest

from roboyard.control.owners import JointOwners
from roboyard.errors import InputError


def test_nobody_takes_joints_from_one_that_moves_them() -> None:
    owners = JointOwners()
    owners.take("/a", ("x", "y"))
    with pytest.raises(InputError, match="being moved by /a"):
        owners.take("/b", ("z", "y"))
    assert not owners.owns("/b", ("z",))  # the refusal took nothing
    assert owners.owns("/a", ("y", "x"))


def test_at_rest_the_next_one_takes_them_and_the_earlier_one_lets_go() -> None:
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


def test_who_holds_takes_only_what_nobody_has() -> None:
    owners = JointOwners()
    owners.hold("/a", ("x",))
    owners.hold("/b", ("x", "y"))
    assert owners.owns("/a", ("x",))
    assert not owners.owns("/b", ("y",))
    owners.take("/b", ("x", "y"))  # who holds is at rest
    assert owners.owns("/b", ("x", "y"))


def test_a_stop_reaches_whoever_moves_one_of_the_joints_and_nobody_else() -> None:
    owners, told = JointOwners(), []
    for source in ("/a", "/b", "/c"):
        owners.join(source, lambda source=source: told.append(source))
    owners.take("/a", ("x", "y"))
    owners.take("/b", ("z",))
    owners.hold("/c", ("w",))
    assert owners.stop(("y", "w")) == ["/a"]
    assert told == ["/a"]


def test_a_pause_is_of_joints() -> None:
    owners = JointOwners()
    owners.pause(("x", "y"), True)
    owners.pause(("y",), False)
    assert owners.paused(("x", "z"))
    assert not owners.paused(("y", "z"))
