"""The structure check: what it finds in small packages made for it, and how the baseline holds the counts."""

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import structure  # noqa: E402
from structure_guard import baseline, checks  # noqa: E402
from structure_guard.checks import CHECK_NAMES, MAX_MERGED_LINES, Exceptions, Survey, Violation  # noqa: E402
from structure_guard.graph import find_components  # noqa: E402
from structure_guard.tree import SourceError, SourceTree, room_of  # noqa: E402
from structure_guard.vocabulary import Vocabulary, VocabularyError, split_identifier  # noqa: E402

VOCABULARY = Vocabulary.load(ROOT / "tools" / "structure_guard" / "vocabulary.toml")
DOCSTRING = '"""A module."""\n'
LONG = "\n" * 40
"""Lines that make a module long enough."""


def survey(files: dict[str, str], exceptions: Exceptions | None = None) -> Survey:
    """Survey a package with these modules, named by their path below ``src/roboyard``, and these other files."""
    texts = {"src/roboyard/__init__.py": ""}
    for name, text in files.items():
        texts[name if name.startswith(("tests/", "docs/", "pyproject")) else f"src/roboyard/{name}"] = text
    return Survey(SourceTree(texts), VOCABULARY, exceptions or Exceptions())


def found(files: dict[str, str], check: str, exceptions: Exceptions | None = None) -> list[Violation]:
    """Violations of one check."""
    return [item for item in survey(files, exceptions).violations() if item.check == check]


def subjects(files: dict[str, str], check: str, exceptions: Exceptions | None = None) -> list[str]:
    return sorted(item.subject for item in found(files, check, exceptions))


# ---- imports ---------------------------------------------------------------------------------------------------------

TYPE_CHECKING = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from roboyard.bus.node import Node\n"


@pytest.mark.parametrize(
    "back",
    [
        "from roboyard.bus.node import Node\n",
        "import roboyard.bus.node\n",
        "from roboyard.bus import node\n",
        "from .node import Node\n",
        "from . import node\n",
        "from ..bus import node\n",
        TYPE_CHECKING,
        "def make():\n    from roboyard.bus.node import Node\n",
        "class Bus:\n    def make(self):\n        import roboyard.bus.node as node\n",
        "try:\n    from roboyard.bus.node import Node\nexcept ImportError:\n    pass\n",
    ],
)
def test_cycle_is_found_through_any_import(back: str) -> None:
    files = {"bus/__init__.py": "", "bus/node.py": "from roboyard.bus.bus import Bus\n", "bus/bus.py": back}
    assert subjects(files, "cycles") == ["bus.bus", "bus.node"]
    assert subjects(files, "cycle_imports") == ["bus.bus -> bus.node", "bus.node -> bus.bus"]
    assert survey(files).largest_cycles() == {"bus": 2}


def test_cycle_message_names_the_shortest_cycle() -> None:
    files = {
        "bus/__init__.py": "",
        "bus/a.py": "\nfrom roboyard.bus import b\n",
        "bus/b.py": "from roboyard.bus import c\n",
        "bus/c.py": "from roboyard.bus import a, b\n",
    }
    first = found(files, "cycles")[0]
    assert "bus.a → bus.b → bus.c → bus.a (src/roboyard/bus/a.py:2, src/roboyard/bus/b.py:1" in first.message
    assert [item.line for item in found(files, "cycle_imports")] == [2, 1, 1, 1]


@pytest.mark.parametrize(
    "package",
    ['_HOMES = {"Node": "node"}\ndef __getattr__(name): ...\n', "from .node import Node\n", "from . import node\n"],
)
def test_cycle_through_the_package_itself_is_found(package: str) -> None:
    files = {"bus/__init__.py": package, "bus/node.py": "from roboyard.bus import Status\n"}
    assert subjects(files, "cycles") == ["bus", "bus.node"]


def test_imports_of_other_packages_and_across_rooms_are_no_cycle_of_a_room() -> None:
    files = {
        "bus/__init__.py": "",
        "bus/node.py": "import node\nfrom other.bus import node\nfrom roboyard.record import writer\n",
        "record/__init__.py": "",
        "record/writer.py": "from roboyard.bus import node\n",
    }
    assert not subjects(files, "cycles")
    assert subjects(files, "room_cycles") == ["bus", "record"]
    message = found(files, "room_cycles")[0].message
    assert "bus → record → bus (src/roboyard/bus/node.py:3, src/roboyard/record/writer.py:1)" in message


def test_entry_point_closes_no_cycle_of_rooms() -> None:
    files = {"__main__.py": "import roboyard.cli\n", "cli/__init__.py": "from roboyard import __version__\n"}
    assert not found(files, "room_cycles")
    assert subjects({**files, "__init__.py": "from roboyard.cli import main\n"}, "room_cycles") == ["cli", "roboyard"]


