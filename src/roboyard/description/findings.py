"""What a reader has to say about a file: things not understood, and faults that it mended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReaderWarning:
    """Something the reader did not understand or had to guess, with its place."""

    message: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Repair:
    """A fault in a file, and what was done about it when mending was asked for.

    Attributes:
        problem: The fault, with the link or joint it is in.
        action: What stands in its place now.
        valid: What would be right.
        file: Where it is.
        line: Where in it.
        is_required: Whether the file is refused without it; one can live with the others.
    """

    problem: str
    action: str
    valid: str
    file: str
    line: int
    is_required: bool = True

    @property
    def error_text(self) -> str:
        """The fault alone, as the refusal says it."""
        return f"{self.file}:{self.line}: {self.problem}" + (f" ({self.valid})" if self.valid else "")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.problem}: {self.action}"
