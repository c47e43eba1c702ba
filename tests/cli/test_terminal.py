"""Tables, JSON, exit codes, and that nothing but one line comes of a failure."""

import errno
import io
import json
import math
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command

from roboyard.cli import display, failures, terminal
from roboyard.cli.figures import Figure
from roboyard.cli.findings import shortened
from roboyard.cli.metering import bandwidth_of, rate_of
from roboyard.cli.publishing import type_and_values
from roboyard.errors import ConfigError, InputError, RecordingError, RunError
from roboyard.scenarios import Control


class Colour(Enum):
    RED = "red"


def test_json_accepts_every_value() -> None:
    data = {
        "a": np.float32(0.5),
        "b": np.array([1, 2]),
        "c": [math.nan, math.inf, (1, 2)],
        "d": Path("x/y"),
        "e": Colour.RED,
        "f": Figure("f", 1.0),
        1: {None: True},
    }
    text = json.dumps(terminal.plain(data), allow_nan=False)
    found = json.loads(text)
    assert found["a"] == 0.5
    assert found["b"] == [1, 2]
    assert found["c"] == [None, None, [1, 2]]
    assert found["d"] == "x/y"
    assert found["e"] == "red"
    assert found["f"]["name"] == "f"
    assert found["1"] == {"None": True}


def test_table_columns_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.table(("name", "n"), [("a", 5), ("long name", 1234), ("x", None)], right=("n",))
    assert capsys.readouterr().out == "NAME          N\na             5\nlong name  1234\nx             -\n"
    terminal.table(("name", "n"), [])
    terminal.columns([])
    terminal.fields([])
    assert capsys.readouterr().out == "NAME  N\n"


def test_colors_are_used_on_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert terminal.paint("x", "1", Screen()) == "\x1b[1mx\x1b[0m"
    assert terminal.paint("x", "1", io.StringIO()) == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert terminal.paint("x", "1", Screen()) == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert terminal.paint("x", "1", Screen()) == "x"


