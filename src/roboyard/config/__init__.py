"""Configuration: frozen dataclasses with defaults, which YAML may override and which check what it says.

Every error names file and line, key, value, and what would be right.  `write_atomic` is how the whole package replaces
a file of the user's.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.config.atomic_file import Replacement, atomic_path, write_atomic
    from roboyard.config.fields import Limits, field
    from roboyard.config.load import check, convert_value, load, loads
    from roboyard.config.override import override
    from roboyard.config.schema import dump, dumps, schema_table
    from roboyard.config.tree import Node, from_data, read_file, read_text
    from roboyard.config.units import UnitError, parse_quantity

__all__ = [
    "Limits",
    "Node",
    "Replacement",
    "UnitError",
    "atomic_path",
    "check",
    "convert_value",
    "dump",
    "dumps",
    "field",
    "from_data",
    "load",
    "loads",
    "override",
    "parse_quantity",
    "read_file",
    "read_text",
    "schema_table",
    "write_atomic",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "atomic_file": ("Replacement", "atomic_path", "write_atomic"),
    "fields": ("Limits", "field"),
    "load": ("check", "convert_value", "load", "loads"),
    "override": ("override",),
    "schema": ("dump", "dumps", "schema_table"),
    "tree": ("Node", "from_data", "read_file", "read_text"),
    "units": ("UnitError", "parse_quantity"),
})  # fmt: skip
