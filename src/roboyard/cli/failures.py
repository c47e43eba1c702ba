"""Every way the command can fail: which line it says and which code it exits with."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from contextlib import suppress

import typer

from roboyard.cli import terminal
from roboyard.errors import InputError, RepairableError, RoboyardError, describe_exception

DONE, NOT_HELD, BAD_INPUT, BUG, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 70, 130, 141
"""Exit codes. 70 is EX_SOFTWARE of sysexits.h; 130 and 141 are what shells show for Ctrl-C and a closed pipe."""

ClickError: type[Exception] = typer.BadParameter.__mro__[2]
"""Whatever the command line's parser raises for wrong usage (the class has moved between versions of typer)."""

_NO_FILE = ("No such option: -f", "No such option: --file")
_LIVE_ONLY = {"service", "action", "param", "pub", "pause", "resume", "step", "rate", "stop", "teleop"}
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (
    errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG,
    errno.ELOOP, errno.EINVAL,
)  # fmt: skip
"""What is wrong with a place that the user named."""
_THEIRS = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError)


def report(error: BaseException, *, as_json: bool) -> int:
    """Say what went wrong and give the exit code."""
    code, text = _judge(error)
    if text:
        terminal.complain(text)
        if isinstance(error, RepairableError):
            terminal.note("`roboyard convert FILE --to FORMAT --repair` writes it mended, and lists what it mended")
        if os.environ.get("ROBOYARD_DEBUG") == "1":
            traceback.print_exception(error)
        if as_json:
            terminal.emit({"error": text, "exit_code": code})
    return code


def _judge(error: BaseException) -> tuple[int, str]:
    if isinstance(error, typer.Exit):
        return int(error.exit_code), ""
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return INTERRUPTED, ""
    if isinstance(error, SystemExit):  # the verbs raise typer.Exit
        return NOT_HELD, f"code that this command loaded {describe_exception(error)}"
    if isinstance(error, BrokenPipeError):
        _forget_output()
        return PIPE_CLOSED, ""
    if isinstance(error, ClickError):
        return BAD_INPUT, _usage(error)
    if isinstance(error, RoboyardError):
        cause = error.__cause__.errno if isinstance(error.__cause__, OSError) else None
        begun = getattr(error, "trigger", "") != "setup"  # what a node cannot begin with was given to it
        refused = isinstance(error if begun else error.__cause__, InputError)
        theirs = cause in _REFUSED or (refused and cause not in _FULL)
        return BAD_INPUT if theirs else NOT_HELD, str(error)
    if isinstance(error, OSError):
        return _judge_system(error)
    if isinstance(error, MemoryError):
        return NOT_HELD, "the memory is full (fewer workers, or a smaller world)"
    name = f"{type(error).__name__}: {error}".rstrip(": ")
    return BUG, f"this is a bug in Roboyard: {name} (ROBOYARD_DEBUG=1 shows where; please report it)"


def _usage(error: Exception) -> str:
    text = str(getattr(error, "format_message", error.__str__)()).strip().replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    if context is None:
        return text
    if type(error).__name__ == "NoArgsIsHelpError":
        terminal.note(context.get_help())
        return ""
    if text.startswith(_NO_FILE) and _LIVE_ONLY.intersection(context.command_path.split()[1:]):
        return "recordings hold messages, and nobody who answers: this verb needs a live run (--run NAME)"
    return f"{text} (see {context.command_path} --help)"


def _judge_system(error: OSError) -> tuple[int, str]:
    place = f"{error.filename}: " if error.filename is not None else ""
    if error.errno in _FULL:
        _forget_output()  # it may be what is full
        return NOT_HELD, f"{place}the disk is full (free some space, or write elsewhere)"
    return (
        BAD_INPUT if isinstance(error, _THEIRS) or error.errno in _REFUSED else NOT_HELD
    ), f"{place}{error.strerror or error}"


def _forget_output() -> None:
    """Nobody takes the rest of standard output; without this the interpreter complains while it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
