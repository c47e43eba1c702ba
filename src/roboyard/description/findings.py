"""What a reader has to say about a file: things not understood, and faults that it mended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something the reader did not understand or had to guess, with its place."""

    what: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


@dataclass(frozen=True, slots=True)
class Mending:
    """A fault in a file, and what was done about it when mending was asked for.

    Attributes:
        what: The fault, with the link or joint it is in.
        done: What stands in its place now.
        valid: What would be right.
        file: Where it is.
        line: Where in it.
        needed: Whether the file is refused without it; one can live with the others.
    """

    what: str
    done: str
    valid: str
    file: str
    line: int
    needed: bool = True

    @property
    def fault(self) -> str:
        """The fault alone, as the refusal says it."""
        return f"{self.file}:{self.line}: {self.what}" + (f" ({self.valid})" if self.valid else "")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}: {self.done}"
