"""Parsed message definitions are kept by content: a second process parses nothing, and nothing stale is read."""

import subprocess
import sys
from pathlib import Path

import pytest

from roboyard.messages import type_registry as module
from roboyard.messages.message_definition import MessageDefinition, from_data, to_data
from roboyard.messages.type_registry import TypeRegistry

SHOW = """
import sys
from roboyard.messages import type_registry
lib = type_registry.type_registry()
has_action = lib.has_interface("nav2_msgs/action/Wait")
print("rosbags.typesys" in sys.modules, lib.require("sensor_msgs/msg/LaserScan").name, has_action)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "roboyard" / "parsed" / "messages"


def everything(library: TypeRegistry) -> dict[str, MessageDefinition]:
    for name in [*library.interface_names("srv"), *library.interface_names("action")]:
        assert library.has_interface(name)
    names = library.message_names()
    return {name: library.require(name) for name in names} | dict(library._definitions)


def test_second_library_parses_nothing_and_is_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    first = everything(TypeRegistry())

    def parse(*_: object) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr(module, "parse_msg", parse)
    monkeypatch.setattr(module, "parse_parts", parse)
    second = everything(TypeRegistry())
    assert second == first
    assert {name: repr(one) for name, one in second.items()} == {name: repr(one) for name, one in first.items()}


def test_second_process_imports_no_parser(tmp_path: Path) -> None:
    def call() -> str:
        return subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True).stdout.strip()

    assert call() == "True sensor_msgs/msg/LaserScan True"
    assert call() == "False sensor_msgs/msg/LaserScan True"


def test_changed_definition_is_parsed_again(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    name, texts = "own_msgs/msg/Level", module._package_texts()
    for text, field in (("float64 level\n", "level"), ("float64 height\n", "height"), ("float64 level\n", "level")):
        monkeypatch.setattr(module, "_package_texts", lambda text=text: texts | {name: text})
        assert [one.name for one in TypeRegistry().require(name).fields] == [field]
    assert len(list(cache.iterdir())) == 2


def test_cache_key_includes_the_parser(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    TypeRegistry()
    sources = module._parser_sources()
    monkeypatch.setattr(module, "_parser_sources", lambda: [*sources, b"another version"])
    TypeRegistry()
    assert len(list(cache.iterdir())) == 2


def test_corrupt_cache_entry_is_ignored(cache: Path) -> None:
    first = everything(TypeRegistry())
    (entry,) = cache.iterdir()
    entry.write_bytes(entry.read_bytes().replace(b"float64", b"float32"))
    assert everything(TypeRegistry()) == first


def test_definitions_convert_to_json_and_back() -> None:
    import json

    for definition in everything(TypeRegistry()).values():
        assert from_data(json.loads(json.dumps(to_data(definition)))) == definition


def test_invalid_definition_file_is_reported_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    from roboyard.errors import MessageError

    texts = module._package_texts() | {"own_msgs/msg/Wrong": "no type at all\n"}
    monkeypatch.setattr(module, "_package_texts", lambda: texts)
    for _ in range(2):
        found = TypeRegistry()
        assert found.get("geometry_msgs/msg/Twist") is not None
        with pytest.raises(MessageError, match="own_msgs/msg/Wrong"):
            found.require("own_msgs/msg/Wrong")
