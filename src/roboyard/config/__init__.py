"""Configuration: frozen dataclasses with defaults, overridden by YAML files and checked.

Every error states file and line, key, value, and valid values.  `write_atomic` replaces user files in the complete
package.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.config.atomic_file import FileReplacement, atomic_path, write_atomic
    from roboyard.config.configuration import Config, ParameterDescriptor
    from roboyard.config.loading import apply_override, check, convert_value, load, loads
    from roboyard.config.parameter import RegisteredName, RegisteredType, ValueConstraint, parameter, required_parameter
    from roboyard.config.schema import SchemaRow, dump, dumps, json_schema, schema_comment, schema_rows, schema_table
    from roboyard.config.units import UnitError, parse_quantity
    from roboyard.config.wording import did_you_mean
    from roboyard.config.yaml_tree import YamlNode, parse_yaml, read_yaml, yaml_from_data

__all__ = [
    "Config",
    "FileReplacement",
    "ParameterDescriptor",
    "RegisteredName",
    "RegisteredType",
    "SchemaRow",
    "UnitError",
    "ValueConstraint",
    "YamlNode",
    "apply_override",
    "atomic_path",
    "check",
    "convert_value",
    "did_you_mean",
    "dump",
    "dumps",
    "json_schema",
    "load",
    "loads",
    "parameter",
    "parse_quantity",
    "parse_yaml",
    "read_yaml",
    "required_parameter",
    "schema_comment",
    "schema_rows",
    "schema_table",
    "write_atomic",
    "yaml_from_data",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "atomic_file": ("FileReplacement", "atomic_path", "write_atomic"),
    "configuration": ("Config", "ParameterDescriptor"),
    "loading": ("apply_override", "check", "convert_value", "load", "loads"),
    "parameter": ("RegisteredName", "RegisteredType", "ValueConstraint", "parameter", "required_parameter"),
    "schema": ("SchemaRow", "dump", "dumps", "json_schema", "schema_comment", "schema_rows", "schema_table"),
    "units": ("UnitError", "parse_quantity"),
    "wording": ("did_you_mean",),
    "yaml_tree": ("YamlNode", "parse_yaml", "read_yaml", "yaml_from_data"),
})  # fmt: skip
