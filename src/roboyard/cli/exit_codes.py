"""Exit codes of the program, and the line in which each error ends it."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from contextlib import suppress

import typer

from roboyard.cli import terminal
from roboyard.errors import InputError, RepairableError, RoboyardError, describe_exception

SUCCESS, FAILURE, BAD_INPUT, BUG, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 70, 130, 141
"""Exit codes. 70 is EX_SOFTWARE of sysexits.h; 130 and 141 are what shells show for Ctrl-C and a closed pipe."""

ClickError: type[Exception] = typer.BadParameter.__mro__[2]
"""Whatever the command line's parser raises for wrong usage (the class has moved between versions of typer)."""

_MISSING_FILE_OPTION = ("No such option: -f", "No such option: --file")
_LIVE_ONLY = {"service", "action", "param", "pub", "pause", "resume", "step", "rate", "stop", "teleop"}
_DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_BAD_PATH_ERRNOS = (
    errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG,
    errno.ELOOP, errno.EINVAL,
)  # fmt: skip
"""What is wrong with a place that the user named."""
_BAD_PATH_ERRORS = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError)


def report_error(error: BaseException, *, as_json: bool) -> int:
    """Say what went wrong and give the exit code."""
    code, text = _classify_error(error)
    if text:
        terminal.print_error(text)
        if isinstance(error, RepairableError):
            terminal.print_note(
                "`roboyard convert FILE --to FORMAT --repair` writes it mended, and lists what it mended"
            )
        if os.environ.get("ROBOYARD_DEBUG") == "1":
            traceback.print_exception(error)
        if as_json:
            terminal.print_json({"error": text, "exit_code": code})
    return code


def _classify_error(error: BaseException) -> tuple[int, str]:
    if isinstance(error, typer.Exit):
        return int(error.exit_code), ""
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return INTERRUPTED, ""
    if isinstance(error, SystemExit):  # the verbs raise typer.Exit
        return FAILURE, f"code that this command loaded {describe_exception(error)}"
    if isinstance(error, BrokenPipeError):
        _discard_output()
        return PIPE_CLOSED, ""
    if isinstance(error, ClickError):
        return BAD_INPUT, _usage_error_text(error)
    if isinstance(error, RoboyardError):
        cause = error.__cause__.errno if isinstance(error.__cause__, OSError) else None
        has_started = getattr(error, "trigger", "") != "setup"  # what a node cannot begin with was given to it
        is_input_error = isinstance(error if has_started else error.__cause__, InputError)
        is_user_error = cause in _BAD_PATH_ERRNOS or (is_input_error and cause not in _DISK_FULL_ERRNOS)
        return BAD_INPUT if is_user_error else FAILURE, str(error)
    if isinstance(error, OSError):
        return _classify_os_error(error)
    if isinstance(error, MemoryError):
        return FAILURE, "the memory is full (fewer workers, or a smaller world)"
    name = f"{type(error).__name__}: {error}".rstrip(": ")
    return BUG, f"this is a bug in Roboyard: {name} (ROBOYARD_DEBUG=1 shows where; please report it)"


def _usage_error_text(error: Exception) -> str:
    text = str(getattr(error, "format_message", error.__str__)()).strip().replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    if context is None:
        return text
    if type(error).__name__ == "NoArgsIsHelpError":
        terminal.print_note(context.get_help())
        return ""
    if text.startswith(_MISSING_FILE_OPTION) and _LIVE_ONLY.intersection(context.command_path.split()[1:]):
        return "recordings hold messages, and nobody who answers: this verb needs a live run (--run NAME)"
    return f"{text} (see {context.command_path} --help)"


def _classify_os_error(error: OSError) -> tuple[int, str]:
    path_prefix = f"{error.filename}: " if error.filename is not None else ""
    if error.errno in _DISK_FULL_ERRNOS:
        _discard_output()  # it may be what is full
        return FAILURE, f"{path_prefix}the disk is full (free some space, or write elsewhere)"
    return (
        BAD_INPUT if isinstance(error, _BAD_PATH_ERRORS) or error.errno in _BAD_PATH_ERRNOS else FAILURE
    ), f"{path_prefix}{error.strerror or error}"


def _discard_output() -> None:
    """Nobody takes the rest of standard output; without this the interpreter complains while it ends."""
    with suppress(OSError, ValueError):
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, sys.stdout.fileno())
        os.close(null_device)