def modules_of(edges: set[tuple[int, int]], n: int) -> dict[str, str]:
    files = {f"bus/m{i}.py": "".join(f"from roboyard.bus import m{b}\n" for a, b in edges if a == i) for i in range(n)}
    return {"bus/__init__.py": "", **files}


@given(st.data(), st.integers(2, 8))
def test_acyclic_imports_give_no_cycle_and_one_back_edge_gives_one(data: st.DataObject, n: int) -> None:
    pairs = [(a, b) for a in range(n) for b in range(a)]
    edges = data.draw(st.sets(st.sampled_from(pairs), min_size=1))
    assert not subjects(modules_of(edges, n), "cycles")
    a, b = data.draw(st.sampled_from(sorted(edges)))
    cyclic = subjects(modules_of(edges | {(b, a)}, n), "cycles")
    assert {f"bus.m{a}", f"bus.m{b}"} <= set(cyclic)


@given(st.dictionaries(st.integers(0, 9), st.sets(st.integers(0, 9), max_size=4), min_size=10, max_size=10))
def test_components_are_the_classes_of_mutual_reachability(graph: dict[int, set[int]]) -> None:
    reach = {vertex: {vertex} for vertex in graph}
    for _ in graph:
        for vertex, targets in graph.items():
            for target in targets:
                reach[vertex] |= reach[target]
    expected = {frozenset(b for b in graph if b in reach[a] and a in reach[b]) for a in graph}
    assert {frozenset(component) for component in find_components(graph)} == expected


# ---- importers and paths ---------------------------------------------------------------------------------------------


def test_importers_through_a_package_that_only_exports_are_counted() -> None:
    files = {
        "bus/__init__.py": 'from roboyard.bus.node import Node\n__all__ = ["Node"]\n',
        "bus/node.py": "class Node: ...\n",
        "record/__init__.py": "",
        "record/writer.py": "from roboyard.bus import Node\n",
    }
    assert subjects(files, "single_importer") == ["node"]
    files["record/reader.py"] = "from roboyard.bus import Node\nimport roboyard.record.writer\n"
    assert subjects(files, "single_importer") == ["writer"]
    assert "only record.reader uses" in found(files, "single_importer")[0].message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[project.scripts]\nnode = "roboyard.bus:Node"\n'),
        ("robots/rover.yaml", "nodes: {a: {type: roboyard.bus.node:Node}}\n"),
        ("record/reader.py", 'NODE = "roboyard.bus.node:Node"\n'),
        ("record/reader.py", 'PRELOAD = ("roboyard.bus.node",)\n'),
    ],
)
def test_data_that_name_a_module_are_importers(name: str, text: str) -> None:
    files = {
        "bus/__init__.py": '_HOMES = {"Node": "node"}\ndef __getattr__(name): ...\n',
        "bus/node.py": "class Node: ...\n",
        "record/__init__.py": "",
        "record/writer.py": "from roboyard.bus import Node\n",
    }
    assert "node" in subjects(files, "single_importer")
    assert "node" not in subjects({**files, name: text}, "single_importer")


def single_importer_files(importer: str = "from roboyard.bus.node import Node\n", **others: str) -> dict[str, str]:
    """A package where ``record.writer``, with the text `importer`, is the only module that can use ``bus.node``."""
    return {
        "bus/__init__.py": '_HOMES = {"Node": "node"}\ndef __getattr__(name): ...\n',
        "bus/node.py": "class Node: ...\n",
        "record/__init__.py": "",
        "record/writer.py": importer,
        **others,
    }


def test_untested_module_that_one_module_loads_should_join_it() -> None:
    (item,) = found(single_importer_files(), "single_importer")
    assert (item.subject, item.room, item.path) == ("node", "bus", "src/roboyard/bus/node.py")
    assert "only record.writer uses this module" in item.message
    assert "(2 lines together)" in item.message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[project.entry-points."roboyard.nodes"]\nnode = "roboyard.bus.node:Node"\n'),
        ("pyproject.toml", '[project.entry-points."roboyard.nodes"]\nnode = "roboyard.bus:Node"\n'),
        ("robots/rover.yaml", "nodes: {a: {type: roboyard.bus.node:Node}}\n"),
    ],
)
def test_plugin_that_only_data_register_stays_a_module(name: str, text: str) -> None:
    files = {**single_importer_files("x = 1\n"), name: text}
    assert survey(files).graph.importers["roboyard.bus.node"] == {
        name if name == "pyproject.toml" else f"src/roboyard/{name}"
    }
    assert not found(files, "single_importer")


