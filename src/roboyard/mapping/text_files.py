"""Lines of text files made by others: read with limits, numbers checked, times to the nanosecond."""

from __future__ import annotations

import gzip
import io
import math
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from roboyard.config import atomic_path
from roboyard.errors import InputError

MAX_LINE: Final = 1 << 16
MAX_LINES: Final = 20_000_000


def read_lines(path: Path | str) -> Iterator[tuple[int, str]]:
    """Lines of a file, gzipped or not, with their numbers from 1.

    Raises:
        InputError: it cannot be read, is cut off, or is no text of lines.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file():  # a pipe would let us wait for ever
            raise InputError("is no file", location=str(path))
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file = gzip.GzipFile(fileobj=raw) if zipped else raw
            with io.TextIOWrapper(file, encoding="utf-8", errors="replace") as text:
                for number in range(1, MAX_LINES + 1):
                    line = text.readline(MAX_LINE)
                    if not line:
                        return
                    if len(line) >= MAX_LINE or "\0" in line:
                        raise InputError("is no text", location=f"{path}:{number}", valid="lines of numbers")
                    yield number, line
        raise InputError(f"has more than {MAX_LINES} lines", location=str(path))
    except EOFError as error:
        raise InputError("the gzipped file is cut off", location=str(path)) from error
    except (OSError, zlib.error, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {reason}", location=str(path)) from error


def write_lines(path: Path | str, lines: Iterable[str]) -> None:
    """Write lines; the file is there whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    path = Path(path)
    try:
        with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", location=str(path)) from error


def numbers(words: list[str], count: int, where: str, valid: str) -> list[float]:
    """The first ``count`` words as numbers.

    Raises:
        InputError: there are fewer, or one is no finite number.
    """
    if len(words) < count:
        raise InputError(f"{len(words)} numbers in a line", location=where, valid=valid)
    try:
        values = [float(word) for word in words[:count]]
    except ValueError as error:
        raise InputError(f"'{' '.join(words)[:60]}' are no numbers", location=where, valid=valid) from error
    if not all(math.isfinite(value) for value in values):
        raise InputError(f"'{' '.join(words)[:60]}' is not finite", location=where, valid=valid)
    return values


def nanoseconds(text: str, where: str) -> int:
    """A time in seconds as exact nanoseconds: those of today with microseconds do not fit a float's digits.

    Raises:
        InputError: no time, or one beyond what 64 bits hold.
    """
    whole, _, fraction = text.removeprefix("-").partition(".")
    if whole.isdecimal() and whole.isascii() and len(whole) < 10 + 1 and (fraction.isdecimal() or not fraction):
        size = int(whole) * 10**9 + int(fraction[:9].ljust(9, "0") or "0")
        return -size if text.startswith("-") else size
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) < 9e9:
        raise InputError(f"'{text[:40]}' is no time", location=where, valid="seconds")
    return round(value * 1e9)


def seconds(time_ns: int) -> str:
    """A time [ns] in seconds, to the last nanosecond."""
    whole, rest = divmod(abs(int(time_ns)), 10**9)
    return f"{'-' if time_ns < 0 else ''}{whole}.{rest:09d}"
