"""The checks: each lists its violations with room, place, subject and what to do."""

from __future__ import annotations

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from structure_guard.graph import ImportGraph
from structure_guard.tree import PACKAGE, Module, SourceTree, room_of
from structure_guard.vocabulary import Vocabulary, VocabularyError

MAX_PARAMETERS = 8
MIN_LINES = 40
MAX_LINES = 800
MAX_MERGED_LINES = 500
"""A module and its only importer stay apart if they have more lines together."""
TEST_PREFIX = "test_"
_HEADING = re.compile(r"^(#{1,6})\s+(.*)$")


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that a check counts."""

    check: str
    room: str
    path: str
    line: int
    subject: str
    """What it is about, without the place: a violation that moves keeps its subject."""
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Exceptions:
    """What the checks leave out, read from ``exceptions.toml``."""

    class_names: frozenset[str] = frozenset()
    annotations: frozenset[str] = frozenset()
    single_importer: frozenset[str] = frozenset()

    @classmethod
    def load(cls, path: Path) -> Exceptions:
        """Read the file; each exception must have a reason.  Raises VocabularyError."""
        try:
            data = tomllib.loads(path.read_text("utf-8"))
            classes, annotations = data.get("class_names", {}), data.get("parameters", {}).get("annotations", {})
            modules = data.get("single_importer", {})
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, AttributeError) as error:
            raise VocabularyError(f"{path}: {error}") from None
        for name, reason in {**classes, **annotations, **modules}.items():
            if not isinstance(reason, str) or not reason.strip():
                raise VocabularyError(f"{path}: {name!r} has no reason (a sentence that says why it may be)")
        return cls(frozenset(classes), frozenset(annotations), frozenset(modules))


@dataclass
class Survey:
    """A source tree with its import graph, its vocabulary and the exceptions from the checks."""

    tree: SourceTree
    vocabulary: Vocabulary
    exceptions: Exceptions = field(default_factory=Exceptions)

    def __post_init__(self) -> None:
        self.graph = ImportGraph(self.tree)

    def violations(self) -> list[Violation]:
        """Violations of all checks, in the order of the checks, then of files and lines."""
        found: list[Violation] = []
        for check in CHECKS:
            found += sorted(check.find(self), key=lambda item: (item.path, item.line, item.subject))
        return found

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Files and lines of each room of the package."""
        found: dict[str, tuple[int, int]] = {}
        for module in self.tree.modules.values():
            files, lines = found.get(module.room, (0, 0))
            found[module.room] = files + 1, lines + module.facts.n_lines
        return dict(sorted(found.items()))

    def largest_cycles(self) -> dict[str, int]:
        """Number of modules of the largest cycle of each room that has one."""
        found: dict[str, int] = {}
        for members in self.graph.cycles:
            room = self.tree.modules[members[0]].room
            found[room] = max(found.get(room, 0), len(members))
        return found


@dataclass(frozen=True, slots=True)
class Check:
    """One check with its name, the head of its column, and what it counts."""

    name: str
    column: str
    title: str
    find: Callable[[Survey], Iterator[Violation]]


def _find_cycles(survey: Survey) -> Iterator[Violation]:
    for members in survey.graph.cycles:
        for name in members:
            module = survey.tree.modules[name]
            cycle = survey.graph.describe_cycle(name, members)
            message = f"{_short(name)} is in an import cycle of {len(members)} modules: {cycle}"
            yield Violation("cycles", module.room, module.path, 1, _short(name), message)


def _find_cycle_imports(survey: Survey) -> Iterator[Violation]:
    for members in survey.graph.cycles:
        for name in members:
            module = survey.tree.modules[name]
            for edge in survey.graph.edges[name].values():
                if edge.imported in members:
                    subject = f"{_short(name)} -> {_short(edge.imported)}"
                    message = f"this import closes a cycle of {len(members)} modules: {subject}"
                    yield Violation("cycle_imports", module.room, module.path, edge.line, subject, message)


def _find_room_cycles(survey: Survey) -> Iterator[Violation]:
    for members in survey.graph.room_cycles:
        for room in members:
            cycle = survey.graph.describe_room_cycle(room, members)
            first = next(module for module in survey.tree.modules.values() if module.room == room)
            message = f"room {room} is in an import cycle of {len(members)} rooms: {cycle}"
            yield Violation("room_cycles", room, first.path, 1, room, message)


def _find_class_names(survey: Survey) -> Iterator[Violation]:
    places: dict[str, list[tuple[Module, int]]] = defaultdict(list)
    for module in survey.tree.modules.values():
        for item in module.facts.classes:
            # A class that refines one of the same name is that interface's own name in another room.
            if item.name not in item.bases and item.name not in survey.exceptions.class_names:
                places[item.name].append((module, item.line))
    for name, found in places.items():
        if len(found) < 2:
            continue
        for module, line in found:
            others = ", ".join(f"{other.path}:{at}" for other, at in found if other is not module or at != line)
            message = f"class {name} has the name of {len(found) - 1} other: {others}"
            yield Violation("class_names", module.room, module.path, line, name, message)


