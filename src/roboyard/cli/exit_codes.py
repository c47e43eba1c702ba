"""Exit codes of the program, and the line in which each error ends it."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from contextlib import suppress
from enum import IntEnum

import typer

from roboyard.cli import terminal
from roboyard.errors import InputError, RepairableError, RoboyardError, describe_exception


class ExitCode(IntEnum):
    """Exit codes of every command."""

    SUCCESS = 0
    FAILURE = 1
    BAD_INPUT = 2
    BUG = 70
    INTERRUPTED = 130
    PIPE_CLOSED = 141
    TERMINATED = 143


EXIT_CODE_MEANINGS: dict[ExitCode, str] = {
    ExitCode.SUCCESS: "the command succeeded, and all criteria passed",
    ExitCode.FAILURE: "a criterion failed, no solution was found, or the run failed",
    ExitCode.BAD_INPUT: "an argument, option or file cannot be used",
    ExitCode.BUG: "a bug in Roboyard (EX_SOFTWARE of sysexits.h)",
    ExitCode.INTERRUPTED: "Ctrl-C ended the command",
    ExitCode.PIPE_CLOSED: "the reader of the output closed the pipe",
    ExitCode.TERMINATED: "SIGTERM ended the command",
}
"""The meaning of each exit code. 130, 141 and 143 are 128 plus the number of the signal, as shells show them."""


def exit_unless_success(code: ExitCode | int) -> None:
    """End the command with this exit code where it is not success.

    Raises:
        typer.Exit: The code is not 0.
    """
    if code:
        raise typer.Exit(int(code))


def signal_exit_code(number: int) -> int:
    """Return the exit code of a command that this signal ended."""
    return 128 + number


ClickError: type[Exception] = typer.BadParameter.__mro__[2]
"""Base class of the parser's errors for wrong usage (the class has moved between versions of typer)."""

_MISSING_FILE_OPTION = ("No such option: -f", "No such option: --file")
_LIVE_ONLY = {"service", "action", "param", "pub", "pause", "resume", "step", "rate", "stop", "teleop"}
_DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_BAD_PATH_ERRNOS = (
    errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG,
    errno.ELOOP, errno.EINVAL,
)  # fmt: skip
"""Errors of the system that concern a path which the user named."""
_BAD_PATH_ERRORS = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError)


def report_error(error: BaseException, *, as_json: bool) -> int:
    """Print an error in one line, or also as a JSON object, and return the exit code."""
    code, text = _classify_error(error)
    if text:
        terminal.print_error(text)
        if isinstance(error, RepairableError):
            terminal.print_note(
                "`roboyard convert FILE --to FORMAT --repair` writes a repaired copy, and lists the repairs"
            )
        if os.environ.get("ROBOYARD_DEBUG") == "1":
            traceback.print_exception(error)
        if as_json:
            terminal.print_json({"error": text, **_error_details(error), "exit_code": code})
    return code


def _error_details(error: BaseException) -> dict[str, str | None]:
    """Parts of an error that has them: the message, the location, and what was expected."""
    if not isinstance(error, RoboyardError):
        return {}
    return {"message": error.message, "location": error.location, "expected": error.valid}


def _classify_error(error: BaseException) -> tuple[int, str]:
    if isinstance(error, typer.Exit):
        return int(error.exit_code), ""
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return ExitCode.INTERRUPTED, ""
    if isinstance(error, SystemExit):  # commands raise typer.Exit
        return ExitCode.FAILURE, f"code that this command loaded {describe_exception(error)}"
    if isinstance(error, BrokenPipeError):
        _discard_output()
        return ExitCode.PIPE_CLOSED, ""
    if isinstance(error, ClickError):
        return ExitCode.BAD_INPUT, _usage_error_text(error)
    if isinstance(error, RoboyardError):
        cause = error.__cause__.errno if isinstance(error.__cause__, OSError) else None
        has_started = getattr(error, "trigger", "") != "setup"  # a node that fails in its setup was given bad values
        is_input_error = isinstance(error if has_started else error.__cause__, InputError)
        is_user_error = cause in _BAD_PATH_ERRNOS or (is_input_error and cause not in _DISK_FULL_ERRNOS)
        return ExitCode.BAD_INPUT if is_user_error else ExitCode.FAILURE, str(error)
    if isinstance(error, OSError):
        return _classify_os_error(error)
    if isinstance(error, MemoryError):
        return ExitCode.FAILURE, "the memory is full (use fewer workers or a smaller world)"
    name = f"{type(error).__name__}: {error}".rstrip(": ")
    return ExitCode.BUG, f"this is a bug in Roboyard: {name} (ROBOYARD_DEBUG=1 shows where; please report it)"


def _usage_error_text(error: Exception) -> str:
    text = str(getattr(error, "format_message", error.__str__)()).strip().replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    if context is None:
        return text
    if type(error).__name__ == "NoArgsIsHelpError":
        terminal.print_note(context.get_help())
        return ""
    if text.startswith(_MISSING_FILE_OPTION) and _LIVE_ONLY.intersection(context.command_path.split()[1:]):
        return "a recording cannot answer requests: this command needs a live run (--run NAME)"
    return f"{text} (see {context.command_path} --help)"


def _classify_os_error(error: OSError) -> tuple[int, str]:
    path_prefix = f"{error.filename}: " if error.filename is not None else ""
    if error.errno in _DISK_FULL_ERRNOS:
        _discard_output()  # it may be what is full
        return ExitCode.FAILURE, f"{path_prefix}the disk is full (free some space, or write to another disk)"
    return (
        ExitCode.BAD_INPUT
        if isinstance(error, _BAD_PATH_ERRORS) or error.errno in _BAD_PATH_ERRNOS
        else ExitCode.FAILURE
    ), f"{path_prefix}{error.strerror or error}"


def _discard_output() -> None:
    """Discard the rest of standard output; otherwise the interpreter reports an error while it ends."""
    with suppress(OSError, ValueError):
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, sys.stdout.fileno())
        os.close(null_device)