IN_FUNCTION = "def write():\n    from roboyard.bus.node import Node\n"


@pytest.mark.parametrize(
    "text",
    [
        IN_FUNCTION,
        "async def write():\n    import roboyard.bus.node\n",
        "def write():\n    from roboyard.bus import Node\n",
        "class Writer:\n    def write(self):\n        from roboyard.bus import node\n",
        "def write():\n    class Writer:\n        from roboyard.bus.node import Node\n",
        "def write():\n    def write_all():\n        pass\n    from roboyard.bus.node import Node\n",
        f"{TYPE_CHECKING}{IN_FUNCTION}",
        'NODE = "roboyard.bus.node:Node"\n',
        'NODES = {"node": "roboyard.bus:Node"}\n',
    ],
)
def test_module_that_its_importer_loads_lazily_stays_a_module(text: str) -> None:
    files = single_importer_files(text)
    assert survey(files).graph.importers["roboyard.bus.node"] == {"roboyard.record.writer"}
    assert not found(files, "single_importer")
    assert found(single_importer_files(f"{text}from roboyard.bus.node import Node\n"), "single_importer")


@pytest.mark.parametrize(
    "text",
    [
        "from roboyard.bus import Node\n",
        "import roboyard.bus.node as node\n",
        "try:\n    from roboyard.bus.node import Node\nexcept ImportError:\n    pass\n",
        "class Writer:\n    from roboyard.bus.node import Node\n",
        f"{TYPE_CHECKING}",
        "import typing\nif typing.TYPE_CHECKING:\n    pass\nelse:\n    from roboyard.bus.node import Node\n"
        + IN_FUNCTION,
        f"{IN_FUNCTION}from roboyard.bus.node import Node\n",
    ],
)
def test_module_that_its_importer_loads_or_takes_only_for_types_should_join_it(text: str) -> None:
    assert subjects(single_importer_files(text), "single_importer") == ["node"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tests/bus/test_node.py", "from roboyard.bus.node import Node\n"),
        ("tests/bus/test_node.py", "from roboyard.bus import Node\n"),
        ("tests/bus/test_node.py", "import roboyard.bus.node\n"),
        ("tests/bus/test_node.py", "from roboyard.bus import node\n"),
        ("tests/record/test_writer.py", "def test_node():\n    from roboyard.bus import Node\n"),
    ],
)
def test_module_whose_names_a_test_imports_stays_a_module(name: str, text: str) -> None:
    files = {**single_importer_files(), name: text}
    assert survey(files).graph.importers["roboyard.bus.node"] == {"roboyard.record.writer"}
    assert not found(files, "single_importer")


@pytest.mark.parametrize(
    "text",
    [
        "from roboyard.record.writer import Writer\n",
        "from roboyard import bus\n",
        "from roboyard.bus import Other\n",
        "from other.bus.node import Node\n",
        "from .node import Node\n",
    ],
)
def test_test_that_imports_other_names_does_not_keep_a_module(text: str) -> None:
    files = {**single_importer_files(), "tests/bus/test_node.py": text}
    assert subjects(files, "single_importer") == ["node"]


@pytest.mark.parametrize("n_lines", [MAX_MERGED_LINES, MAX_MERGED_LINES + 1])
def test_modules_that_are_long_together_are_not_merged(n_lines: int) -> None:
    files = single_importer_files()
    files["bus/node.py"] += "x = 1\n" * (n_lines - 2)
    assert bool(found(files, "single_importer")) is (n_lines <= MAX_MERGED_LINES)


def test_exceptions_keep_a_module_with_one_importer() -> None:
    assert found(single_importer_files(), "single_importer", Exceptions(single_importer=frozenset({"bus.writer"})))
    assert not found(single_importer_files(), "single_importer", Exceptions(single_importer=frozenset({"bus.node"})))


def test_a_docstring_that_names_a_module_is_no_importer() -> None:
    files = {"bus/__init__.py": "", "bus/node.py": "", "bus/log.py": 'def log():\n    """roboyard.bus.node"""\n'}
    assert not subjects(files, "single_importer")


def test_import_paths_count_packages_that_export_the_same_symbol() -> None:
    lazy = '_HOMES = {"ActionServer": "server"}\ndef __getattr__(name): ...\n'
    files = {
        "bus/__init__.py": 'from roboyard.bus.actions import ActionServer\n__all__ = [\n"ActionServer"]\n',
        "bus/actions/__init__.py": lazy,
        "bus/actions/server.py": "class ActionServer: ...\n",
    }
    (item,) = found(files, "import_paths")
    assert (item.subject, item.room, item.path, item.line) == ("ActionServer", "bus", "src/roboyard/bus/__init__.py", 3)
    assert "src/roboyard/bus/actions/__init__.py:1" in item.message
    files["bus/actions/__init__.py"] = "from roboyard.bus.actions.server import ActionServer\n"
    assert not found(files, "import_paths")