def caused(error: Exception, number: int) -> Exception:
    error.__cause__ = OSError(number, "because")
    return error


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (InputError("bad", location="x.yaml:3", valid="good"), 2, "error: x.yaml:3: bad (good)\n"),
        (ConfigError("two\nlines"), 2, "error: two lines\n"),
        (RunError("it fell over"), 1, "error: it fell over\n"),
        (caused(RecordingError("cannot be written"), errno.ENOSPC), 1, "error: cannot be written\n"),
        (caused(RunError("cannot be written"), errno.ENOSPC), 1, "error: cannot be written\n"),
        (caused(RunError("cannot be written"), errno.EROFS), 2, "error: cannot be written\n"),
        (caused(RunError("cannot be written"), errno.EIO), 1, "error: cannot be written\n"),
        (OSError(errno.EROFS, "Read-only file system", "a"), 2, "error: a: Read-only file system\n"),
        (KeyboardInterrupt(), 130, ""),
        (FileNotFoundError(errno.ENOENT, "No such file", "a"), 2, "error: a: No such file\n"),
        (OSError(errno.EIO, "I/O error", "a"), 1, "error: a: I/O error\n"),
        (MemoryError(), 1, "error: the memory is full (fewer workers, or a smaller world)\n"),
    ],
)
def test_errors_have_their_exit_codes_and_one_line(
    error: BaseException, code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failures.report(error, as_json=False) == code
    assert capsys.readouterr() == ("", text)


def test_unexpected_error_is_reported_as_a_bug(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert failures.report(ZeroDivisionError("division by zero"), as_json=True) == 70
    out, err = capsys.readouterr()
    assert "this is a bug in Roboyard: ZeroDivisionError: division by zero" in err
    assert "Traceback" not in err
    assert json.loads(out)["exit_code"] == 70
    monkeypatch.setenv("ROBOYARD_DEBUG", "1")
    failures.report(ZeroDivisionError("division by zero"), as_json=False)
    assert "ZeroDivisionError: division by zero" in capsys.readouterr().err


def test_wrong_usage_is_one_error(command: Command) -> None:
    for words, expected in (
        (["topic", "ecco"], "Did you mean 'echo'? (see roboyard topic --help)"),
        (["run"], "Missing argument 'SCENARIO'"),
        (["run", "x", "--sed", "1"], "--seed"),
        (["run", "x", "--seed", "-1"], "--seed"),
        (["run", "x", "--seed", "many"], "--seed"),
        (["list", "things"], "robots"),
        (["batch", "x", "--runs", "0"], "--runs"),
    ):
        done = command(*words)
        assert done.code == 2, words
        assert expected in done.error, words
    done = command("run", "--json")
    assert done.json["exit_code"] == 2
    assert "Missing argument" in done.json["error"]


def test_help_and_version_are_printed(command: Command) -> None:
    done = command("--help")
    assert done.code == 0
    for heading in ("Run and judge:", "Steer a live run:", "Recordings:"):
        assert heading in done.out
    assert command("topic", "-h").code == 0
    assert command("--version").out.startswith("roboyard 0")
    bare = command()
    assert bare.code == 2
    assert "Usage: roboyard" in bare.err


def test_rates_of_few_messages_are_none() -> None:
    assert rate_of("/a", []).rate is None
    assert rate_of("/a", [(0, 1)]).rate is None
    assert rate_of("/a", [(5, 1), (5, 1)]).rate is None
    assert "all at one instant" in str(rate_of("/a", [(5, 1), (5, 1)]))
    two = rate_of("/a", [(0, 1), (500_000_000, 1)])
    assert two.rate == pytest.approx(2.0)
    assert bandwidth_of("/a", []).per_second is None
    assert bandwidth_of("/a", [(0, 10), (10**9, 30)]).per_second == pytest.approx(30.0)


def test_figures_are_compared_with_their_targets() -> None:
    assert Figure("a", 5.0, target=">= 5").held
    assert Figure("a", 5.0, target="< 5").held is False
    assert Figure("a", 5.0, target="ratio >= 6", ratio=7.0).held
    assert Figure("a", 5.0, target="ratio >= 6").held is None
    assert Figure("a", None, target=">= 5").held is None
    assert Figure("a", 5.0).held is None
    assert Figure("a", 5.0, target="as fast as navfn").held is None


def test_repeated_findings_are_merged() -> None:
    found = [
        "a.sdf:1: <x> does nothing",
        "a.sdf:7: <x> does nothing",
        "b.sdf:1: <x> does nothing",
        "guessed",
        "guessed",
    ]
    assert shortened(found) == [
        "a.sdf:1: <x> does nothing (and at 1 more place)",
        "b.sdf:1: <x> does nothing",
        "guessed",
    ]


def test_type_is_read_before_values() -> None:
    assert type_and_values(["Twist", "{}"]) == ("Twist", {})
    assert type_and_values(["geometry_msgs/msg/Twist"]) == ("geometry_msgs/msg/Twist", {})
    assert type_and_values(["{a: 1}"]) == (None, {"a": 1})
    assert type_and_values([]) == (None, {})


@pytest.mark.parametrize("columns", [30, 50, 80])
def test_last_column_wraps_on_narrow_terminals(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read column by column, the words are all there, in their order."""

    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    words = [f"word{number}" for number in range(30)]
    for show in (
        lambda: terminal.fields([("a", "b"), ("names", " ".join(words))]),
        lambda: terminal.columns([("a", "b"), ("names", " ".join(words))]),
        lambda: terminal.table(("a", "b"), [("names", " ".join(words))]),
    ):
        screen = Screen()
        monkeypatch.setattr("sys.stdout", screen)
        show()
        lines = screen.getvalue().splitlines()
        assert all(len(line) <= columns for line in lines)
        start = next(number for number, line in enumerate(lines) if line.startswith("names"))
        assert " ".join(line[len("names") :].strip() for line in lines[start:]).split() == words


def test_progress_without_terminal_is_a_line_every_10_s(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(display, "wall_seconds", lambda: now)
    shown = display.Display("short", 5.0, Control())
    shown.stage("drawing the video")
    for frame in range(120):  # 0.25 s each
        now += 0.25
        shown.stage(f"drawing the video: frame {frame} of 120")
    shown.stage("writing the report")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("short: drawing the video")
    assert lines[-1].endswith("short: writing the report")
    assert [line.rpartition("frame ")[2] for line in lines[1:-1]] == ["39 of 120", "79 of 120", "119 of 120"]
