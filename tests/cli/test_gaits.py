"""`roboyard show gaits` compares the gaits of a robot, and refuses robots without legs and lifts out of reach."""

import json

import pytest
from tests.harness.live_bus import run_cli

from roboyard.walking import GAITS


def test_gaits_are_compared_as_table_and_as_json() -> None:
    table = run_cli("show", "gaits", "--robot", "akrobat")
    assert table.code == 0
    data = json.loads(run_cli("show", "gaits", "--robot", "akrobat", "--json").out)
    assert [gait["name"] for gait in data["gaits"]] == list(GAITS.names())
    for gait in data["gaits"]:
        assert f"{gait['forward_speed']:.3f}" in table.out
        assert gait["margin"] > 0.0
        assert sorted(leg for group in gait["order"] for leg in group) == ["lf", "lm", "lr", "rf", "rm", "rr"]


def test_lower_lift_is_faster() -> None:
    speeds = []
    for lift in ("0.01", "0.03"):
        data = json.loads(run_cli("show", "gaits", "--lift", lift, "--json").out)
        speeds.append({gait["name"]: gait["forward_speed"] for gait in data["gaits"]})
    assert all(speeds[0][name] > speeds[1][name] for name in speeds[0])


@pytest.mark.parametrize(
    ("words", "text"), [(("--robot", "rover"), "legs"), (("--lift", "0.9"), "lift"), (("--stride", "-1"), "stride")]
)
def test_bad_arguments_of_show_gaits_are_one_line_errors(words: tuple[str, ...], text: str) -> None:
    result = run_cli("show", "gaits", *words)
    assert result.code == 2
    assert text in result.err
    assert "Traceback" not in result.err
