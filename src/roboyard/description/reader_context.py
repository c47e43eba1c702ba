"""State shared while one description is read: file search paths, warnings, repairs and size limits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from roboyard.description.meshes.files import mesh_problem
from roboyard.description.model import ReaderWarning, Repair
from roboyard.description.resources import MAX_MESH_BYTES, Resources
from roboyard.description.xml import MAX_CHARACTERS, XmlNode, parse_xml
from roboyard.description.xml_values import error_at, quote
from roboyard.errors import DescriptionError, RepairableError

T = TypeVar("T")

MAX_ELEMENTS = 1_000_000  # over all files of one reading
MAX_FILES = 4_000
MAX_NESTING = 24
MAX_WARNINGS = 5_000


class ReaderContext:
    """Collects findings and keeps the bounds while a description and all it includes is read.

    Args:
        resources: Resolves URIs.
        repair: Whether faults that can be mended are mended and listed instead of refused.
        collect_errors: Whether to continue after a fault that cannot be repaired, to collect further ones; see
            ``try_read``.

    Attributes:
        resources: Resolves URIs.
        repair: See above.
        collect_errors: See above.
        errors: What was found wrong in a survey and cannot be mended.
        stack: The models and files being read just now, outermost first.
    """

    def __init__(self, resources: Resources, *, repair: bool = False, collect_errors: bool = False) -> None:
        self.resources = resources
        self.repair = repair
        self.collect_errors = collect_errors
        self.errors: list[DescriptionError] = []
        self.stack: list[str] = []
        self._warnings: dict[ReaderWarning, None] = {}
        self._repairs: dict[Repair, None] = {}
        self._included_files: dict[Path, tuple[XmlNode, tuple[ReaderWarning, ...]]] = {}
        self._element_count = 0
        self._file_count = 0

    @property
    def warnings(self) -> tuple[ReaderWarning, ...]:
        """Everything noted so far, in order, each once."""
        return tuple(self._warnings)

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """Every fault that was mended so far, in order."""
        return tuple(self._repairs)

    def try_read(self, read: Callable[[], T], fallback: T) -> T:
        """What ``read`` gives; in a survey its error is kept, and ``fallback`` stands in, so that reading goes on.

        Raises:
            DescriptionError: as ``read``, unless in a survey.
        """
        if not self.collect_errors:
            return read()
        try:
            return read()
        except DescriptionError as error:
            if error not in self.errors and len(self.errors) < MAX_WARNINGS:
                self.errors.append(error)
            return fallback

    def raise_collected_error(self, n_errors_before: int = 0) -> None:
        """Raise the first error that was collected after the first ``n_errors_before`` ones.

        A reader calls this between reading the parts and joining them, because what it would find wrong with the whole
        is a mere consequence of a wrong part.

        Raises:
            DescriptionError: there is such an error.
        """
        if len(self.errors) > n_errors_before:
            raise self.errors[n_errors_before]

    def repair_or_raise(
        self, node: XmlNode, problem: str, valid: str, action: str, *, is_required: bool = True
    ) -> None:
        """A fault at ``node`` with a remedy; returning means that the caller is to apply it.

        Args:
            node: Where it is.
            problem: The fault, with link or joint.
            valid: What would be right.
            action: The remedy: what stands in its place.
            is_required: Whether the file is refused without it.

        Raises:
            DescriptionError: mending was not asked for, or there are too many faults.
        """
        if not self.repair or len(self._repairs) >= MAX_WARNINGS:
            raise RepairableError(problem, location=node.location, valid=valid)
        self._repairs[Repair(problem, action, valid, node.file, node.line, is_required)] = None

    def repair_or_warn(self, node: XmlNode, problem: str, valid: str, action: str, consequence: str) -> bool:
        """A fault that one can live with: mended on request (then True), else a finding that says ``consequence``."""
        if self.repair and len(self._repairs) < MAX_WARNINGS:
            self._repairs[Repair(problem, action, valid, node.file, node.line, is_required=False)] = None
            return True
        self.warn(node, f"{problem}; {consequence}")
        return False

    def warn(self, node: XmlNode, message: str) -> None:
        """Record something not understood or guessed."""
        self.add_warnings((ReaderWarning(message, node.file, node.line),))

    def add_warnings(self, warnings: Iterable[ReaderWarning]) -> None:
        """Record findings of a part."""
        for warning in warnings:
            if len(self._warnings) == MAX_WARNINGS:
                warning = ReaderWarning("too many findings; the rest is left out", warning.file, warning.line)
                self._warnings[warning] = None
            elif len(self._warnings) < MAX_WARNINGS:
                self._warnings[warning] = None

    def count_elements(self, node: XmlNode, elements: int) -> None:
        """Account for a file or template being read. Raises DescriptionError when it becomes too much."""
        self._element_count += elements
        self._file_count += 1
        if self._element_count > MAX_ELEMENTS or self._file_count > MAX_FILES:
            raise error_at(
                "the description includes too much",
                node,
                f"at most {MAX_ELEMENTS} elements in {MAX_FILES} files",
            )

    def parse_included_file(self, path: Path, node: XmlNode, label: str) -> XmlNode:
        """Parse a file that an element of another file includes, each file once however often it is included.

        Callers share the tree and must not change it.

        Args:
            path: The file.
            node: The element that includes it.
            label: What an error calls the file.

        Raises:
            DescriptionError: the file cannot be read, is not XML, or the description includes too much.
        """
        if path not in self._included_files:
            problem = self.resources.explain_unreadable(path, MAX_CHARACTERS)
            if problem:
                raise error_at(f"{label}: {problem}", node)
            self._included_files[path] = parse_xml(path.read_bytes(), str(path))
        root, warnings = self._included_files[path]
        self.add_warnings(warnings)
        self.count_elements(node, sum(1 for _ in root.walk()))
        return root

    @contextmanager
    def nested(self, name: str, node: XmlNode) -> Iterator[None]:
        """While reading the part ``name``. Raises DescriptionError when parts nest too deep."""
        if len(self.stack) >= MAX_NESTING:
            raise error_at(f"models are nested more than {MAX_NESTING} deep", node)
        self.stack.append(name)
        try:
            yield
        finally:
            self.stack.pop()

    @contextmanager
    def without_repair(self, strict: bool) -> Iterator[None]:
        """While ``strict``, nothing is mended: for what is of no matter, so that it need not be."""
        repair, self.repair = self.repair, self.repair and not strict
        try:
            yield
        finally:
            self.repair = repair

    def warn_unknown_children(
        self, node: XmlNode, known_tags: Collection[str], unused_tags: Collection[str] = ()
    ) -> None:
        """Note each child element whose tag is not in ``known_tags``.

        Elements with ``unused_tags`` are known but have no effect here.
        """
        for child in node.children:
            if child.tag in known_tags:
                continue
            if child.tag in unused_tags:
                self.warn(child, f"<{child.tag}> in <{node.tag}> has no effect here")
            else:
                self.warn(child, f"<{child.tag[:60]}> in <{node.tag}> is not understood")

    def find_file(self, uri: str, node: XmlNode, kind: str, *, max_bytes: int = MAX_MESH_BYTES) -> Path | None:
        """The readable file behind ``uri``; None with a finding where there is none.

        Args:
            uri: package://, model://, file://, absolute or relative.
            node: Where it stands; relative paths start at its file.
            kind: "mesh", "texture", … for the finding.
            max_bytes: Largest size [bytes].
        """
        found = self.resources.resolve(uri, base=node.file)
        problem = found.problem
        if found.how_found:
            self.warn(node, f"{kind} {quote(uri, 200)}: {found.how_found}")
        if found.path is not None:
            problem = self.resources.explain_unreadable(found.path, max_bytes)
            if not problem and kind == "mesh":
                problem = mesh_problem(found.path)
            if not problem:
                return found.path
        self.warn(node, f"{kind} {quote(uri, 200)}: {problem}; a placeholder stands for it")
        return None
