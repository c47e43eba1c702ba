"""JSON Schema of scenario files: of whole scenarios, and of the parts of one that are laid over another.

A file with ``extends``, a variant and a choice of an option state a part of a scenario: what they leave out is stated
below them. In a part no key is required, except within lists, which replace each other as a whole.
"""

from __future__ import annotations

from typing import Any, Final

from roboyard.config import json_schema
from roboyard.scenarios.schema import NAME_PATTERN, NAMED_SECTIONS, ScenarioConfig, complete_config_class

_REFERENCE: Final = "#/$defs/"
_PART: Final = "Part of "
_SCENARIO: Final = ScenarioConfig.__name__


def scenario_json_schema(title: str = "", description: str = "") -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of scenario files.

    Args:
        title: Title of the schema; empty: the name of the class.
        description: Description of the schema; empty: that of the class.
    """
    complete = json_schema(complete_config_class(), title=title, description=description)
    definitions: dict[str, Any] = complete.pop("$defs")
    head = {key: complete.pop(key) for key in ("$schema", "title", "description")}
    definitions[_SCENARIO] = complete
    properties = complete["properties"]
    for section in NAMED_SECTIONS:
        properties[section]["propertyNames"] = {"pattern": f"^{NAME_PATTERN.pattern}$"}
    part = {"$ref": f"{_REFERENCE}{_PART}{_SCENARIO}"}
    for variant in definitions["VariantsEntry"]["properties"].values():
        _describe_content(variant, part)
    choices = definitions["ScenarioOption"]["properties"]["choices"]
    choices["additionalProperties"] = dict(part)
    parts = _PartsWriter(definitions)
    parts.add(_SCENARIO)
    return {
        **head,
        "if": {"required": ["extends"]},
        "then": part,
        "else": {"$ref": f"{_REFERENCE}{_SCENARIO}"},
        "$defs": dict(sorted({**definitions, **parts.definitions}.items())),
    }


def _describe_content(schema: dict[str, Any], content: dict[str, Any]) -> None:
    """Replace the schema of a mapping of anything by that of a certain content; its description and default stay."""
    for key in ("type", "additionalProperties"):
        schema.pop(key)
    schema |= content


class _PartsWriter:
    """Makes of the definitions of whole objects those of parts of them, with the same names after a prefix."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self._complete_definitions = definitions
        self.definitions: dict[str, Any] = {}

    def add(self, name: str) -> None:
        """Add the part of a definition, and the parts of all that it refers to."""
        if _PART + name in self.definitions or name.startswith(_PART):
            return
        self.definitions[_PART + name] = {}  # a place for it, while what it refers to is added
        self.definitions[_PART + name] = self._part(self._complete_definitions[name])

    def _part(self, schema: dict[str, Any]) -> dict[str, Any]:
        if "$ref" in schema:
            name = schema["$ref"].removeprefix(_REFERENCE)
            if (
                self._complete_definitions.get(name, {}).get("type") != "object"
            ):  # a number with a unit, or a part already
                return schema
            self.add(name)
            return {**schema, "$ref": f"{_REFERENCE}{_PART}{name}"}
        if "anyOf" in schema:
            return {**schema, "anyOf": [self._part(one) for one in schema["anyOf"]]}
        if schema.get("type") != "object":
            return schema
        part = {key: value for key, value in schema.items() if key not in ("required", "dependentRequired")}
        if "properties" in schema:
            part["properties"] = {key: self._part(one) for key, one in schema["properties"].items()}
        if isinstance(schema.get("additionalProperties"), dict):
            part["additionalProperties"] = self._part(schema["additionalProperties"])
        return part
