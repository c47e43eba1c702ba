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
    assert owners.may("/b", ("z",))  # the refusal took nothing
    assert not owners.owns("/b", ("z",))
    assert not owners.may("/b", ("y",))


def test_at_rest_the_next_one_takes_them_and_the_earlier_one_lets_go() -> None:
    owners = JointOwners()
    owners.take("/a", ("x",))
    owners.rest("/a")
    assert owners.owns("/a", ("x",))
    owners.take("/b", ("x",))
    assert not owners.may("/a", ("x",))
    with pytest.raises(InputError):
        owners.take("/a", ("x",))
