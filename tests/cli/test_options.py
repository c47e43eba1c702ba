"""Options and help pages of all commands: one meaning per option, headings, and pages that fit a screen."""

import ast
import warnings
from collections import defaultdict
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
import typer
from tests.cli.conftest import Command
from typer.testing import CliRunner

import roboyard.cli.commands
from roboyard.cli import options
from roboyard.cli.app import make_app, make_summary_app
from roboyard.cli.exit_codes import EXIT_CODE_MEANINGS, ExitCode, exit_unless_success, signal_exit_code
from roboyard.cli.main import _cache_warnings_as_lines
from roboyard.compute import KernelCacheWarning
from roboyard.config import parameter
from roboyard.config.parameter import parameter_info
from roboyard.scenarios.run_options import RunOptions

COMMAND_FILES = sorted(Path(roboyard.cli.commands.__file__).parent.glob("*.py"))
TWO_MEANINGS = {
    "--rate": "a rate [Hz] in `topic pub` and a factor elsewhere: `ros2 topic pub` and `ros2 bag play` have both",
    "--to": "the format of descriptions in `convert` and of recordings in `bag convert`",
}
"""Options with two meanings, and the reason."""
SHARED = {
    one.names[0].partition("/")[0]: one for one in vars(options).values() if isinstance(one, options.SharedOption)
}


def all_commands() -> dict[str, Any]:
    """Every command by its words, e.g. "topic echo"."""
    found: dict[str, Any] = {}

    def visit(command: Any, words: tuple[str, ...]) -> None:
        if hasattr(command, "commands"):
            for name, inner in command.commands.items():
                visit(inner, (*words, name))
        else:
            found[" ".join(words)] = command

    visit(typer.main.get_command(make_app()), ())
    return found


def options_by_name() -> dict[str, dict[str, Any]]:
    """Every option by its long name, and by the command that has it."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for words, command in all_commands().items():
        for one in command.params:
            if one.param_type_name == "option":
                found[max(one.opts, key=len)][words] = one
    return found


OPTIONS = options_by_name()


@pytest.mark.parametrize("name", sorted(name for name, uses in OPTIONS.items() if len(uses) > 1))
def test_option_has_one_meaning_in_all_commands(name: str) -> None:
    """An option of several commands is a shared one: the same names, the same type, the same beginning of its help."""
    uses = OPTIONS[name]
    if name in TWO_MEANINGS:
        return
    if len({id(use.callback) for use in uses.values()}) > 1 or len({use.help for use in uses.values()}) > 1:
        assert name in SHARED, {words: use.help for words, use in uses.items()}
    if name in SHARED:
        for words, use in uses.items():
            assert use.help.startswith(SHARED[name].meaning), words
    assert len({tuple(sorted([*use.opts, *use.secondary_opts])) for use in uses.values()}) == 1, sorted(uses)
    assert len({use.is_flag for use in uses.values()}) == 1, sorted(uses)
    types = {_value_type(use) for use in uses.values()}
    assert len(types) == 1, (types, sorted(uses))


def _value_type(option: Any) -> str:
    annotation = option.type_descriptor.annotation
    return str(get_args(annotation)[0] if get_origin(annotation) is list else annotation)


def test_two_meanings_are_real() -> None:
    for name in TWO_MEANINGS:
        assert len({use.help for use in OPTIONS[name].values()}) > 1


@pytest.mark.parametrize("words", sorted(all_commands()))
def test_help_is_plain_and_says_what_every_option_does(words: str) -> None:
    command = all_commands()[words]
    assert command.help[0].isupper()
    for one in command.params:
        if one.param_type_name == "option":
            assert one.help, (words, one.name)
            assert one.help.rstrip(".")[0].isupper(), (words, one.help)


@pytest.mark.parametrize(
    "words", sorted(words for words, one in all_commands().items() if words not in ("teleop", "view"))
)
def test_every_command_that_prints_data_has_json(words: str) -> None:
    assert "--json" in {name for one in all_commands()[words].params for name in one.opts}


@pytest.mark.parametrize("columns", [80, 100])
def test_help_of_run_fits_a_screen_under_headings(
    command: Command, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = command("run", "--help").out.splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= columns
    headings = [line.rstrip(":") for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Arguments", "Scenario", "Execution", "Output", "View and bridges"]


def test_help_lists_every_exit_code(command: Command) -> None:
    assert set(EXIT_CODE_MEANINGS) == set(ExitCode)
    page = command("--help").out
    for code, meaning in EXIT_CODE_MEANINGS.items():
        assert f"{int(code):>5}  {meaning}" in page


def test_finish_ends_with_a_code_only_after_failures() -> None:
    exit_unless_success(ExitCode.SUCCESS)
    with pytest.raises(typer.Exit) as caught:
        exit_unless_success(ExitCode.FAILURE)
    assert caught.value.exit_code == 1
    assert signal_exit_code(2) == ExitCode.INTERRUPTED
    assert signal_exit_code(15) == ExitCode.TERMINATED


@pytest.mark.parametrize("file", COMMAND_FILES, ids=lambda file: file.stem)
def test_commands_print_and_end_in_one_way(file: Path) -> None:
    """Results go through `print_result`, exit codes through `finish`."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            assert name not in ("print", "print_json", "typer.echo", "sys.exit"), (file.name, node.lineno)
            assert name != "typer.Exit", (file.name, node.lineno)


