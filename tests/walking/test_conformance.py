"""Every registered gait keeps the contract of gaits, and `check_gait` finds gaits that break it."""

from __future__ import annotations

import itertools
from typing import ClassVar

import pytest

from roboyard.errors import ConfigError, InputError
from roboyard.walking.conformance import check_gait
from roboyard.walking.gait import GAITS, GaitPattern, LegLayout, MetachronalGait, TripodGait, WaveGait


@pytest.mark.parametrize("name", GAITS.names())
def test_registered_gaits_conform(name: str) -> None:
    check_gait(GAITS[name])


def test_gaits_of_this_package_are_registered() -> None:
    assert set(GAITS.names()) >= {"metachronal", "ripple", "tripod", "wave"}


class BrokenGait(TripodGait):
    """A tripod gait that breaks one promise."""

    violation: ClassVar[str] = ""
    calls = itertools.count()

    def min_duty_factor(self, layout: LegLayout) -> float:
        """Return a duty factor, as the violation wants it."""
        return {"smallest duty factor": 1.0, "fewer than three feet": 0.1}.get(self.violation, 0.5)

    def phases(self, layout: LegLayout, duty_factor: float) -> tuple[float, ...]:
        """Return phases, as the violation wants them."""
        phases = super().phases(layout, duty_factor)
        match self.violation:
            case "phases for":
                return phases[:-1]
            case "not all from 0":
                return tuple(phase + 0.5 for phase in phases)
            case "other phases":
                return tuple((phase + next(self.calls) * 0.01) % 1.0 for phase in phases)
            case "half a cycle apart":
                return tuple(row / (layout.n_rows + 1) for row in layout.rows)
            case "stability margin":
                return tuple(0.5 * side for side in layout.sides)
        return phases


@pytest.mark.parametrize(
    "violation",
    [
        "smallest duty factor", "fewer than three feet", "phases for", "not all from 0", "other phases",
        "half a cycle apart", "stability margin",
    ],
)  # fmt: skip
def test_gait_check_finds_each_violation(violation: str) -> None:
    gait = BrokenGait()
    gait.violation = violation  # type: ignore[misc]
    with pytest.raises(InputError, match=violation):
        check_gait(gait)


class ReversedWaveGait(WaveGait):
    """The wave from the front to the rear, with which four legs tip over."""

    def phases(self, layout: LegLayout, duty_factor: float) -> tuple[float, ...]:
        """Return the phases of the wave gait for the pairs in reversed order."""
        reversed_rows = tuple(layout.n_rows - 1 - row for row in layout.rows)
        return super().phases(LegLayout(layout.sides, reversed_rows), duty_factor)


def test_gait_check_finds_that_a_reversed_wave_tips_four_legs_over() -> None:
    with pytest.raises(InputError, match="margin of -.* with 4 legs"):
        check_gait(ReversedWaveGait)


class UnevenGait(MetachronalGait):
    """A gait whose pairs are not half a cycle apart with six legs."""

    def phases(self, layout: LegLayout, duty_factor: float) -> tuple[float, ...]:
        """Return phases that are closer together with six legs."""
        phases = super().phases(layout, duty_factor)
        return tuple(0.9 * phase for phase in phases) if layout.n_rows == 3 else phases


def test_gait_check_finds_a_declared_symmetry_that_holds_for_some_legs_only() -> None:
    with pytest.raises(InputError, match="declared symmetric, but with 6 legs"):
        check_gait(UnevenGait)


def test_incomplete_gait_class_is_refused() -> None:
    class Incomplete(GaitPattern):
        def min_duty_factor(self, layout: LegLayout) -> float:
            return 0.5

    with pytest.raises(ConfigError, match="does not define phases"):
        GAITS._checked(Incomplete, "entry point")
