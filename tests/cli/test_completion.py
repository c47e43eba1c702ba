"""Shell completion: of commands, options and names, in the forms that bash, zsh and fish read."""

import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from roboyard.bringup import catalog
from roboyard.cli.completion import SCALAR_SCENARIO_KEYS

HEAVY = {"numpy", "mujoco", "numba", "scipy", "matplotlib", "rosbags", "lxml", "trimesh", "rich"}
PROGRAM = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); " + (
    "sys.argv = ['roboyard']; from roboyard.cli.main import main; main()"
)


def complete(*words: str, shell: str = "bash", **environment: str) -> tuple[list[str], set[str]]:
    """Ask as a shell does; the last word is incomplete. Returns the lines, and the modules that were imported."""
    line = " ".join(["roboyard", *words])
    request = {"_ROBOYARD_COMPLETE": f"complete_{shell}", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    if shell != "bash":
        request |= {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        del request["COMP_WORDS"]
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, **request, **environment}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return list(filter(None, result.stdout.splitlines())), {name.partition(".")[0] for name in result.stderr.split()}


def test_commands_are_completed() -> None:
    assert complete("pl")[0] == ["plan"]
    assert complete("plan", "st")[0] == ["steps"]
    assert {"run", "batch", "topic", "doctor"} <= set(complete("")[0])


def test_options_are_completed() -> None:
    assert complete("run", "rover-drive", "--wor")[0] == ["--world"]
    assert set(complete("topic", "echo", "--f")[0]) == {"--file", "--field", "--full-length"}


def test_names_are_completed_without_heavy_modules() -> None:
    cases = {
        ("run", "rover-d"): {"rover-drive"},
        ("run", "rover-drive", "--robot", "rov"): {"rover"},
        ("check", "world", "are"): {"arena"},
        ("list", "nodes", "amc"): {"amcl"},
        ("replay", "x.mcap", "--node", "odom"): {name for name in catalog.NODES.names() if name.startswith("odom")},
    }
    for words, expected in cases.items():
        lines, imported = complete(*words)
        assert set(lines) == expected, words
        assert not imported & HEAVY, words


def test_settings_of_the_scenario_are_completed() -> None:
    lines, imported = complete("run", "rover-homing", "--set", "nodes.amcl.")
    assert "nodes.amcl.parameters.set_initial_pose=" in lines
    assert "method=tree" in complete("run", "rover-homing", "--set", "me")[0]
    assert complete("run", "rover-homing", "--set", "dur")[0] == ["duration="]
    assert not imported & HEAVY


def test_fixed_keys_are_keys_of_scenarios() -> None:
    from roboyard.scenarios.schema import ScenarioConfig

    assert set(SCALAR_SCENARIO_KEYS) <= {field.name for field in fields(ScenarioConfig)}


def test_topics_and_nodes_of_a_recording_are_completed(recording: Path) -> None:
    assert complete("topic", "echo", "--file", str(recording), "/co")[0] == ["/count"]
    assert complete("topic", "echo", "--file", str(recording), "tw")[0] == ["twist"]
    assert complete("node", "info", "--file", str(recording), "/robot")[0] == ["/robot"]


def test_topics_and_names_of_a_live_run_are_completed(shared_runtime_folder: Path) -> None:
    environment = {"XDG_RUNTIME_DIR": str(shared_runtime_folder)}
    assert complete("topic", "hz", "/tw", **environment)[0] == ["/twist"]
    assert complete("param", "get", "robot", **environment)[0] == ["robot"]
    assert complete("pause", "--run", "ya", **environment)[0] == ["yard"]


def test_unknown_files_complete_to_nothing() -> None:
    assert complete("topic", "echo", "--file", "missing.mcap", "/co")[0] == []
    assert complete("run", "no-such-scenario", "--set", "d")[0] == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_names_with_summaries(shell: str) -> None:
    lines, imported = complete("run", "rover-d", shell=shell)
    assert any("rover-drive" in line for line in lines)
    assert not imported & (HEAVY - {"rich"})


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed_for_the_calling_shell(shell: str, tmp_path: Path) -> None:
    program = "import shellingham, sys; shellingham.detect_shell = lambda: (sys.argv.pop(), ''); " + (
        "from roboyard.cli.main import main; main()"
    )

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, *words, shell]
        return subprocess.run(
            command, env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True, check=False
        )

    result = run("--install-completion")
    assert (result.returncode, result.stderr) == (0, "")
    files = [path for path in tmp_path.rglob("*") if path.is_file() and "_ROBOYARD_COMPLETE" in path.read_text()]
    assert len(files) == 1
    assert str(files[0]) in result.stdout
    script = run("--show-completion").stdout
    assert script.strip() == files[0].read_text().strip()


def test_unknown_shell_is_one_error() -> None:
    program = "import shellingham, sys; shellingham.detect_shell = lambda: ('tcsh', ''); " + (
        "from roboyard.cli.main import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, "--install-completion"], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "error: no completion for the shell tcsh (bash, zsh, fish)\n"
