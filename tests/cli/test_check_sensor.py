"""`roboyard check sensor` and `roboyard list sensors`."""

import json
from pathlib import Path

import pytest

from roboyard.cli.main import main

GOOD = """
from dataclasses import dataclass
from roboyard.sensors import SimulatedSensor

@dataclass(frozen=True)
class Reading:
    time_ns: int
    value: float

class Good(SimulatedSensor[Reading]):
    kind = "height"
    def measure(self, time_ns, elapsed_ns):
        return Reading(time_ns, float(self.context.world.data.site_xpos[self.site][2]))

class Late(Good):
    def measure(self, time_ns, elapsed_ns):
        return Reading(time_ns + 1, 0.0)
"""


def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *args: str) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["roboyard", *args])
    with pytest.raises(SystemExit) as finished:
        main()
    out, err = capsys.readouterr()
    return int(finished.value.code or 0), out, err


def test_custom_sensor_is_checked(capsys, monkeypatch, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(GOOD)
    code, out, _ = call(capsys, monkeypatch, "check", "sensor", f"{file}:Good", "--json")
    assert code == 0
    assert len(json.loads(out.splitlines()[-1])["sensors"]["Good"]["passed"]) == 5
    code, _, err = call(capsys, monkeypatch, "check", "sensor", f"{file}:Late")
    assert code == 1
    assert "time_ns" in err
    for wrong in (f"{file}:Nobody", "roboyard.errors:InputError", "nonsense"):
        code, _, err = call(capsys, monkeypatch, "check", "sensor", wrong)
        assert code == 2
        assert err.count("\n") == 1


def test_sensor_presets_are_listed(capsys, monkeypatch) -> None:
    code, out, _ = call(capsys, monkeypatch, "list", "sensors")
    assert code == 0
    assert "sick_lms200" in out
