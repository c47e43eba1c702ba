"""Saved states from the command line: saved at a time or live, gone on from, and refused in one line."""

from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.cli.test_cli_runs import start, wait_until_live


def test_a_run_is_saved_and_goes_on(command: Command, scenario: Path) -> None:
    words = ("run", scenario, "--no-video", "--out")
    assert command(*words, "first", "--save-state", "0.25:a.state", "--save-state", "400 ms:b.state").code == 0
    for name in "ab":
        done = command(*words, name, "--from-state", f"{name}.state")
        assert done.code == 0, done
        assert (Path(name) / "recording.mcap").read_bytes() == Path("first/recording.mcap").read_bytes()


def test_a_live_run_is_saved(command: Command, scenario: Path) -> None:
    words = ("run", scenario, "--duration", "1.5", "--no-video", "--out")
    with start(*words, "first", "--rate", "1") as process:
        wait_until_live(0.2)
        path = command("save", "--json").json["state"]
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 0, out
    assert Path(path).parent == Path("first").resolve()
    assert command(*words, "second", "--from-state", path).code == 0
    assert Path("second/recording.mcap").read_bytes() == Path("first/recording.mcap").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--save-state", "soon:x"), "T:FILE, as 12.5"),
        (("--save-state", "0.3"), "names no file"),
        (("--save-state", "0.3:"), "names no file"),
        (("--save-state", "3:x.state"), "3 s is not in the run"),
        (("--save-state", "-1:x.state"), "is not in the run"),
        (("--save-state", "nan:x.state"), "--save-state nan"),
        (("--save-state", "0.1:nowhere/x.state"), "cannot be a file"),
        (("--from-state", "nothing.state"), "nothing.state: there is no such file"),
        (("--from-state", "."), "is a folder"),
        (("--from-state", "/dev/null"), "/dev/null"),
    ],
)
def test_bad_words(command: Command, scenario: Path, options: tuple[str, ...], message: str) -> None:
    done = command("run", scenario, "--out", "out", *options)
    assert done.code == 2, done
    assert message in done.error
    assert not Path("out").exists()
