"""How many examples Hypothesis tries: `pytest --hypothesis-profile quick`, `ci` (the default) or `nightly`.

A law says how many examples it is worth in its ``@settings``; a profile scales that number. No law is left out and no
test has to know of profiles. A test that counts its samples itself asks `sample_count` how many to take.
"""

from __future__ import annotations

import os
from typing import Any, Final

import pytest
from hypothesis import settings

QUICK_EXAMPLES: Final = 20
"""The most that profile ``quick`` tries of a law."""
NIGHTLY_FACTOR: Final = 10
"""How many times as many as written profile ``nightly`` tries."""


def register_profiles() -> None:
    """Register the profiles and load ``ci``; Hypothesis' own option loads another one later.

    No profile has a deadline: a busy machine is no failure. In CI the same examples are tried each time, so that a
    change is judged by itself; at night they are new ones.
    """
    in_ci = os.environ.get("CI") == "true"
    settings.register_profile("quick", deadline=None, derandomize=in_ci)
    settings.register_profile("ci", deadline=None, derandomize=in_ci)
    settings.register_profile("nightly", deadline=None, derandomize=False)
    settings.load_profile("ci")


def scaled(examples: int, profile: str) -> int:
    """Return how many examples a profile tries of a law that asks for ``examples``."""
    if profile == "quick":
        return min(examples, QUICK_EXAMPLES)
    return NIGHTLY_FACTOR * examples if profile == "nightly" else examples


def sample_count(full: int, fraction: float) -> int:
    """Return how many of a test's own samples (seeds, pictures, files) the loaded profile takes.

    Args:
        full: How many profile ``nightly`` takes.
        fraction: Which part of them the other profiles take; at least one sample.
    """
    return full if settings.get_current_profile_name() == "nightly" else max(1, round(full * fraction))


@pytest.hookimpl
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Scale the examples of all collected laws; the items of a parametrized one share their settings."""
    profile = settings.get_current_profile_name()
    finished: set[int] = set()
    for item in items:
        test: Any = getattr(item, "obj", None)
        if not getattr(test, "is_hypothesis_test", False):
            continue
        if hasattr(test, "_hypothesis_state_machine_class"):
            owner, name = item.getparent(pytest.Class).obj, "settings"  # type: ignore[union-attr]
        else:
            owner, name = getattr(test, "__func__", test), "_hypothesis_internal_use_settings"
        if id(owner) in finished:
            continue
        finished.add(id(owner))
        written: settings = getattr(owner, name)
        setattr(owner, name, settings(written, max_examples=scaled(written.max_examples, profile)))
