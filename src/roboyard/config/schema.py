"""Writes configurations: data that `load` reads back, Markdown tables and JSON Schema of what it accepts."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml

from roboyard.config.conversion import configuration_keys, type_hints
from roboyard.config.parameter import (
    UNCONSTRAINED,
    RegisteredName,
    RegisteredType,
    ValueConstraint,
    parameter_info,
    yaml_key,
)
from roboyard.config.units import describe_quantity, quantity_pattern
from roboyard.config.wording import LIST_TYPES, describe_expected, union_members
from roboyard.config.yaml_tree import parse_scalar


def dump(value: Any) -> Any:
    """Convert a configuration to plain data (dicts, lists, numbers, text), from which `load` makes an equal one."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _dump_fields(value, "")
    if isinstance(value, Mapping):
        return {key.value if isinstance(key, Enum) else key: dump(element) for key, element in value.items()}
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
    """YAML dumper that quotes text which a YAML 1.2 or 1.1 reader would misinterpret, and never writes anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_text(self, data: str) -> yaml.ScalarNode:
        style = None if isinstance(parse_scalar(data), str) else "'"
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)


def dumps(value: Any) -> str:
    """Return `dump` as YAML text, with keys in the order of the fields."""
    text: str = yaml.dump(dump(value), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text


@dataclass(frozen=True, slots=True)
class SchemaRow:
    """One key of a configuration, in words.

    Attributes:
        key: Its name; nested ones are written "outer.inner", those of dicts and lists "outer.<name>.inner" and
            "outer[].inner".
        expected: What its value must be.
        default: Its default as YAML; "required", or empty where its own keys have the defaults.
        doc: Its meaning.
        runtime: It may change while a node runs.
    """

    key: str
    expected: str
    default: str
    doc: str
    runtime: bool


def schema_rows(cls: type) -> tuple[SchemaRow, ...]:
    """Return all keys of a configuration, nested and flattened ones included, in the order of their declaration."""
    rows: list[SchemaRow] = []
    for key, field, hint in _schema_rows(cls, "", ()):
        info = parameter_info(field)
        expected = describe_expected(hint, info.constraint)
        rows.append(SchemaRow(key, expected, _default_text(field), info.doc, info.runtime))
    return tuple(rows)


def schema_table(cls: type) -> str:
    """Return a Markdown table of all keys: name, valid values, default, meaning. Nested keys are `outer.inner`."""
    lines = ["| key | must be | default | meaning |", "| --- | --- | --- | --- |"]
    for row in schema_rows(cls):
        default = f"`{row.default}`" if row.default not in ("", "required") else row.default
        cells = (f"`{row.key}`", row.expected, default, row.doc)
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
    """Iterate over the dataclasses within an annotation, each with its suffix of the key path."""
    for member in union_members(hint):
        origin, arguments = get_origin(member), get_args(member)
        registered_type = RegisteredType.of(arguments) if origin is Annotated else None
        if registered_type is not None:
            yield from (("", registered_type.registry[name]) for name in registered_type.registry.names())
        elif isinstance(member, type) and dataclasses.is_dataclass(member):
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
        return ""  # the rows of its own keys show it
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("...\n").strip()
    return text


JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MAX_EXACT = 2.0**53
"""Bounds below it are written as integers where they are; 1e300 is not."""


def json_schema(annotation: Any, *, title: str = "", description: str = "") -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the files that `load` accepts for a configuration.

    It accepts whatever `load` accepts. It refuses unknown and missing keys, wrong types, and numbers and choices out of
    bounds. It cannot say what `Config.validate` checks, the bounds of numbers that are written as a text with a unit,
    and the difference between 1 and 1.0; `.inf` and `.nan`, which JSON does not have, are left to `load`.

    Args:
        annotation: A dataclass whose fields are declared with `parameter`, or another type that a file may hold.
        title: Title of the schema; empty: the name of the class.
        description: Description of the schema; empty: the first paragraph of the docstring of the class.

    Raises:
        TypeError: A field has a type that no file can hold: a mistake in the program.
    """
    writer = _JsonSchemaWriter()
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        writer.references[annotation] = "#"
        schema = {"title": annotation.__name__, **writer.object_schema(annotation)}
    else:
        schema = writer.schema(annotation, UNCONSTRAINED)
    schema |= {key: text for key, text in (("title", title), ("description", description)) if text}
    definitions = {"$defs": dict(sorted(writer.definitions.items()))} if writer.definitions else {}
    return {"$schema": JSON_SCHEMA_DIALECT, **schema, **definitions}


SCHEMA_FOLDER = Path(__file__).resolve().parent.parent / "schemas"
"""Folder of the installed package with the JSON Schemas of all kinds of files that people write."""


