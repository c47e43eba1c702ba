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

from roboyard.cli import exit_codes, run_display, terminal
from roboyard.cli.arguments import parse_type_and_values
from roboyard.cli.benchmarks import BenchmarkFigure
from roboyard.cli.commands.topic import format_rate
from roboyard.cli.terminal import merge_findings
from roboyard.errors import ConfigError, InputError, RecordingError, RunError
from roboyard.record.topic_statistics import compute_bandwidth, compute_rate
from roboyard.scenarios import RunControl


class Color(Enum):
    RED = "red"


def test_json_accepts_every_value() -> None:
    data = {
        "a": np.float32(0.5),
        "b": np.array([1, 2]),
        "c": [math.nan, math.inf, (1, 2)],
        "d": Path("x/y"),
        "e": Color.RED,
        "f": BenchmarkFigure("f", 1.0),
        1: {None: True},
    }
    text = json.dumps(terminal.to_json_data(data), allow_nan=False)
    found = json.loads(text)
    assert found["a"] == 0.5
    assert found["b"] == [1, 2]
    assert found["c"] == [None, None, [1, 2]]
    assert found["d"] == "x/y"
    assert found["e"] == "red"
    assert found["f"]["name"] == "f"
    assert found["1"] == {"None": True}


def test_table_columns_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_table(("name", "n"), [("a", 5), ("long name", 1234), ("x", None)], right=("n",))
    assert capsys.readouterr().out == "NAME          N\na             5\nlong name  1234\nx             -\n"
    terminal.print_table(("name", "n"), [])
    terminal.print_columns([])
    terminal.print_fields([])
    assert capsys.readouterr().out == "NAME  N\n"


def test_colors_are_used_on_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert terminal.style("x", "1", Screen()) == "\x1b[1mx\x1b[0m"
    assert terminal.style("x", "1", io.StringIO()) == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert terminal.style("x", "1", Screen()) == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert terminal.style("x", "1", Screen()) == "x"


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
        (MemoryError(), 1, "error: the memory is full (use fewer workers or a smaller world)\n"),
    ],
)
def test_errors_have_their_exit_codes_and_one_line(
    error: BaseException, code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_codes.report_error(error, as_json=False) == code
    assert capsys.readouterr() == ("", text)


def test_unexpected_error_is_reported_as_a_bug(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert exit_codes.report_error(ZeroDivisionError("division by zero"), as_json=True) == 70
    out, err = capsys.readouterr()
    assert "this is a bug in Roboyard: ZeroDivisionError: division by zero" in err
    assert "Traceback" not in err
    assert json.loads(out)["exit_code"] == 70
    monkeypatch.setenv("ROBOYARD_DEBUG", "1")
    exit_codes.report_error(ZeroDivisionError("division by zero"), as_json=False)
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
        result = command(*words)
        assert result.code == 2, words
        assert expected in result.error, words
    result = command("run", "--json")
    assert result.json["exit_code"] == 2
    assert "Missing argument" in result.json["error"]


def test_help_and_version_are_printed(command: Command) -> None:
    result = command("--help")
    assert result.code == 0
    for heading in ("Run and evaluate:", "Control a live run:", "Recordings:", "Exit codes:"):
        assert heading in result.out
    assert command("topic", "-h").code == 0
    assert command("--version").out.startswith("roboyard 0")
    bare = command()
    assert bare.code == 2
    assert "Usage: roboyard" in bare.err


def test_rates_of_few_messages_are_none() -> None:
    assert compute_rate("/a", []).rate is None
    assert compute_rate("/a", [(0, 1)]).rate is None
    assert compute_rate("/a", [(5, 1), (5, 1)]).rate is None
    assert "same time" in format_rate(compute_rate("/a", [(5, 1), (5, 1)]))
    two = compute_rate("/a", [(0, 1), (500_000_000, 1)])
    assert two.rate == pytest.approx(2.0)
    assert compute_bandwidth("/a", []).per_second is None
    assert compute_bandwidth("/a", [(0, 10), (10**9, 30)]).per_second == pytest.approx(30.0)


def test_figures_are_compared_with_their_targets() -> None:
    assert BenchmarkFigure("a", 5.0, target=">= 5").is_target_met
    assert BenchmarkFigure("a", 5.0, target="< 5").is_target_met is False
    assert BenchmarkFigure("a", 5.0, target="ratio >= 6", ratio=7.0).is_target_met
    assert BenchmarkFigure("a", 5.0, target="ratio >= 6").is_target_met is None
    assert BenchmarkFigure("a", None, target=">= 5").is_target_met is None
    assert BenchmarkFigure("a", 5.0).is_target_met is None
    assert BenchmarkFigure("a", 5.0, target="as fast as navfn").is_target_met is None


def test_repeated_findings_are_merged() -> None:
    found = [
        "a.sdf:1: <x> does nothing",
        "a.sdf:7: <x> does nothing",
        "b.sdf:1: <x> does nothing",
        "guessed",
        "guessed",
    ]
    assert merge_findings(found) == [
        "a.sdf:1: <x> does nothing (and at 1 more place)",
        "b.sdf:1: <x> does nothing",
        "guessed",
    ]


def test_type_is_read_before_values() -> None:
    assert parse_type_and_values(["Twist", "{}"]) == ("Twist", {})
    assert parse_type_and_values(["geometry_msgs/msg/Twist"]) == ("geometry_msgs/msg/Twist", {})
    assert parse_type_and_values(["{a: 1}"]) == (None, {"a": 1})
    assert parse_type_and_values([]) == (None, {})


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
        lambda: terminal.print_fields([("a", "b"), ("names", " ".join(words))]),
        lambda: terminal.print_columns([("a", "b"), ("names", " ".join(words))]),
        lambda: terminal.print_table(("a", "b"), [("names", " ".join(words))]),
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
    monkeypatch.setattr(run_display, "wall_seconds", lambda: now)
    displayed = run_display.RunDisplay("short", 5.0, RunControl())
    displayed.show_phase("drawing the video")
    for frame in range(120):  # 0.25 s each
        now += 0.25
        displayed.show_phase(f"drawing the video: frame {frame} of 120")
    displayed.show_phase("writing the report")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("short: drawing the video")
    assert lines[-1].endswith("short: writing the report")
    assert [line.rpartition("frame ")[2] for line in lines[1:-1]] == ["39 of 120", "79 of 120", "119 of 120"]
