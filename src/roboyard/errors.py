"""The errors users see: each says what is wrong, where, and what would be right."""

from __future__ import annotations


class RoboyardError(Exception):
    """Root of every error Roboyard raises on purpose.

    Args:
        what: What is wrong, as a short clause.
        where: The place: ``file:line``, a node's name, a key path.
        valid: What would have been right, e.g. the available names.
    """

    def __init__(self, what: str, *, where: str | None = None, valid: str | None = None) -> None:
        self.what = str(what)  # Gymnasium's workers hand errors on wrapped in their own class
        self.where = where
        self.valid = valid
        super().__init__(self.what)

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text} ({self.valid})" if self.valid else text


def describe_exception(error: BaseException) -> str:
    """What was raised, as one clause: a Roboyard error's text, a call of ``sys.exit``, or the type and its text."""
    if isinstance(error, RoboyardError):
        return str(error)
    if isinstance(error, SystemExit):
        return f"called sys.exit({'' if error.code is None else repr(error.code)})"
    return f"{type(error).__name__}: {error}"


class InputError(RoboyardError):
    """Something the user gave (file, name, value) cannot be used; the command line exits with 2."""


class ConfigError(InputError):
    """A key or value in a YAML file or a parameter is unknown, of the wrong type or unit, or out of range."""


class UnknownNameError(InputError):
    """A name does not exist; the message lists the names that do."""


class DescriptionError(InputError):
    """A robot or world description is malformed or physically impossible."""


class MendableError(DescriptionError):
    """A fault of a description that is mended where ``repair`` is asked for."""


class MessageError(InputError):
    """A message, its type, or its bytes are not what they claim to be."""


class RecordingError(InputError):
    """A recording or log cannot be read or written."""


class RunError(RoboyardError):
    """The run started but cannot go on; the command line exits with 1."""
