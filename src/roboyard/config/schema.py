"""Writes configurations: Markdown tables for the documentation, and data that `load` reads back."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml

from roboyard.config.conversion import type_hints
from roboyard.config.parameter import parameter_info, yaml_key
from roboyard.config.wording import LIST_TYPES, describe_expected, union_members
from roboyard.config.yaml_tree import parse_scalar


def dump(value: Any) -> Any:
    """Plain data (dicts, lists, numbers, text) from which `load` makes an equal configuration."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _dump_fields(value, "")
    if isinstance(value, Mapping):
        return {key: dump(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [dump(element) for element in value]
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value


def _dump_fields(value: Any, prefix: str) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        inner_prefix = parameter_info(field).flatten
        if inner_prefix is not None:
            data |= _dump_fields(getattr(value, field.name), prefix + inner_prefix)
        elif field.init:
            data[prefix + yaml_key(field)] = dump(getattr(value, field.name))
    return data


class _Dumper(yaml.SafeDumper):
    """Quotes what our reader (YAML 1.2) or another (1.1) would take for something else; never writes anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_text(self, data: str) -> yaml.ScalarNode:
        style = None if isinstance(parse_scalar(data), str) else "'"
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)


def dumps(value: Any) -> str:
    """`dump` as YAML text, keys in the order of the fields."""
    text: str = yaml.dump(dump(value), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text


def schema_table(cls: type) -> str:
    """A Markdown table of all keys: name, what it must be, default, meaning. Nested keys are written `outer.inner`."""
    lines = ["| key | must be | default | meaning |", "| --- | --- | --- | --- |"]
    for key, field, hint in _schema_rows(cls, "", ()):
        info = parameter_info(field)
        cells = (f"`{key}`", describe_expected(hint, info.constraint), _default_text(field), info.doc)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _schema_rows(cls: type, prefix: str, outer: tuple[type, ...]) -> Iterator[tuple[str, dataclasses.Field[Any], Any]]:
    hints = type_hints(cls)
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        inner_prefix = parameter_info(field).flatten
        if inner_prefix is not None:
            yield from _schema_rows(hints[field.name], prefix + inner_prefix, (*outer, cls))
            continue
        key = prefix + yaml_key(field)
        yield key, field, hints[field.name]
        for suffix, nested in _nested_dataclasses(hints[field.name]):
            if nested not in (*outer, cls):
                yield from _schema_rows(nested, f"{key}{suffix}.", (*outer, cls))


def _nested_dataclasses(hint: Any) -> Iterator[tuple[str, type]]:
    """The dataclasses within an annotation, each with how a key path gets there."""
    for member in union_members(hint):
        origin, arguments = get_origin(member), get_args(member)
        if isinstance(member, type) and dataclasses.is_dataclass(member):
            yield "", member
        elif origin is dict:
            yield from ((f".<name>{suffix}", cls) for suffix, cls in _nested_dataclasses(arguments[1]))
        elif origin in LIST_TYPES and arguments:
            yield from ((f"[]{suffix}", cls) for suffix, cls in _nested_dataclasses(arguments[0]))


def _default_text(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        value = dump(field.default)
    elif field.default_factory is not dataclasses.MISSING:
        value = dump(field.default_factory())
    else:
        return "required"
    if isinstance(value, dict):
        return ""  # its own keys show it
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("...\n").strip()
    return f"`{text}`"