# ---- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "kind", "subject"),
    [
        ("def tell_time(): ...", "function", "tell_time"),
        ("async def tell(): ...", "function", "tell"),
        ("class TimeTold: ...", "class", "TimeTold"),
        ("class A:\n    def told(self): ...", "function", "told"),
        ("class A:\n    told: int = 0", "attribute", "told"),
        ("class A:\n    TOLD = 0", "attribute", "TOLD"),
        ("class A:\n    def set(self):\n        self.told_ns = 0", "attribute", "told_ns"),
        ("class A:\n    def set(me):\n        def inner():\n            me._told = 0", "attribute", "_told"),
        ("def f(told): ...", "parameter", "told"),
        ("def f(*, told=1): ...", "parameter", "told"),
        ("def f(*told): ...", "parameter", "told"),
        ("def f(**told): ...", "parameter", "told"),
        ("f = lambda told: 0", "parameter", "told"),
        ("_TOLD = 1", "variable", "_TOLD"),
        ("told: int = 1", "variable", "told"),
        ("a, (told, b) = x", "variable", "told"),
        ("for told in x: ...", "variable", "told"),
        ("with x as told: ...", "variable", "told"),
        ("try: ...\nexcept E as told: ...", "variable", "told"),
        ("x = [told for told in y]", "variable", "told"),
        ("if (told := f()): ...", "variable", "told"),
        ("import x as told", "variable", "told"),
        ("match x:\n    case [told, *_]: ...", "variable", "told"),
        ("match x:\n    case {'a': 1, **told}: ...", "variable", "told"),
    ],
)
def test_private_word_is_found_in_each_position(code: str, kind: str, subject: str) -> None:
    for path, check in (("bus/node.py", "identifiers"), ("tests/bus/test_node.py", "test_identifiers")):
        (item,) = found({path: DOCSTRING + code + "\n"}, check)
        assert (item.subject, item.room) == (subject, "bus")
        assert item.message.startswith(kind)
        assert "'tell' →" in item.message or "'told' →" in item.message
        assert "publish, report" in item.message


@pytest.mark.parametrize(
    "code",
    [
        "x = node.told",
        "node.told = 1",
        "f(told=1)",
        "from x import told",
        "print(told)",
        'x = "told"',
        "# told\nx = 1",
        "class A:\n    def f(self, x):\n        x.told = 1",
        "rest_pose = look_at = at_rest = LEAST_SQUARES = 1",
        "class PurePursuit: ...",
        "shared = snapshot = keyboard = waypoint = blackboard = 1",
        "pose_at = place_object = 1",
    ],
)
def test_uses_and_terms_of_the_field_are_not_found(code: str) -> None:
    assert not found({"bus/node.py": DOCSTRING + code + "\n"}, "identifiers")


def test_each_name_counts_once_in_a_scope() -> None:
    code = "def f(told):\n    told = 1\n    told += 1\ndef g():\n    told = 2\n    for told in x: ...\n"
    assert [item.line for item in found({"bus/node.py": code}, "identifiers")] == [1, 5]
    code = "told = 0\ndef f():\n    global told\n    told = 1\n"
    assert [item.line for item in found({"bus/node.py": code}, "identifiers")] == [1]
    code = "class A:\n    told = 0\n    def f(self):\n        self.told = 1\n    def g(self):\n        self.told = 2\n"
    assert [item.line for item in found({"bus/node.py": code}, "identifiers")] == [2]


def test_words_of_whole_names_and_of_some_rooms_only() -> None:
    code = "hand = 1\nhand_pose = 1\nclass G:\n    def done(self): ...\n    far = 2\n"
    assert subjects({"control/gripper.py": code}, "identifiers") == ["far", "hand"]
    assert subjects({"people/body.py": code}, "identifiers") == ["far"]
    assert subjects({"vision/lens.py": code}, "identifiers") == ["hand"]
    assert subjects({"control/gripper.py": "done = 1\n"}, "identifiers") == ["done"]


def test_names_of_test_functions_are_sentences() -> None:
    code = "def test_arm_keeps_its_own_pose(): ...\ndef test_what_is_told(): ...\ndef keep(): ...\n"
    assert subjects({"tests/bus/test_node.py": code}, "test_identifiers") == ["keep", "test_what_is_told"]
    assert len(found({"bus/node.py": code}, "identifiers")) == 3


