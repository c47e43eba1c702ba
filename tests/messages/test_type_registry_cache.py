"""The type registry caches parsed definitions by content: a second process parses nothing and reads no stale entry."""

import subprocess
import sys
from pathlib import Path

import pytest

from roboyard.messages import type_registry as module
from roboyard.messages.message_definition import MessageDefinition, from_data, to_data
from roboyard.messages.type_registry import TypeRegistry

REGISTRY_SCRIPT = """
import sys
from roboyard.messages import type_registry
registry = type_registry.type_registry()
has_action = registry.has_interface("nav2_msgs/action/Wait")
print("rosbags.typesys" in sys.modules, registry.require("sensor_msgs/msg/LaserScan").name, has_action)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "roboyard" / "parsed" / "messages"


def read_all_definitions(registry: TypeRegistry) -> dict[str, MessageDefinition]:
    for name in [*registry.interface_names("srv"), *registry.interface_names("action")]:
        assert registry.has_interface(name)
    names = registry.message_names()
    return {name: registry.require(name) for name in names} | dict(registry._definitions)


def test_second_registry_parses_nothing_and_is_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    first = read_all_definitions(TypeRegistry())

    def parse(*_: object) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr(module, "parse_msg", parse)
    monkeypatch.setattr(module, "parse_parts", parse)
    second = read_all_definitions(TypeRegistry())
    assert second == first
    assert {name: repr(definition) for name, definition in second.items()} == {
        name: repr(definition) for name, definition in first.items()
    }


def test_second_process_imports_no_parser(tmp_path: Path) -> None:
    def call() -> str:
        return subprocess.run(
            [sys.executable, "-c", REGISTRY_SCRIPT], capture_output=True, text=True, check=True
        ).stdout.strip()

    assert call() == "True sensor_msgs/msg/LaserScan True"
    assert call() == "False sensor_msgs/msg/LaserScan True"


def test_changed_definition_is_parsed_again(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    name, texts = "own_msgs/msg/Level", module._package_texts()
    for text, field in (("float64 level\n", "level"), ("float64 height\n", "height"), ("float64 level\n", "level")):
        monkeypatch.setattr(module, "_package_texts", lambda text=text: texts | {name: text})
        assert [member.name for member in TypeRegistry().require(name).fields] == [field]
    assert len(list(cache.iterdir())) == 2


def test_cache_key_includes_the_parser(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    TypeRegistry()
    sources = module._parser_sources()
    monkeypatch.setattr(module, "_parser_sources", lambda: [*sources, b"another version"])
    TypeRegistry()
    assert len(list(cache.iterdir())) == 2


def test_corrupt_cache_entry_is_ignored(cache: Path) -> None:
    first = read_all_definitions(TypeRegistry())
    (entry,) = cache.iterdir()
    entry.write_bytes(entry.read_bytes().replace(b"float64", b"float32"))
    assert read_all_definitions(TypeRegistry()) == first


def test_definitions_survive_a_json_round_trip() -> None:
    import json

    for definition in read_all_definitions(TypeRegistry()).values():
        assert from_data(json.loads(json.dumps(to_data(definition)))) == definition


def test_invalid_definition_file_is_reported_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    from roboyard.errors import MessageError

    texts = module._package_texts() | {"own_msgs/msg/Wrong": "no type at all\n"}
    monkeypatch.setattr(module, "_package_texts", lambda: texts)
    for _ in range(2):
        registry = TypeRegistry()
        assert registry.get("geometry_msgs/msg/Twist") is not None
        with pytest.raises(MessageError, match="own_msgs/msg/Wrong"):
            registry.require("own_msgs/msg/Wrong")