def test_errors_in_json_have_their_parts(command: Command) -> None:
    found = command("run", "nothing", "--json").json
    assert found["message"] == "no scenario 'nothing'"
    assert "or a path to a file" in found["expected"]
    assert found["error"] == f"{found['message']} ({found['expected']})"


def test_options_of_run_come_from_the_declarations() -> None:
    """Name, default and help of an option are those of the field; the command gets an instance of the class."""
    declared = {one.name: one for one in fields(RunOptions)}
    options_of_run = {one.name: one for one in all_commands()["run"].params}
    for name in ("replay_inputs", "from_snapshot", "out"):
        help_text = options_of_run[name].help.lower()
        assert parameter_info(declared[name]).doc.lower() in help_text
        assert options_of_run[name].default is declared[name].default


def test_decorated_command_gets_an_instance() -> None:
    @dataclass(frozen=True)
    class Limits:
        """Options of the command below."""

        max_runs: int = parameter(3, doc="largest number of runs")
        report: Path | None = parameter(None, doc="file of the report")

    received: list[object] = []

    @options.with_options(Limits, {"max_runs": "Limits", "report": "Output"})
    def command(name: str, *, options: Limits) -> None:
        received.append((name, options))

    app = typer.Typer(add_completion=False)
    app.command()(command)
    result = CliRunner().invoke(app, ["a", "--max-runs", "5", "--report", "r.html"])
    assert (result.exit_code, received) == (0, [("a", Limits(5, Path("r.html")))])
    assert CliRunner().invoke(app, ["a"]).exit_code == 0
    assert received[-1] == ("a", Limits())
    assert "largest number of runs" in CliRunner().invoke(app, ["--help"]).output.lower()


def test_help_of_the_program_is_that_of_the_program_with_all_options() -> None:
    """The summaries that the quick help shows are those of the full commands."""
    summaries, full = (CliRunner().invoke(app, ["--help"]) for app in (make_summary_app(), make_app()))
    assert summaries.exit_code == full.exit_code == 0
    assert summaries.output == full.output


@pytest.mark.parametrize("words", [("--", "list", "worlds"), ("list", "worlds")])
def test_command_behind_a_separator_is_executed(command: Command, words: tuple[str, ...]) -> None:
    """No command line executes a command of which only the summary is loaded."""
    result = command(*words)
    assert result.code == 0
    assert "arena" in result.out


def test_kernel_cache_warnings_are_notes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A command shows a cache warning as a note, any other warning as Python does, and restores the function."""
    displayed: list[str] = []

    def show(message: Warning | str, *_: object, **__: object) -> None:
        displayed.append(str(message))

    monkeypatch.setattr(warnings, "showwarning", show)
    with _cache_warnings_as_lines(), warnings.catch_warnings(record=False):
        warnings.simplefilter("always")
        for text, category in (("a", UserWarning), ("b", KernelCacheWarning), ("c", UserWarning)):
            warnings.showwarning(text, category, "file", 1)  # type: ignore[arg-type]
    assert displayed == ["a", "c"]
    assert "warning: b" in capsys.readouterr().err
    assert warnings.showwarning is show
