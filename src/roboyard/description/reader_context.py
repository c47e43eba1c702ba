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

MAX_ELEMENTS = 1_000_000  # over all files of one description
MAX_FILES = 4_000
MAX_NESTING = 24
MAX_WARNINGS = 5_000


class ReaderContext:
    """Collects warnings and repairs and enforces size limits while a description and all its includes are read.

    Args:
        resources: Resolves URIs.
        repair: Whether faults are repaired and listed, where possible, instead of rejected.
        collect_errors: Whether to continue after a fault that cannot be repaired, to collect further ones; see
            `try_read`.

    Attributes:
        resources: Resolves URIs.
        repair: As given.
        collect_errors: As given.
        errors: Collected faults that cannot be repaired.
        stack: Models and files that are being read, outermost first.
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
        """Warnings so far, in order, without duplicates."""
        return tuple(self._warnings)

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """Repairs so far, in order."""
        return tuple(self._repairs)

    def try_read(self, read: Callable[[], T], fallback: T) -> T:
        """Return the result of `read`; when errors are collected, record its error and return `fallback`.

        Raises:
            DescriptionError: As `read`, unless errors are collected.
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
        """Raise the first error that was collected after the first `n_errors_before` ones.

        A reader calls this between reading the parts and joining them, because further faults would only follow from an
        invalid part.

        Raises:
            DescriptionError: There is such an error.
        """
        if len(self.errors) > n_errors_before:
            raise self.errors[n_errors_before]

    def repair_or_raise(
        self, node: XmlNode, problem: str, valid: str, action: str, *, is_required: bool = True
    ) -> None:
        """Record a fault with its repair; if this method returns, the caller must apply the repair.

        Args:
            node: Element with the fault.
            problem: The fault, with link or joint.
            valid: Valid values.
            action: The repair.
            is_required: Whether the file is rejected without it.

        Raises:
            DescriptionError: Repair was not requested, or there are too many faults.
        """
        if not self.repair or len(self._repairs) >= MAX_WARNINGS:
            raise RepairableError(problem, location=node.location, valid=valid)
        self._repairs[Repair(problem, action, valid, node.file, node.line, is_required)] = None

    def repair_or_warn(self, node: XmlNode, problem: str, valid: str, action: str, consequence: str) -> bool:
        """Record a tolerable fault: return True if it is to be repaired, else warn with `consequence`."""
        if self.repair and len(self._repairs) < MAX_WARNINGS:
            self._repairs[Repair(problem, action, valid, node.file, node.line, is_required=False)] = None
            return True
        self.warn(node, f"{problem}; {consequence}")
        return False

    def warn(self, node: XmlNode, message: str) -> None:
        """Record a warning about something ignored or guessed."""
        self.add_warnings((ReaderWarning(message, node.file, node.line),))

    def add_warnings(self, warnings: Iterable[ReaderWarning]) -> None:
        """Record the warnings of a part."""
        for warning in warnings:
            if len(self._warnings) == MAX_WARNINGS:
                warning = ReaderWarning("too many warnings; further ones are omitted", warning.file, warning.line)
                self._warnings[warning] = None
            elif len(self._warnings) < MAX_WARNINGS:
                self._warnings[warning] = None

    def count_elements(self, node: XmlNode, elements: int) -> None:
        """Count a file or template that is read. Raises DescriptionError if the limits are exceeded."""
        self._element_count += elements
        self._file_count += 1
        if self._element_count > MAX_ELEMENTS or self._file_count > MAX_FILES:
            raise error_at(
                "the description includes too many elements or files",
                node,
                f"at most {MAX_ELEMENTS} elements in {MAX_FILES} files",
            )

    def parse_included_file(self, path: Path, node: XmlNode, label: str) -> XmlNode:
        """Parse a file that an element of another file includes; each file is parsed only once.

        Callers share the tree and must not change it.

        Args:
            path: The file.
            node: The element that includes it.
            label: Name of the file in errors.

        Raises:
            DescriptionError: The file cannot be read, is not XML, or the description includes too many elements or
                files.
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
        """Track the part `name` while it is read. Raises DescriptionError if parts are nested too deeply."""
        if len(self.stack) >= MAX_NESTING:
            raise error_at(f"models are nested more than {MAX_NESTING} deep", node)
        self.stack.append(name)
        try:
            yield
        finally:
            self.stack.pop()

    @contextmanager
    def without_repair(self, strict: bool) -> Iterator[None]:
        """Disable repairs while `strict`, for content that does not affect the model."""
        repair, self.repair = self.repair, self.repair and not strict
        try:
            yield
        finally:
            self.repair = repair

    def warn_unknown_children(
        self, node: XmlNode, known_tags: Collection[str], unused_tags: Collection[str] = ()
    ) -> None:
        """Warn about each child element whose tag is not in `known_tags`.

        Elements with `unused_tags` are known but have no effect here.
        """
        for child in node.children:
            if child.tag in known_tags:
                continue
            if child.tag in unused_tags:
                self.warn(child, f"<{child.tag}> in <{node.tag}> has no effect here")
            else:
                self.warn(child, f"unknown element <{child.tag[:60]}> in <{node.tag}>")

    def find_file(self, uri: str, node: XmlNode, kind: str, *, max_bytes: int = MAX_MESH_BYTES) -> Path | None:
        """Return the readable file of `uri`; None, with a warning, if there is none.

        Args:
            uri: package://, model://, file://, absolute or relative.
            node: Element with the URI; relative paths start at its file.
            kind: "mesh", "texture", … for the warning.
            max_bytes: Maximum file size [bytes].
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
        self.warn(node, f"{kind} {quote(uri, 200)}: {problem}; a placeholder is used")
        return None