@given(st.lists(st.sampled_from(["told", "pose", "node", "way", "time", "look", "at"]), min_size=1, max_size=5))
def test_snake_case_and_camel_case_are_split_alike(parts: list[str]) -> None:
    snake, camel = "_".join(parts), "".join(part.title() for part in parts)
    assert split_identifier(snake) == split_identifier(camel) == split_identifier(f"_{snake.upper()}_") == parts
    words = [VOCABULARY.find_in_identifier(name, "bus", "variable") for name in (snake, camel, snake.upper())]
    assert words[0] == words[1] == words[2]


def test_file_and_folder_names() -> None:
    files = {
        "bus/ways/__init__.py": "",
        "bus/told_log.py": "",
        "worlds/furniture.yaml": "",
        "tests/bus/test_deeds.py": "",
        "bus/node.py": "",
    }
    names = [(item.subject, item.room) for item in found(files, "file_names")]
    assert names == [("told_log", "bus"), ("ways", "bus"), ("furniture", "worlds"), ("test_deeds", "bus")]


@pytest.mark.parametrize(
    ("stem", "is_found"),
    [
        ("near", True),
        ("past", True),
        ("evening", True),
        ("varied", True),
        ("calibrated", True),
        ("written", True),
        ("planning", False),
        ("speed", False),
        ("node", False),
        ("compressed_image", False),
        ("path_planning", False),
    ],
)
def test_module_names_that_are_participles_or_adjectives(stem: str, is_found: bool) -> None:
    assert bool(found({f"bus/{stem}.py": ""}, "module_names")) is is_found
    assert bool(found({f"tests/bus/test_{stem}.py": ""}, "module_names")) is is_found


def test_class_names_that_occur_twice() -> None:
    files = {
        "bus/node.py": "class Node: ...\nclass Bus: ...\n",
        "config/tree.py": "\nclass Node: ...\n",
        "record/bus.py": "from roboyard.bus.node import Bus as BusBase\nclass Bus(node.Bus): ...\n",
        "record/list.py": "class Node(Generic[T]):\n    class Bus: ...\n",
    }
    items = found(files, "class_names")
    assert [(item.subject, item.room, item.line) for item in items] == [
        ("Node", "bus", 1),
        ("Node", "config", 2),
        ("Node", "record", 1),
    ]
    assert "src/roboyard/config/tree.py:2, src/roboyard/record/list.py:1" in items[0].message
    assert not found(files, "class_names", Exceptions(class_names=frozenset({"Node"})))


# ---- prose -----------------------------------------------------------------------------------------------------------


def test_headings_of_pages_but_not_of_code() -> None:
    page = (
        "# Mapping\n\n## What is read\n\n```python\n# What is told\n```\n\n"
        "~~~\n# Things\n~~~\n\n### Coming home\n\n## How to plan a path\n"
    )
    items = found({"docs/rooms/mapping.md": page}, "headings")
    assert [(item.line, item.room) for item in items] == [(3, "docs"), (13, "docs")]
    assert "homing" in items[1].message


def test_phrases_of_docstrings_and_pages() -> None:
    code = '"""A module.\n\nIt is told nothing."""\n\ndef f():\n    """Go on."""\n    told = "told"  # told\n'
    page = "# Told\n\nThe node is told.\n\n`told` and\n```text\ntold\n```\n"
    items = found({"bus/node.py": code, "docs/bus.md": page}, "phrases")
    assert [(item.path, item.line) for item in items] == [
        ("docs/bus.md", 3),
        ("src/roboyard/bus/node.py", 3),
        ("src/roboyard/bus/node.py", 6),
    ]


def test_error_messages_of_the_private_forms() -> None:
    code = (
        'def f(x):\n    raise E(f"{x} is none")\n    raise E("a", valid="nothing")\n    raise E\n    print("is none")\n'
    )
    assert [item.line for item in found({"bus/node.py": code}, "messages")] == [2]


# ---- sizes and signatures --------------------------------------------------------------------------------------------

NINE = ", ".join(f"p{i}" for i in range(9))