def _find_identifiers(survey: Survey) -> Iterator[Violation]:
    yield from _identifiers(survey, "identifiers", list(survey.tree.modules.values()))


def _find_test_identifiers(survey: Survey) -> Iterator[Violation]:
    yield from _identifiers(survey, "test_identifiers", survey.tree.tests)


def _identifiers(survey: Survey, check: str, modules: list[Module]) -> Iterator[Violation]:
    for module in modules:
        for item in module.facts.definitions:
            is_test = item.kind == "function" and item.name.startswith(TEST_PREFIX) and module.path.startswith("tests/")
            words = survey.vocabulary.find_in_identifier(item.name, module.room, "test" if is_test else item.kind)
            if words:
                name = f"{item.scope}.{item.name}" if item.scope else item.name
                message = f"{item.kind} {name}: {_describe(words)}"
                yield Violation(check, module.room, module.path, item.line, item.name, message)


def _find_file_names(survey: Survey) -> Iterator[Violation]:
    for path in survey.tree.texts:
        if not path.startswith(("src/", "tests/")):
            continue
        pure = PurePosixPath(path)
        # A folder counts once, by the file that makes it a package.
        stem = pure.parent.name if pure.stem == "__init__" else pure.name.partition(".")[0]
        words = survey.vocabulary.find_in_identifier(stem, room_of(path), "module")
        if words:
            yield Violation("file_names", room_of(path), path, 1, stem, f"file name {stem}: {_describe(words)}")


def _find_module_names(survey: Survey) -> Iterator[Violation]:
    for module in [*survey.tree.modules.values(), *survey.tree.tests]:
        stem = module.stem.removeprefix(TEST_PREFIX)
        if survey.vocabulary.is_bare_modifier(stem):
            message = f"module name {module.stem} is a participle or an adjective (a noun: the concept that it holds)"
            yield Violation("module_names", module.room, module.path, 1, module.stem, message)


def _find_headings(survey: Survey) -> Iterator[Violation]:
    for path, text in survey.tree.texts.items():
        if not path.endswith(".md") or path.startswith(("src/", "tests/")):
            continue
        for line, heading in _headings(text):
            forms = list(survey.vocabulary.find_in_text("headings", heading))
            if forms:
                uses = "; ".join(f"{form!r} → {use}" for _, form, use in forms)
                yield Violation("headings", "docs", path, line, heading, f"heading {heading!r}: {uses}")


def _find_phrases(survey: Survey) -> Iterator[Violation]:
    for module in survey.tree.modules.values():
        for line, text in module.facts.docstrings:
            for offset, form, use in survey.vocabulary.find_in_text("phrases", text):
                at = line + text.count("\n", 0, offset)
                yield Violation("phrases", module.room, module.path, at, form, f"{form!r} in a docstring: {use}")
    for path, text in survey.tree.texts.items():
        if path.endswith(".md") and not path.startswith(("src/", "tests/")):
            for line, paragraph in _prose(text):
                for _, form, use in survey.vocabulary.find_in_text("phrases", paragraph):
                    yield Violation("phrases", "docs", path, line, form, f"{form!r}: {use}")


def _find_messages(survey: Survey) -> Iterator[Violation]:
    for module in survey.tree.modules.values():
        for line, text in module.facts.messages:
            forms = list(survey.vocabulary.find_in_text("messages", text))
            if forms:
                uses = "; ".join(f"{form!r} → {use}" for _, form, use in forms)
                yield Violation("messages", module.room, module.path, line, text, f"error message: {uses}")


def _find_parameters(survey: Survey) -> Iterator[Violation]:
    yield from _parameters(survey, "parameters", public=True)


def _find_private_parameters(survey: Survey) -> Iterator[Violation]:
    yield from _parameters(survey, "private_parameters", public=False)


def _parameters(survey: Survey, check: str, *, public: bool) -> Iterator[Violation]:
    for module in survey.tree.modules.values():
        for item in module.facts.functions:
            if item.is_public is not public or item.n_parameters <= MAX_PARAMETERS:
                continue
            if survey.exceptions.annotations.intersection(item.annotations):
                continue
            kind = "kernel" if "kernel" in item.decorators else "function"
            name = f"{_short(module.name)}:{item.name}"
            advice = f"at most {MAX_PARAMETERS}: group what belongs together"
            message = f"{kind} {name} has {item.n_parameters} parameters ({advice})"
            yield Violation(check, module.room, module.path, item.line, item.name, message)


def _find_short_modules(survey: Survey) -> Iterator[Violation]:
    for module in survey.tree.modules.values():
        if module.facts.n_lines < MIN_LINES and not module.is_package and not module.is_entry_point:
            message = f"{module.facts.n_lines} lines (at least {MIN_LINES}, or a part of the module that uses it)"
            yield Violation("short_modules", module.room, module.path, 1, module.stem, message)


