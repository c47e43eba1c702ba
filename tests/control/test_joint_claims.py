"""One owner of joints at a time: laws of `JointOwners`."""

from __future__ import annotations

import pytest

from roboyard.control.joint_claims import JointClaims
from roboyard.errors import InputError


def test_moving_source_keeps_its_joints() -> None:
    claims = JointClaims()
    claims.claim("/a", ("x", "y"))
    with pytest.raises(InputError, match="being moved by /a"):
        claims.claim("/b", ("z", "y"))
    assert not claims.has_claim("/b", ("z",))  # the refusal took nothing
    assert claims.has_claim("/a", ("y", "x"))


def test_source_at_rest_releases_joints_to_the_next() -> None:
    claims = JointClaims()
    claims.claim("/a", ("x",))
    claims.finish_motion("/a")
    assert claims.has_claim("/a", ("x",))
    claims.claim("/b", ("x",))
    assert not claims.has_claim("/a", ("x",))
    with pytest.raises(InputError):
        claims.claim("/a", ("x",))
    claims.unregister("/b")
    claims.claim("/a", ("x",))


def test_holding_source_claims_only_free_joints() -> None:
    claims = JointClaims()
    claims.claim_if_free("/a", ("x",))
    claims.claim_if_free("/b", ("x", "y"))
    assert claims.has_claim("/a", ("x",))
    assert not claims.has_claim("/b", ("y",))
    claims.claim("/b", ("x", "y"))  # who holds is at rest
    assert claims.has_claim("/b", ("x", "y"))


def test_stop_reaches_the_moving_source_only() -> None:
    claims, stopped = JointClaims(), []
    for source in ("/a", "/b", "/c"):
        claims.register(source, lambda source=source: stopped.append(source))
    claims.claim("/a", ("x", "y"))
    claims.claim("/b", ("z",))
    claims.claim_if_free("/c", ("w",))
    assert claims.stop(("y", "w")) == ["/a"]
    assert stopped == ["/a"]


def test_pause_belongs_to_joints() -> None:
    claims = JointClaims()
    claims.set_paused(("x", "y"), True)
    claims.set_paused(("y",), False)
    assert claims.is_paused(("x", "z"))
    assert not claims.is_paused(("y", "z"))
