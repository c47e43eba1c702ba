"""Who imports whom in the package: edges between modules, cycles, importers and exported names."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

from structure_guard.facts import Import, ImportPlace
from structure_guard.tree import PACKAGE, Module, SourceTree

Vertex = TypeVar("Vertex", bound=Hashable)

_PLUGIN = re.compile(r"\broboyard(?:\.[A-Za-z_]\w*)+:[A-Za-z_]\w*")
"""What data files name a class or function by."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One module's import of another; of several imports of the same module the first."""

    importer: str
    imported: str
    line: int


class ImportGraph:
    """Imports between the package's modules, those under ``TYPE_CHECKING`` and inside functions included."""

    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree
        self._modules = tree.modules

    @cached_property
    def edges(self) -> dict[str, dict[str, Edge]]:
        """Edges by importer and imported module, both of the package."""
        found: dict[str, dict[str, Edge]] = {name: {} for name in self._modules}
        for module in self._modules.values():
            for item in module.facts.imports:
                for target in self._targets(module, item):
                    if target != module.name:
                        found[module.name].setdefault(target, Edge(module.name, target, item.line))
            for line, home in module.facts.lazy_exports.values():
                origin = self._resolve_home(module, home)
                if origin is not None and origin != module.name:
                    found[module.name].setdefault(origin, Edge(module.name, origin, line))
        return found

    @cached_property
    def cycles(self) -> list[list[str]]:
        """Modules of one room that import each other in a circle: the strongly connected components."""
        inside = {
            name: [target for target in targets if self._modules[target].room == self._modules[name].room]
            for name, targets in self.edges.items()
        }
        return [sorted(component) for component in find_components(inside) if len(component) > 1]

    @cached_property
    def room_edges(self) -> dict[str, dict[str, Edge]]:
        """For each pair of rooms the first import that leads from one to the other."""
        found: dict[str, dict[str, Edge]] = {module.room: {} for module in self._modules.values()}
        for name, targets in self.edges.items():
            if self._modules[name].is_entry_point:
                continue  # it lies beside the rooms, and no import leads to it
            for target, edge in targets.items():
                rooms = self._modules[name].room, self._modules[target].room
                if rooms[0] != rooms[1]:
                    found[rooms[0]].setdefault(rooms[1], edge)
        return found

    @cached_property
    def room_cycles(self) -> list[list[str]]:
        """Rooms that import each other in a circle."""
        return [sorted(component) for component in find_components(self.room_edges) if len(component) > 1]

    @cached_property
    def importers(self) -> dict[str, set[str]]:
        """For each module the modules and data files that use it; a package that only hands names on is none."""
        found: dict[str, set[str]] = defaultdict(set)
        for module in self._modules.values():
            for target in self._import_places[module.name]:
                if not (module.is_package and self._is_face(module.name)):
                    found[target].add(module.name)
            for _, reference in module.facts.references:
                self._add_reference(found, reference, module.name)
        for path, text in self._tree.texts.items():
            if (path.startswith("src/") and not path.endswith(".py")) or path == "pyproject.toml":
                for reference in _PLUGIN.findall(text):
                    self._add_reference(found, reference, path)
        for targets in found.values():
            targets.discard("")
        return {name: found[name] - {name} for name in self._modules}

    @cached_property
    def tested(self) -> set[str]:
        """Modules that a file of the tests imports, and those that define a name which it imports from anywhere."""
        found: set[str] = set()
        for test in self._tree.tests:
            for item in test.facts.imports:
                base = self._base(test, item)
                if not item.names:
                    found.add(base)
                for name in item.names:
                    origin = self.origin_of(base, name) if base in self._modules else None
                    found.add(origin[0] if origin else f"{base}.{name}")
        return found & self._modules.keys()

    def is_lazy(self, importer: str, imported: str) -> bool:
        """Whether `importer` loads `imported` when a function of it runs, and not when it is loaded itself.

        A string that names a module counts as an import inside a function.
        """
        places = self._import_places.get(importer, {}).get(imported, set())
        return "module" not in places and ("function" in places or not places)

    @cached_property
    def _import_places(self) -> dict[str, dict[str, set[ImportPlace]]]:
        """For each module the modules whose definitions it imports, and where the import statements stand."""
        found: dict[str, dict[str, set[ImportPlace]]] = {}
        for module in self._modules.values():
            places: dict[str, set[ImportPlace]] = defaultdict(set)
            for item in module.facts.imports:
                for target in self._origins(module, item):
                    places[target].add(item.place)
            found[module.name] = dict(places)
        return found

    @cached_property
    def exporters(self) -> dict[tuple[str, str], dict[str, int]]:
        """For each symbol, by its defining module and name, the modules that export it and the line where."""
        found: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
        for module in self._modules.values():
            for name, line in {
                **{name: line for name, (line, _) in module.facts.lazy_exports.items()},
                **module.facts.exports,
            }.items():
                origin = self.origin_of(module.name, name)
                if origin is not None and origin[0] != module.name:
                    found[origin][module.name] = line
        return found

    def origin_of(self, module: str, name: str) -> tuple[str, str] | None:
        """The module that defines what `module` offers under `name`; None for a module and for what others made."""
        seen = set()
        while (module, name) not in seen:
            seen.add((module, name))
            if f"{module}.{name}" in self._modules:
                return None
            facts = self._modules[module].facts
            bound = self._bindings[module].get(name)
            if bound is not None:
                module, name = bound
            elif name in facts.lazy_exports:
                home = self._resolve_home(self._modules[module], facts.lazy_exports[name][1])
                if home is None:
                    return None
                module = home
            else:
                return module, name
        return None

    @cached_property
    def _bindings(self) -> dict[str, dict[str, tuple[str, str]]]:
        """Names that each module imports from another of the package, and which name of which module that is."""
        found: dict[str, dict[str, tuple[str, str]]] = {}
        for module in self._modules.values():
            names: dict[str, tuple[str, str]] = {}
            for item in module.facts.imports:
                base = self._base(module, item)
                if base in self._modules:
                    names.update({name: (base, name) for name in item.names if f"{base}.{name}" not in self._modules})
            found[module.name] = names
        return found

    def _is_face(self, name: str) -> bool:
        """Whether a package's ``__init__`` only hands names on and defines none of its own but ``__getattr__``."""
        facts = self._modules[name].facts
        defined = {item.name for item in facts.definitions if not item.scope and item.kind in ("class", "function")}
        return defined <= {"__getattr__", "__dir__"}

    def _base(self, module: Module, item: Import) -> str:
        if not item.level:
            return item.module
        parts = module.name.split(".")
        keep = len(parts) - item.level + (1 if module.is_package else 0)
        return ".".join([*parts[:keep], *([item.module] if item.module else [])])

    def _targets(self, module: Module, item: Import) -> set[str]:
        """Modules of the package that an import statement names."""
        base = self._base(module, item)
        if base.split(".")[0] != PACKAGE:
            return set()
        if not item.names:
            return {self._longest(base)} - {""}
        return {self._longest(f"{base}.{name}") for name in item.names} - {""}

    def _origins(self, module: Module, item: Import) -> set[str]:
        """Modules whose definitions an import statement brings, past the packages that only hand them on."""
        found: set[str] = set()
        base = self._base(module, item)
        for name in item.names:
            target = f"{base}.{name}"
            if target in self._modules or base not in self._modules:
                found |= self._targets(module, Import(item.line, item.module, item.level, (name,)))
            else:
                origin = self.origin_of(base, name)
                found |= {base, origin[0]} if origin else {base}
        return found or self._targets(module, item)

    def _longest(self, name: str) -> str:
        while name and name not in self._modules:
            name = name.rpartition(".")[0]
        return name

    def _resolve_home(self, module: Module, home: str) -> str | None:
        for name in (f"{module.name}.{home}", home):
            if name in self._modules:
                return name
        return None

    def _add_reference(self, found: dict[str, set[str]], reference: str, importer: str) -> None:
        name, _, attribute = reference.partition(":")
        if name not in self._modules:
            return
        found[name].add(importer)
        origin = self.origin_of(name, attribute) if attribute else None
        if origin is not None:
            found[origin[0]].add(importer)

    def describe_cycle(self, start: str, members: Iterable[str]) -> str:
        """The shortest circle through `start` inside a component, with the line of each import."""
        path = shortest_cycle(start, set(members), lambda name: self.edges[name])
        steps = [f"{self._modules[one].path}:{self.edges[one][two].line}" for one, two in pairwise(path)]
        names = " → ".join(name.removeprefix(f"{PACKAGE}.") for name in path)
        return f"{names} ({', '.join(steps)})"

    def describe_room_cycle(self, start: str, members: Iterable[str]) -> str:
        """The shortest circle of rooms through `start`, with one import for each step."""
        path = shortest_cycle(start, set(members), lambda room: self.room_edges[room])
        edges = [self.room_edges[one][two] for one, two in pairwise(path)]
        steps = ", ".join(f"{self._modules[edge.importer].path}:{edge.line}" for edge in edges)
        return f"{' → '.join(path)} ({steps})"


