"""What one act of reading carries along: where files are found, what was noted, how much was read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from roboyard.description.findings import Finding, Mending
from roboyard.description.meshes import mesh_problem
from roboyard.description.resources import MESH_BYTES, Resources
from roboyard.description.values import fault, shown
from roboyard.description.xml import Node
from roboyard.errors import DescriptionError, MendableError

T = TypeVar("T")

MAX_ELEMENTS = 1_000_000  # over all files of one reading
MAX_FILES = 4_000
MAX_NESTING = 24
MAX_FINDINGS = 5_000


class Reading:
    """Collects findings and keeps the bounds while a description and all it includes is read.

    Args:
        resources: Resolves URIs.
        repair: Whether faults that can be mended are mended and listed instead of refused.
        survey: Whether to read on after a fault that cannot be mended, to find those beside it; see ``attempt``.

    Attributes:
        resources: Resolves URIs.
        repair: See above.
        survey: See above.
        faults: What was found wrong in a survey and cannot be mended.
        parsed: Files read so far.
        stack: The models and files being read just now, outermost first.
    """

    def __init__(self, resources: Resources, *, repair: bool = False, survey: bool = False) -> None:
        self.resources = resources
        self.repair = repair
        self.survey = survey
        self.faults: list[DescriptionError] = []
        self.parsed: dict[Path, tuple[Node, tuple[Finding, ...]]] = {}
        self.stack: list[str] = []
        self._findings: dict[Finding, None] = {}
        self._mendings: dict[Mending, None] = {}
        self._elements = 0
        self._files = 0

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything noted so far, in order, each once."""
        return tuple(self._findings)

    @property
    def mendings(self) -> tuple[Mending, ...]:
        """Every fault that was mended so far, in order."""
        return tuple(self._mendings)

    def attempt(self, read: Callable[[], T], otherwise: T) -> T:
        """What ``read`` gives; in a survey its error is kept, and ``otherwise`` stands in, so that reading goes on.

        Raises:
            DescriptionError: as ``read``, unless in a survey.
        """
        if not self.survey:
            return read()
        try:
            return read()
        except DescriptionError as error:
            if error not in self.faults and len(self.faults) < MAX_FINDINGS:
                self.faults.append(error)
            return otherwise

    def mend(self, node: Node, what: str, valid: str, done: str, *, needed: bool = True) -> None:
        """A fault at ``node`` with a remedy; returning means that the caller is to apply it.

        Args:
            node: Where it is.
            what: The fault, with link or joint.
            valid: What would be right.
            done: The remedy: what stands in its place.
            needed: Whether the file is refused without it.

        Raises:
            DescriptionError: mending was not asked for, or there are too many faults.
        """
        if not self.repair or len(self._mendings) >= MAX_FINDINGS:
            raise MendableError(what, where=node.where, valid=valid)
        self._mendings[Mending(what, done, valid, node.file, node.line, needed)] = None

    def mend_or_note(self, node: Node, what: str, valid: str, done: str, otherwise: str) -> bool:
        """A fault that one can live with: mended on request (then True), else a finding that says ``otherwise``."""
        if self.repair and len(self._mendings) < MAX_FINDINGS:
            self._mendings[Mending(what, done, valid, node.file, node.line, needed=False)] = None
            return True
        self.note(node, f"{what}; {otherwise}")
        return False

    def note(self, node: Node, what: str) -> None:
        """Record something not understood or guessed."""
        self.add((Finding(what, node.file, node.line),))

    def add(self, findings: Iterable[Finding]) -> None:
        """Record findings of a part."""
        for finding in findings:
            if len(self._findings) == MAX_FINDINGS:
                finding = Finding("too many findings; the rest is left out", finding.file, finding.line)
                self._findings[finding] = None
            elif len(self._findings) < MAX_FINDINGS:
                self._findings[finding] = None

    def count(self, node: Node, elements: int) -> None:
        """Account for a file or template being read. Raises DescriptionError when it becomes too much."""
        self._elements += elements
        self._files += 1
        if self._elements > MAX_ELEMENTS or self._files > MAX_FILES:
            raise fault(
                "the description includes too much",
                node,
                f"at most {MAX_ELEMENTS} elements in {MAX_FILES} files",
            )

    @contextmanager
    def inside(self, name: str, node: Node) -> Iterator[None]:
        """While reading the part ``name``. Raises DescriptionError when parts nest too deep."""
        if len(self.stack) >= MAX_NESTING:
            raise fault(f"models are nested more than {MAX_NESTING} deep", node)
        self.stack.append(name)
        try:
            yield
        finally:
            self.stack.pop()

    @contextmanager
    def strictly(self, strict: bool) -> Iterator[None]:
        """While ``strict``, nothing is mended: for what is of no matter, so that it need not be."""
        repair, self.repair = self.repair, self.repair and not strict
        try:
            yield
        finally:
            self.repair = repair

    def unknown(self, node: Node, known: Collection[str], unused: Collection[str] = ()) -> None:
        """Note each child element that is not in ``known``; ``unused`` ones are understood but have no effect here."""
        for child in node.children:
            if child.tag in known:
                continue
            if child.tag in unused:
                self.note(child, f"<{child.tag}> in <{node.tag}> has no effect here")
            else:
                self.note(child, f"<{child.tag[:60]}> in <{node.tag}> is not understood")

    def file(self, uri: str, node: Node, what: str, *, limit: int = MESH_BYTES) -> Path | None:
        """The readable file behind ``uri``; None with a finding where there is none.

        Args:
            uri: package://, model://, file://, absolute or relative.
            node: Where it stands; relative paths start at its file.
            what: "mesh", "texture", … for the finding.
            limit: Largest size [bytes].
        """
        found = self.resources.resolve(uri, base=node.file)
        problem = found.problem
        if found.guess:
            self.note(node, f"{what} {shown(uri, 200)}: {found.guess}")
        if found.path is not None:
            problem = self.resources.unreadable(found.path, limit)
            if not problem and what == "mesh":
                problem = mesh_problem(found.path)
            if not problem:
                return found.path
        self.note(node, f"{what} {shown(uri, 200)}: {problem}; a placeholder stands for it")
        return None