def schema_comment(kind: str) -> str:
    """Return the first line of a YAML file, by which an editor finds the installed JSON Schema of the file.

    Args:
        kind: Kind of the file, as `roboyard schema` lists them: "scenario", "robot".
    """
    return f"# yaml-language-server: $schema={SCHEMA_FOLDER / f'{kind}.schema.json'}\n"


class _JsonSchemaWriter:
    """Schemas of types; those of classes and of numbers with a unit are collected in `definitions`."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}
        self.references: dict[type, str] = {}
        self.registered_references: dict[tuple[type, str], str] = {}

    def schema(self, annotation: Any, constraint: ValueConstraint) -> dict[str, Any]:
        """The schema of a type; its cases are those of `conversion.convert`."""
        origin, arguments = get_origin(annotation), get_args(annotation)
        if annotation is Any or annotation is object:
            return {}
        if origin is Annotated:
            registered_name = RegisteredName.of(arguments[1:])
            if registered_name is not None:
                return {"enum": list(registered_name.registry.names())}
            registered_type = RegisteredType.of(arguments[1:])
            if registered_type is not None:
                names = registered_type.registry.names()
                return {"anyOf": [{"$ref": self._registered_reference(registered_type, name)} for name in names]}
            return self.schema(
                arguments[0], next((a for a in arguments[1:] if isinstance(a, ValueConstraint)), constraint)
            )
        if origin in (Union, types.UnionType):
            members = [self.schema(member, constraint) for member in arguments]
            return {} if {} in members else {"anyOf": members}
        if origin is Literal:
            return {"enum": list(arguments)}
        if annotation in LIST_TYPES or origin in LIST_TYPES:
            return self._array_schema(origin or annotation, arguments, constraint)
        if annotation is dict or origin is dict:
            return self._mapping_schema(arguments or (str, Any), constraint)
        if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
            return {"$ref": self._reference(annotation)}
        if isinstance(annotation, type) and issubclass(annotation, Enum):
            return {"enum": [member.value for member in annotation]}
        if annotation in (None, type(None)):
            return {"type": "null"}
        return self._scalar_schema(annotation, constraint)

    def _scalar_schema(self, annotation: Any, constraint: ValueConstraint) -> dict[str, Any]:
        choices: dict[str, Any] = {"enum": list(constraint.choices)} if constraint.choices else {}
        if annotation is bool:
            return {"type": "boolean", **choices}
        if annotation is str:
            return {"type": "string", **choices}
        if annotation is Path:
            return {"type": "string", "minLength": 1, **choices}
        if annotation not in (int, float):
            raise TypeError(f"a configuration cannot hold {annotation!r}")
        bounds = {
            keyword: int(bound) if abs(bound) < _MAX_EXACT and float(bound).is_integer() else bound
            for keyword, bound in (("minimum", constraint.low), ("maximum", constraint.high))
            if bound is not None and math.isfinite(bound)
        }
        if annotation is int and not constraint.unit:
            return {"type": "integer", **bounds, **choices}
        if choices:
            texts = {"type": "string", "pattern": quantity_pattern(constraint.unit)}
            return {"anyOf": [choices, texts]}
        return {"$ref": self._number_reference("integer" if annotation is int else "number", constraint.unit), **bounds}

    def _number_reference(self, kind: str, unit: str) -> str:
        """The reference of a number that may also be written as a text with a unit."""
        words = unit.replace("/", "_per_").replace("^", "").replace("%", "percent").replace("²", "2").replace("³", "3")
        name = f"{kind}_in_{re.sub(r'[^A-Za-z0-9_-]+', '_', words)}" if unit else f"{kind}_without_unit"
        quantity, examples = describe_quantity(unit)
        article = "An integer" if kind == "integer" else "A number"
        self.definitions[name] = {
            "type": [kind, "string"],
            "pattern": quantity_pattern(unit),
            "description": f"{article}{f' in {unit}' if unit else ''}, or a text that states {quantity} ({examples}).",
        }
        return f"#/$defs/{name}"

    def _array_schema(self, kind: Any, arguments: tuple[Any, ...], constraint: ValueConstraint) -> dict[str, Any]:
        if kind is tuple and arguments and arguments[-1] is not Ellipsis:
            members = () if arguments == ((),) else arguments
            items = [self.schema(member, constraint.of_element(i)) for i, member in enumerate(members)]
            first = {"prefixItems": items} if items else {}
            return {"type": "array", **first, "items": False, "minItems": len(items), "maxItems": len(items)}
        element = arguments[0] if arguments else Any
        items = [self.schema(element, constraint.of_element(i)) for i in range(len(constraint.units))]
        first = {"prefixItems": items} if items else {}
        return {"type": "array", **first, "items": self.schema(element, constraint.of_element(len(items)))}

    def _mapping_schema(self, arguments: tuple[Any, ...], constraint: ValueConstraint) -> dict[str, Any]:
        key_type, value_type = arguments
        names: dict[str, Any] = {}
        if key_type is int:
            names = {"propertyNames": {"pattern": "^-?[0-9]+$"}}
        elif key_type not in (str, Any):
            names = {"propertyNames": self.schema(key_type, UNCONSTRAINED)}
        return {"type": "object", **names, "additionalProperties": self.schema(value_type, constraint)}

    def _reference(self, cls: type) -> str:
        if cls not in self.references:
            module = cls.__module__.rsplit(".", 1)[-1]
            name = cls.__name__ if cls.__name__ not in self.definitions else f"{module}.{cls.__name__}"
            self.references[cls] = f"#/$defs/{name}"
            self.definitions[name] = {}  # a place for it, while the classes within it are looked at
            self.definitions[name] = self.object_schema(cls)
        return self.references[cls]

    def _registered_reference(self, registered_type: RegisteredType, name: str) -> str:
        """The reference of a registered class, whose key for the name allows this name only."""
        cls = registered_type.registry[name]
        definition = cls.__name__ if cls.__name__ not in self.definitions else f"{cls.__name__}.{name}"
        if (cls, name) not in self.registered_references:
            self.registered_references[cls, name] = f"#/$defs/{definition}"
            self.definitions[definition] = {}
            schema = self.object_schema(cls)
            schema["properties"][registered_type.key] |= {"enum": [name]}
            schema["properties"][registered_type.key].pop("type", None)
            self.definitions[definition] = schema
        return self.registered_references[cls, name]

    def object_schema(self, cls: type) -> dict[str, Any]:
        """The schema of a class's mapping, flattened configurations included."""
        schema: dict[str, Any] = {"type": "object"}
        documentation = (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")
        if documentation and not documentation.startswith(f"{cls.__name__}("):  # what `dataclass` writes
            schema["description"] = documentation
        properties: dict[str, Any] = {}
        required: list[str] = []
        dependent: dict[str, list[str]] = {}
        self._collect_properties(cls, "", properties, required, dependent)
        schema["properties"] = properties
        if required:
            schema["required"] = required
        if dependent:
            schema["dependentRequired"] = dependent
        return {**schema, "additionalProperties": False}

    def _collect_properties(
        self, cls: type, prefix: str, properties: dict[str, Any], required: list[str], dependent: dict[str, list[str]]
    ) -> None:
        """Add what a class declares; keys of a flattened one are required where another of its keys is given."""
        hints = type_hints(cls)
        for field in dataclasses.fields(cls):
            if not field.init:
                continue
            info, annotation = parameter_info(field), hints[field.name]
            if info.flatten is not None:
                inner_prefix = prefix + info.flatten
                inner_required: list[str] = []
                self._collect_properties(annotation, inner_prefix, properties, inner_required, dependent)
                for key in configuration_keys(annotation) if inner_required else ():
                    others = [one for one in inner_required if one != inner_prefix + key]
                    dependent.setdefault(inner_prefix + key, []).extend(others)
                continue
            key = prefix + yaml_key(field)
            schema = self.schema(annotation, info.constraint)
            description = _json_description(info.doc, info.constraint)
            properties[key] = schema | description | _json_default(field)
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
                required.append(key)


def _json_description(doc: str, constraint: ValueConstraint) -> dict[str, str]:
    sentence = doc[:1].upper() + doc[1:] + ("" if not doc or doc.endswith((".", "!", "?")) else ".")
    units = ", ".join(unit or "none" for unit in constraint.units) or constraint.unit
    unit_text = f"{'Units' if constraint.units else 'Unit'}: {units}." if units else ""
    text = " ".join(part for part in (sentence, unit_text) if part)
    return {"description": text} if text else {}


def _json_default(field: dataclasses.Field[Any]) -> dict[str, Any]:
    """The default, where JSON can hold it; none of nested classes whose own keys have the same defaults."""
    if field.default is not dataclasses.MISSING:
        value = field.default
    elif field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    else:
        return {}
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and _is_of_defaults(value):
        return {}
    data = dump(value)
    return {"default": data} if _is_json(data) else {}


def _is_of_defaults(value: Any) -> bool:
    for field in dataclasses.fields(value):
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        if field.init and (default is dataclasses.MISSING or getattr(value, field.name) != default):
            return False
    return True


def _is_json(data: Any) -> bool:
    if isinstance(data, dict):
        return all(isinstance(key, str) and _is_json(value) for key, value in data.items())
    if isinstance(data, list):
        return all(map(_is_json, data))
    if isinstance(data, float):
        return math.isfinite(data)
    return data is None or isinstance(data, bool | int | str)