def find_components(graph: Mapping[Vertex, Iterable[Vertex]]) -> list[set[Vertex]]:
    """Strongly connected components (Tarjan 1972, without recursion); every vertex is in one."""
    index: dict[Vertex, int] = {}
    low: dict[Vertex, int] = {}
    on_stack: set[Vertex] = set()
    stack: list[Vertex] = []
    components: list[set[Vertex]] = []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            vertex, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(graph.get(target, ()))))
                    break
                if target in on_stack:
                    low[vertex] = min(low[vertex], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[vertex])
                if low[vertex] == index[vertex]:
                    component: set[Vertex] = set()
                    while vertex not in component:
                        component.add(stack.pop())
                    on_stack -= component
                    components.append(component)
    return components


def shortest_cycle(
    start: Vertex, members: set[Vertex], targets_of: Callable[[Vertex], Iterable[Vertex]]
) -> list[Vertex]:
    """Vertices of the shortest path from `start` back to it within `members`; it is there if they are a component."""
    previous: dict[Vertex, Vertex] = {}
    queue = deque([start])
    while queue:
        vertex = queue.popleft()
        for target in targets_of(vertex):
            if target == start:
                path = [start]
                while vertex != start:
                    path.append(vertex)
                    vertex = previous[vertex]
                return [start, *reversed(path[1:]), start]
            if target in members and target not in previous:
                previous[target] = vertex
                queue.append(target)
    return [start]