def _find_long_modules(survey: Survey) -> Iterator[Violation]:
    for module in survey.tree.modules.values():
        if module.facts.n_lines > MAX_LINES:
            message = f"{module.facts.n_lines} lines (at most {MAX_LINES}: one concept a module)"
            yield Violation("long_modules", module.room, module.path, 1, module.stem, message)


def _find_single_importers(survey: Survey) -> Iterator[Violation]:
    graph, modules = survey.graph, survey.tree.modules
    for module in modules.values():
        users = graph.importers[module.name]
        if len(users) != 1 or module.is_package or module.is_entry_point or module.name in graph.tested:
            continue
        importer = modules.get(next(iter(users)))
        # Only data use a plug-in; its importer finds it by its name.
        if importer is None or graph.is_lazy(importer.name, module.name):
            continue
        n_lines = module.facts.n_lines + importer.facts.n_lines
        if n_lines <= MAX_MERGED_LINES and _short(module.name) not in survey.exceptions.single_importer:
            message = (
                f"only {_short(importer.name)} uses this module, and no test imports a name of it: make it a part of "
                f"that module ({n_lines} lines together), or test it by itself"
            )
            yield Violation("single_importer", module.room, module.path, 1, module.stem, message)


def _find_import_paths(survey: Survey) -> Iterator[Violation]:
    for (origin, name), exporters in survey.graph.exporters.items():
        if len(exporters) < 2:
            continue
        module = survey.tree.modules[origin]
        places = ", ".join(f"{survey.tree.modules[one].path}:{line}" for one, line in sorted(exporters.items()))
        message = f"{name} of {_short(origin)} is exported {len(exporters)} times (one path is enough): {places}"
        first = min(exporters.items(), key=lambda item: (item[0].count("."), item[0]))
        yield Violation("import_paths", module.room, survey.tree.modules[first[0]].path, first[1], name, message)


CHECKS = (
    Check("cycles", "cycle", "modules in import cycles inside their room", _find_cycles),
    Check("cycle_imports", "edges", "imports that belong to such a cycle", _find_cycle_imports),
    Check("room_cycles", "rooms", "rooms in import cycles", _find_room_cycles),
    Check("class_names", "class", "classes whose name another class has", _find_class_names),
    Check("identifiers", "ident", "private words in identifiers of the package", _find_identifiers),
    Check("test_identifiers", "tests", "private words in identifiers of the tests", _find_test_identifiers),
    Check("file_names", "file", "private words in file names of package and tests", _find_file_names),
    Check("module_names", "modul", "module names that are a participle or an adjective", _find_module_names),
    Check("headings", "head", "private words in headings of the pages", _find_headings),
    Check("phrases", "prose", "private phrases in docstrings and pages", _find_phrases),
    Check("messages", "error", "error messages that do not say what is wrong", _find_messages),
    Check("parameters", "par", f"public functions with more than {MAX_PARAMETERS} parameters", _find_parameters),
    Check("private_parameters", "_par", f"private and nested functions with more than {MAX_PARAMETERS} parameters",
          _find_private_parameters),
    Check("short_modules", f"<{MIN_LINES}", f"modules of less than {MIN_LINES} lines", _find_short_modules),
    Check("long_modules", f">{MAX_LINES}", f"modules of more than {MAX_LINES} lines", _find_long_modules),
    Check("single_importer", "1imp", "untested modules that should join their only importer", _find_single_importers),
    Check("import_paths", "paths", "symbols that several packages export", _find_import_paths),
)  # fmt: skip
CHECK_NAMES = tuple(check.name for check in CHECKS)


def count_violations(violations: list[Violation]) -> dict[str, dict[str, int]]:
    """Number of violations of each check and room; checks and rooms without any are left out."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in CHECK_NAMES}
    for item in violations:
        counts[item.check][item.room] += 1
    return {name: dict(sorted(rooms.items())) for name, rooms in counts.items() if rooms}


def _headings(text: str) -> Iterator[tuple[int, str]]:
    for line, content in _outside_code(text):
        match = _HEADING.match(content)
        if match:
            yield line, match.group(2).strip()


def _prose(text: str) -> Iterator[tuple[int, str]]:
    for line, content in _outside_code(text):
        if not _HEADING.match(content):
            yield line, re.sub(r"`[^`]*`", "``", content)


def _outside_code(text: str) -> Iterator[tuple[int, str]]:
    fence = ""
    for line, content in enumerate(text.splitlines(), 1):
        mark = content.lstrip()[:3]
        if fence:
            fence = "" if mark == fence else fence
        elif mark in ("```", "~~~"):
            fence = mark
        else:
            yield line, content


def _describe(words: dict[str, str]) -> str:
    return ", ".join(f"{word!r} → {replacement}" for word, replacement in words.items())


def _short(name: str) -> str:
    return name.removeprefix(f"{PACKAGE}.")