@pytest.mark.parametrize(
    ("code", "public", "private"),
    [
        (f"def f({NINE}): ...", 1, 0),
        ("def f(p0, p1, p2, p3, p4, p5, p6, p7): ...", 0, 0),
        ("def f(p0, p1, p2, p3, /, p4, p5, *p6, p7, **p8): ...", 1, 0),
        ("def f(p0, p1, p2, p3, p4, p5, p6, *, p7=0, p8=1): ...", 1, 0),
        (f"class A:\n    def f(self, {NINE}): ...", 1, 0),
        ("class A:\n    def f(self, p0, p1, p2, p3, p4, p5, p6, p7): ...", 0, 0),
        ("class A:\n    @classmethod\n    def f(cls, p0, p1, p2, p3, p4, p5, p6, p7): ...", 0, 0),
        (f"class A:\n    @staticmethod\n    def f({NINE}): ...", 1, 0),
        (f"class A:\n    def __init__(self, {NINE}): ...", 1, 0),
        (f"class _A:\n    def f(self, {NINE}): ...", 0, 1),
        (f"def _f({NINE}): ...", 0, 1),
        (f"def g():\n    def f({NINE}): ...", 0, 1),
        (f"@kernel(SIGNATURE)\ndef f({NINE}): ...", 1, 0),
        (f"@overload\ndef f({NINE}): ...", 0, 0),
    ],
)
def test_functions_with_many_parameters(code: str, public: int, private: int) -> None:
    files = {"bus/node.py": code + "\n"}
    assert (len(found(files, "parameters")), len(found(files, "private_parameters"))) == (public, private)


def test_kernels_are_named_and_commands_are_left_out() -> None:
    (item,) = found({"bus/node.py": f"@kernel\ndef f({NINE}): ...\n"}, "parameters")
    assert item.message.startswith("kernel bus.node:f has 9 parameters")
    command = {"cli/run.py": f"def run(x: Annotated[int, typer.Option(help='X.')], {NINE}): ...\n"}
    assert found(command, "parameters")
    assert not found(command, "parameters", Exceptions(annotations=frozenset({"Option"})))


@pytest.mark.parametrize(
    ("name", "n_lines", "short", "long"),
    [
        ("bus/node.py", 39, 1, 0),
        ("bus/node.py", 40, 0, 0),
        ("bus/node.py", 800, 0, 0),
        ("bus/node.py", 801, 0, 1),
        ("bus/__init__.py", 2, 0, 0),
        ("bus/__main__.py", 2, 0, 0),
        ("bus/__init__.py", 801, 0, 1),
    ],
)
def test_module_sizes(name: str, n_lines: int, short: int, long: int) -> None:
    files = {name: "x = 1\n" * n_lines}
    assert (len(found(files, "short_modules")), len(found(files, "long_modules"))) == (short, long)
    assert survey(files).sizes()["bus"] == (1, n_lines)


@pytest.mark.parametrize(
    ("path", "room"),
    [
        ("src/roboyard/bus/actions/server.py", "bus"),
        ("src/roboyard/errors.py", "errors"),
        ("src/roboyard/__init__.py", "roboyard"),
        ("src/roboyard/__main__.py", "roboyard"),
        ("tests/bus/test_node.py", "bus"),
        ("tests/conftest.py", "tests"),
        ("docs/reference/bus.md", "docs"),
        ("README.md", "docs"),
    ],
)
def test_rooms_of_files(path: str, room: str) -> None:
    assert room_of(path) == room


# ---- baseline --------------------------------------------------------------------------------------------------------

CHECKS = st.sampled_from(CHECK_NAMES)
COUNTS = st.dictionaries(CHECKS, st.dictionaries(st.sampled_from("abcd"), st.integers(1, 9), min_size=1), max_size=4)


@given(COUNTS, COUNTS)
def test_a_check_fails_if_and_only_if_its_sum_rose(before: Any, now: Any) -> None:
    def sums(counts: Any, check: str) -> int:
        return sum(counts.get(check, {}).values())

    comparison = baseline.compare(before, now)
    assert {change.check for change in comparison.risen} == {c for c in CHECK_NAMES if sums(now, c) > sums(before, c)}
    assert {change.check for change in comparison.fallen} == {c for c in CHECK_NAMES if sums(now, c) < sums(before, c)}
    assert comparison.is_recorded == (before == now)


def test_moved_code_is_accepted_and_new_code_is_not() -> None:
    before = {"identifiers": {"chains": 30, "control": 5}}
    comparison = baseline.compare(before, {"identifiers": {"kinematics": 30, "control": 5}})
    assert not comparison.risen
    assert [(change.room, change.before, change.now) for change in comparison.moved] == [("kinematics", 0, 30)]
    assert baseline.compare(before, {"identifiers": {"kinematics": 31, "control": 5}}).risen
    assert baseline.compare(before, {**before, "class_names": {"people": 1}}).risen
    assert not baseline.compare(before, {}).risen


