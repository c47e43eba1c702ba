"""The errors users see: each says what is wrong, where, and what would be right."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any


class RoboyardError(Exception):
    """Root of every error Roboyard raises on purpose.

    Args:
        what: What is wrong, as a short clause.
        where: The place: ``file:line``, a node's name, a key path.
        valid: What would have been right, e.g. the available names.
    """

    def __init__(self, message: str, *, location: str | None = None, valid: str | None = None) -> None:
        self.message = str(message)  # Gymnasium's workers hand errors on wrapped in their own class
        self.location = location
        self.valid = valid
        super().__init__(self.message)

    def __str__(self) -> str:
        text = f"{self.location}: {self.message}" if self.location else self.message
        return f"{text} ({self.valid})" if self.valid else text


def describe_exception(error: BaseException) -> str:
    """What was raised, as one clause: a Roboyard error's text, a call of ``sys.exit``, or the type and its text."""
    if isinstance(error, RoboyardError):
        return str(error)
    if isinstance(error, SystemExit):
        return f"called sys.exit({'' if error.code is None else repr(error.code)})"
    return f"{type(error).__name__}: {error}"


def similar_names(name: str, names: Iterable[str], count: int = 3, cutoff: float = 0.6) -> list[str]:
    """At most ``count`` of ``names`` that are spelled like ``name``, the most similar first, for the text of an error.

    Args:
        name: The name that does not exist.
        names: The names that exist; of equally similar ones the greatest in the order of strings comes first.
        count: How many names to return at most.
        cutoff: Least similarity, 0 to 1 (`difflib.SequenceMatcher.ratio`).
    """
    from difflib import get_close_matches  # used by errors only

    return get_close_matches(name, list(names), count, cutoff)


class InputError(RoboyardError):
    """Something the user gave (file, name, value) cannot be used; the command line exits with 2."""


class ConfigError(InputError):
    """A key or value in a YAML file or a parameter is unknown, of the wrong type or unit, or out of range."""


class UnknownNameError(InputError):
    """A name does not exist; the message lists the names that do."""


class DescriptionError(InputError):
    """A robot or world description is malformed or physically impossible."""


class RepairableError(DescriptionError):
    """A fault of a description that is mended where ``repair`` is asked for."""


class MessageError(InputError):
    """A message, its type, or its bytes are not what they claim to be."""


class RecordingError(InputError):
    """A recording or log cannot be read or written."""


class RunError(RoboyardError):
    """The run started but cannot go on; the command line exits with 1."""


class MissingExtraError(InputError):
    """A package that an extra of Roboyard brings is not installed; the message names the command that installs it.

    Args:
        purpose: What needs the extra, as the subject of a sentence, e.g. "writing a video".
        extra: Name of the extra.
        where: The place that asked for it: an option, a node's name.
        alternative: What helps instead of installing it, "" if nothing does.
    """

    def __init__(self, purpose: str, extra: str, *, location: str | None = None, alternative: str = "") -> None:
        command = f"pip install 'roboyard[{extra}]'"
        super().__init__(
            f"{purpose} needs the extra {extra!r}, which is not installed",
            location=location,
            valid=f"{command}, or {alternative}" if alternative else command,
        )
        self.purpose, self.extra, self.alternative = purpose, extra, alternative

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_missing_extra, (self.purpose, self.extra, self.location, self.alternative)


def _rebuild_missing_extra(purpose: str, extra: str, location: str | None, alternative: str) -> MissingExtraError:
    return MissingExtraError(purpose, extra, location=location, alternative=alternative)


def import_extra(module: str, extra: str, purpose: str, *, location: str | None = None, alternative: str = "") -> Any:
    """Import a module that an extra of Roboyard brings, at the place that uses it.

    Args:
        module: Its full name.
        extra: The extra that brings it.
        purpose: What needs it, as the subject of a sentence, e.g. "writing a video".
        where: The place that asked for it.
        alternative: What helps instead of installing the extra.

    Raises:
        MissingExtraError: The module, or a module that it imports, is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(purpose, extra, location=location, alternative=alternative) from error