def test_update_lowers_the_baseline_and_never_raises_it(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    baseline.update_baseline(path, {"cycles": {"bus": 15, "cli": 2}})
    text = path.read_text()
    with pytest.raises(baseline.BaselineError, match="cycles of all rooms: 17 → 18"):
        baseline.update_baseline(path, {"cycles": {"bus": 18}})
    assert path.read_text() == text
    comparison = baseline.update_baseline(path, {"cycles": {"bus": 3}})
    assert [str(change) for change in comparison.fallen] == ["cycles of all rooms: 17 → 3"]
    assert baseline.load_baseline(path) == {"cycles": {"bus": 3}}


@pytest.mark.parametrize(
    "text", ["", "[]", '{"cycle": {"bus": 1}}', '{"cycles": 3}', '{"cycles": {"bus": -1}}', '{"cycles": {"bus": "1"}}']
)
def test_malformed_baseline_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text)
    with pytest.raises(baseline.BaselineError) as caught:
        baseline.load_baseline(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_new_violations_differ_from_old_and_moved_ones() -> None:
    def violation(path: str, line: int, subject: str) -> Violation:
        return Violation("identifiers", room_of(path), path, line, subject, "")

    old = [violation("src/roboyard/bus/a.py", 1, "told"), violation("src/roboyard/bus/a.py", 2, "way")]
    new = violation("src/roboyard/bus/a.py", 3, "told")
    later = [violation("src/roboyard/bus/a.py", 9, "told"), new, violation("src/roboyard/cli/b.py", 2, "way")]
    assert baseline.find_new(old, later) == [new]
    assert baseline.find_new([], later) == later


# ---- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with a small package, the real vocabulary, and a committed baseline."""
    guard = tmp_path / "tools" / "structure_guard"
    guard.mkdir(parents=True)
    for name in ("vocabulary.toml", "exceptions.toml"):
        (guard / name).write_bytes((ROOT / "tools" / "structure_guard" / name).read_bytes())
    write(tmp_path, "src/roboyard/__init__.py", DOCSTRING)
    write(tmp_path, "src/roboyard/bus/__init__.py", DOCSTRING)
    write(tmp_path, "src/roboyard/bus/node.py", DOCSTRING + "told = 1\nway = 1\n" + LONG)
    write(tmp_path, ".gitignore", ".structure_cache/\n")
    git(tmp_path, "init", "--quiet")
    assert run(tmp_path, "--update")[0] == 0
    commit(tmp_path)
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


def commit(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "State")


def run(root: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit code and output of the command on a checkout."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = structure.main(["--root", str(root), *arguments])
    return code, out.getvalue(), err.getvalue()


def test_command_passes_what_the_baseline_holds(checkout: Path) -> None:
    code, out, err = run(checkout, "--strict")
    assert (code, err) == (0, "")
    assert "2 known violations, none new" in out


def test_command_fails_on_a_rise_and_lists_only_what_is_new(checkout: Path) -> None:
    text = DOCSTRING + "x = 1\ntold = 1\nway = 1\ndeed = 1\n" + LONG
    write(checkout, "src/roboyard/bus/node.py", text)
    code, _, err = run(checkout)
    assert code == 1
    assert "private words in identifiers of the package: 2 → 3" in err
    assert "src/roboyard/bus/node.py:5: variable deed: 'deed' → fault action, event" in err
    assert "told" not in err
    assert run(checkout, "--update")[0] == 2
    assert run(checkout, "--against", "HEAD")[1].count("\n") == 2


def test_command_lists_everything_where_there_is_no_history(checkout: Path) -> None:
    write(checkout, "src/roboyard/bus/node.py", DOCSTRING + "told = 1\nway = 1\ndeed = 1\n" + LONG)
    (checkout / ".git").rename(checkout / "no-git")
    code, _, err = run(checkout)
    assert code == 1
    assert "the history does not tell which are new; all of them" in err
    assert "variable told" in err
    assert "variable deed" in err


def test_command_passes_a_fall_and_says_how_to_record_it(checkout: Path) -> None:
    write(checkout, "src/roboyard/bus/node.py", DOCSTRING + "way = 1\n" + LONG)
    code, out, _ = run(checkout)
    assert code == 0
    assert "identifiers of all rooms: 2 → 1" in out
    assert "--update" in out
    assert run(checkout, "--strict")[0] == 1
    assert run(checkout, "--update")[:2] == (0, "lowered: identifiers of all rooms: 2 → 1\n")
    assert run(checkout, "--strict")[0] == 0


def test_command_accepts_a_moved_module(checkout: Path) -> None:
    write(checkout, "src/roboyard/record/__init__.py", DOCSTRING)
    (checkout / "src/roboyard/bus/node.py").rename(checkout / "src/roboyard/record/node.py")
    code, out, _ = run(checkout)
    assert code == 0
    assert "identifiers of record: 0 → 2" in out
    write(checkout, "src/roboyard/record/node.py", DOCSTRING + "told = 1\nway = 1\ndeed = 1\n" + LONG)
    code, _, err = run(checkout)
    assert code == 1
    assert "variable deed" in err
    assert "variable told" not in err


def test_command_prints_table_list_and_json(checkout: Path) -> None:
    code, out, _ = run(checkout, "--table")
    assert code == 0
    head, *rows = (line.split() for line in out.split("\n\n")[0].splitlines())
    column = head.index("ident")
    assert {row[0]: row[column] for row in rows} == {"bus": "2", "roboyard": "·", "all": "2"}
    code, out, _ = run(checkout, "--room", "bus", "--list", "identifiers")
    assert out.splitlines()[-1] == "2 violations, identifiers 2"
    assert out.startswith("src/roboyard/bus/node.py:2: variable told")
    document = json.loads(run(checkout, "--json")[1])
    assert document["counts"] == {"identifiers": {"bus": 2}}
    assert document["sizes"]["bus"] == {"files": 2, "lines": 44}
    assert {item["subject"] for item in document["violations"]} == {"told", "way"}


def test_command_names_what_is_wrong_with_call_and_files(checkout: Path, tmp_path: Path) -> None:
    assert "unknown room 'attic' (one of bus, roboyard)" in run(checkout, "--room", "attic", "--table")[2]
    assert run(checkout, "--against", "no-such-revision")[0] == 2
    write(checkout, "src/roboyard/bus/node.py", "def f(:\n")
    code, _, err = run(checkout)
    assert (code, err.splitlines()) == (2, ["structure: src/roboyard/bus/node.py:1: invalid syntax"])
    write(checkout, "src/roboyard/bus/node.py", DOCSTRING)
    write(checkout, "tools/structure_guard/baseline.json", "{")
    assert run(checkout)[0] == 2
    write(checkout, "tools/structure_guard/vocabulary.toml", "[words]\n")
    code, _, err = run(checkout)
    assert code == 2
    assert "unknown section 'words'" in err
    assert run(tmp_path / "nowhere")[0] == 2


def test_damaged_cache_is_made_anew(checkout: Path) -> None:
    cache = checkout / ".structure_cache" / "facts.pickle"
    content = cache.read_bytes()
    for damaged in (b"", content[:100], b"junk", b"\x80\x05K\x01."):
        cache.write_bytes(damaged)
        assert run(checkout, "--strict")[0] == 0
        assert cache.read_bytes() == content


@pytest.mark.parametrize(
    "text",
    [
        "[parts]\ntold = 3\n",
        "[parts]\ntold = {use = 'x', where = 'y'}\n",
        "[parts]\ntold = {use = 'x', kinds = ['verb']}\n",
        "[parts]\ntold = 'x'\n'told tells' = 'y'\n",
        "[headings]\n'(' = 'x'\n",
        "[parts\n",
    ],
)
def test_malformed_vocabulary_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "vocabulary.toml"
    path.write_text(text)
    with pytest.raises(VocabularyError) as caught:
        Vocabulary.load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_exceptions_need_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "exceptions.toml"
    for section in ("class_names", "parameters.annotations", "single_importer"):
        path.write_text(f'[{section}]\nNode = " "\n')
        with pytest.raises(VocabularyError, match="'Node' has no reason"):
            Exceptions.load(path)
        path.write_text(f'[{section}]\nNode = "it may be"\n')
        assert Exceptions.load(path) != Exceptions()


def test_each_module_that_the_exceptions_keep_would_be_a_violation() -> None:
    exceptions = Exceptions.load(ROOT / "tools" / "structure_guard" / "exceptions.toml")
    real = Survey(SourceTree.from_disk(ROOT), VOCABULARY)
    (check,) = (one for one in checks.CHECKS if one.name == "single_importer")
    paths = {f"src/roboyard/{name.replace('.', '/')}.py" for name in exceptions.single_importer}
    assert paths
    assert paths <= {item.path for item in check.find(real)}


def test_replacements_use_no_banned_word() -> None:
    entries = {**VOCABULARY.parts, **VOCABULARY.names}
    for word, entry in entries.items():
        for name in entry.replacement.replace(",", " ").replace(";", " ").split():
            if "_" in name and "…" not in name:
                assert not VOCABULARY.find_in_identifier(name.strip("_"), "bus", "variable"), (word, name)


def test_syntax_error_of_a_tree_names_file_and_line() -> None:
    with pytest.raises(SourceError, match=r"src/roboyard/bus/node\.py:2: "):
        _ = SourceTree({"src/roboyard/bus/node.py": "x = 1\n)\n"}).modules


def test_this_checkout_is_within_its_baseline() -> None:
    """The real tree, in a process of its own as `make lint` runs it, and nothing of the package is imported."""
    program = (
        "import sys, structure; code = structure.main([]); "
        "sys.exit(code or 10 * any(name.split('.')[0] in ('roboyard', 'numpy') for name in sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT / "tools", capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
