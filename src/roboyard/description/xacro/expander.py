"""Expands a xacro document into plain XML: properties, arguments, macros, includes, conditions, blocks."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from glob import has_magic
from pathlib import Path

from roboyard.description.reader_context import ReaderContext
from roboyard.description.xacro.expressions import ExpressionError
from roboyard.description.xacro.scopes import LazyProperty, Macro, Properties, XacroScope, parse_parameters, to_bool
from roboyard.description.xacro.text import TextEvaluator, add_call_location
from roboyard.description.xml import MAX_DEPTH, XmlNode
from roboyard.description.xml_values import error_at, quote
from roboyard.errors import DescriptionError

_NAME = re.compile(r"[^\W\d]\w*")
_MAX_EXPANDED = 100_000  # elements and attributes of the expanded document; a PR2 with every sensor has about 12,000
_MAX_VISITED = 1_000_000  # visited elements; macro bodies count at each call
_MAX_LEVELS = 200  # nesting of elements, conditions, macro calls and includes
_PREFIX = "xacro:"
_UNPREFIXED_TAGS = {
    "property": ("name", "value"), "macro": ("name", "params"), "include": ("filename",), "if": ("value",),
    "unless": ("value",), "insert_block": ("name",),
}  # fmt: skip
"""Tags that xacro accepted without its prefix before 2016, and the attributes that identify them."""
_URDF_TAGS = {"link", "joint", "material", "gazebo", "transmission", "ros2_control", "model", "world", "sdf"}


def is_xacro(root: XmlNode, source: Path | None) -> bool:
    """Return whether the document uses xacro."""
    if source is not None and ".xacro" in source.name.lower():
        return True
    declared = "xmlns:xacro" in root.attributes
    for node in root.walk():
        if node.tag.startswith("xacro:"):
            return True
        if declared and any("${" in text or "$(" in text for text in (node.text, *node.attributes.values())):
            return True
    return False


def expand(
    context: ReaderContext, root: XmlNode, arguments: Mapping[str, str], environment: Mapping[str, str] | None = None
) -> XmlNode:
    """Expand a xacro document.

    Args:
        context: Resolves files and packages, receives warnings.
        root: The document as parsed.
        arguments: Values of ``<xacro:arg>``.
        environment: Variables for ``$(env)`` and ``$(optenv)``; None for the process's.

    Raises:
        DescriptionError: A macro, property, argument, file or expression is wrong, or the expansion does not end.
    """
    argument_values = {str(name): str(value) for name, value in arguments.items()}
    expander = Expander(context, argument_values, os.environ if environment is None else environment)
    try:
        return expander.expand_document(root)
    except RecursionError:
        raise error_at("the expansion is nested too deeply", root) from None


class Expander:
    """Expansion of one document.

    Args:
        context: Resolves files and packages, receives warnings.
        arguments: Values of ``<xacro:arg>``.
        environment: Variables for ``$(env)``.
    """

    def __init__(self, context: ReaderContext, arguments: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self._context = context
        self._evaluator = TextEvaluator(context, arguments, environment)
        self._undeclared = set(arguments)
        self._n_expanded = 0
        self._n_visited = 0
        self._level = 0
        self._files: list[str] = []

    def expand_document(self, root: XmlNode) -> XmlNode:
        """Return the expanded document. Raises DescriptionError."""
        properties, macros = Properties(), XacroScope[Macro]()
        self._files.append(root.file)
        try:
            out, is_root_evaluated = self._copy_element(root, properties, root.tag), True
        except DescriptionError:  # <robot name="$(arg name)"> comes before the argument's default
            out, is_root_evaluated = XmlNode(root.tag, {}, root.file, root.line), False
        self._expand_children(root.children, out, properties, macros, 1)
        if not is_root_evaluated:
            out.attributes = self._copy_element(root, properties, root.tag).attributes
        out.attributes.pop("xmlns:xacro", None)
        for name in sorted(self._undeclared):
            self._context.warn(root, f"the argument '{name}' is given, but not declared in the document")
        return out

    # -- traversal
    # -------------------------------------------------------------------------------------------------------
    def _expand_children(
        self, nodes: list[XmlNode], out: XmlNode, properties: Properties, macros: XacroScope[Macro], depth: int
    ) -> None:
        """Expand `nodes` in order into `out`, which is `depth` elements deep."""
        if self._level >= _MAX_LEVELS:
            raise error_at(f"macros, conditions and elements are nested more than {_MAX_LEVELS} deep", out)
        self._level += 1
        self._n_visited += 1 + len(nodes)
        if self._n_visited > _MAX_VISITED:
            raise error_at(f"the expansion visits more than {_MAX_VISITED} elements", out)
        for node in nodes:
            tag = node.tag if node.tag.startswith(_PREFIX) else self._prefixed_tag(node, macros, depth)
            if not tag:
                element = self._copy_element(node, properties, node.tag)
                out.children.append(element)
                if depth >= MAX_DEPTH:
                    raise error_at(f"the expanded elements are nested more than {MAX_DEPTH} deep", node)
                self._expand_children(node.children, element, properties, macros, depth + 1)
                continue
            match tag[len(_PREFIX) :]:
                case "if" | "unless" as word:
                    if self._is_condition_true(node, properties) == (word == "if"):
                        self._append_text(node, out, properties)
                        self._expand_children(node.children, out, properties, macros, depth)
                case "property":
                    self._define_property(node, properties)
                case "macro":
                    self._define_macro(node, properties, macros)
                case "arg":
                    self._declare_argument(node, properties)
                case "include":
                    self._include(node, out, properties, macros, depth)
                case "insert_block":
                    self._insert_block(node, out, properties, macros, depth)
                case "attribute":
                    name, value = (
                        self._evaluator.evaluate_to_text(self._required_attribute(node, key), properties, node)
                        for key in ("name", "value")
                    )
                    out.attributes[name] = value
                case "element":
                    tag = self._evaluator.evaluate_to_text(
                        self._required_attribute(node, "xacro:name"), properties, node
                    )
                    element = self._copy_element(node, properties, tag)
                    element.attributes.pop("xacro:name")
                    out.children.append(element)
                    self._expand_children(node.children, element, properties, macros, depth + 1)
                case "call":
                    name = self._evaluator.evaluate_to_text(self._required_attribute(node, "macro"), properties, node)
                    self._call_macro(node, name, out, properties, macros, depth)
                case name:
                    self._call_macro(node, name, out, properties, macros, depth)
        self._level -= 1

    def _prefixed_tag(self, node: XmlNode, macros: XacroScope[Macro], depth: int) -> str:
        """Return the tag with the prefix that old files omit; empty if it is not a xacro tag."""
        required_attributes = _UNPREFIXED_TAGS.get(node.tag, ())
        is_unprefixed = required_attributes and all(node.get(name).strip() for name in required_attributes)
        if not is_unprefixed and (depth > 1 or node.tag in _URDF_TAGS or not macros.has(node.tag)):
            return ""
        if depth > 1 and node.tag not in ("if", "unless", "insert_block"):
            return ""
        self._context.warn(node, f"<{node.tag}> is read as <{_PREFIX}{node.tag}>: current xacro requires the prefix")
        return _PREFIX + node.tag

    def _copy_element(self, node: XmlNode, properties: Properties, tag: str) -> XmlNode:
        """Copy the element itself with its attributes and text evaluated."""
        self._n_expanded += 1 + len(node.attributes)
        if self._n_expanded > _MAX_EXPANDED:
            raise error_at(f"the expanded document has more than {_MAX_EXPANDED} elements and attributes", node)
        evaluator = self._evaluator
        attributes = {
            key: evaluator.evaluate_to_text(value, properties, node) for key, value in node.attributes.items()
        }
        text = node.text if "$" not in node.text else evaluator.evaluate_to_text(node.text.strip(), properties, node)
        return XmlNode(tag, attributes, node.file, node.line, text)

    def _append_text(self, node: XmlNode, out: XmlNode, properties: Properties) -> None:
        """Append the text of a condition or macro to the surrounding element."""
        text = node.text.strip()
        if text:
            out.text = f"{out.text.strip()}{self._evaluator.evaluate_to_text(text, properties, node)}"

    def _required_attribute(self, node: XmlNode, name: str) -> str:
        if name not in node.attributes:
            raise error_at(f"<{node.tag}> has no {name}", node, f'{name}="…"')
        return node.attributes[name]

    # -- directives
    # -----------------------------------------------------------------------------------------------------
    def _is_condition_true(self, node: XmlNode, properties: Properties) -> bool:
        text = self._required_attribute(node, "value")
        try:
            return to_bool(self._evaluator.evaluate(text, properties, node))
        except ExpressionError as error:
            raise error_at(f"value {quote(text)}: {error}", node, "true, false or a number") from None

    def _declare_argument(self, node: XmlNode, properties: Properties) -> None:
        name = self._required_attribute(node, "name")
        self._undeclared.discard(name)
        if name not in self._evaluator.arguments and "default" in node.attributes:
            self._evaluator.arguments[name] = self._evaluator.evaluate_to_text(node.get("default"), properties, node)

    def _define_property(self, node: XmlNode, properties: Properties) -> None:
        name = self._required_attribute(node, "name")
        if "$" in name:
            name = self._evaluator.evaluate_to_text(name, properties, node)
        if not _NAME.fullmatch(name) or name.startswith("__"):
            raise error_at(
                f"invalid property name {quote(name)}", node, "letters, digits and _, not starting with a digit"
            )
        scope_name = node.get("scope")
        table = properties
        if scope_name == "global":
            root = properties.root()
            table = root if isinstance(root, Properties) else properties
        elif scope_name == "parent":
            table = properties.parent if isinstance(properties.parent, Properties) else properties
        elif scope_name:
            self._context.warn(node, f"unknown scope {quote(scope_name)} (parent or global): the property is local")
        if node.get("remove") in ("true", "1"):
            table.values.pop(name, None)
            return
        if "default" in node.attributes and "value" not in node.attributes:
            if self._is_defined(properties, name):
                return
            text = node.get("default")
        elif "value" in node.attributes:
            text = node.get("value")
        else:
            table.values["**" + name] = node
            return
        is_lazy = scope_name not in ("parent", "global") and node.get("lazy_eval", "true") not in ("false", "0")
        if is_lazy:
            table.values[name] = LazyProperty(text, self._evaluator.deferred(node))
        else:
            table.define(name, self._evaluator.evaluate(text, properties, node))

    @staticmethod
    def _is_defined(properties: Properties, name: str) -> bool:
        try:
            properties.get(name)
        except KeyError:
            return False
        return True

    def _define_macro(self, node: XmlNode, properties: Properties, macros: XacroScope[Macro]) -> None:
        name = self._required_attribute(node, "name").removeprefix(_PREFIX)
        if not name or "." in name:
            raise error_at(f"invalid macro name {quote(name)}", node, "a name without dots")
        macros.values[name] = Macro(node, parse_parameters(node), properties, macros)

    # -- calls ---------------------------------------------------------------------------------------------------------
    def _call_macro(
        self, node: XmlNode, name: str, out: XmlNode, properties: Properties, macros: XacroScope[Macro], depth: int
    ) -> None:
        macro = self._find_macro(node, name, macros)
        is_namespaced = "." in name  # from an include with ns: it uses that file's properties and macros
        scope = Properties(macro.properties if is_namespaced else properties)
        local_macros = XacroScope[Macro](macro.macros if is_namespaced else macros)
        blocks = XmlNode(node.tag, {}, node.file, node.line)
        self._expand_children(node.children, blocks, properties, macros, depth)
        remaining_blocks = list(blocks.children)
        value_parameters = {one.name for one in macro.parameters if not one.is_block}
        for key, text in node.attributes.items():
            if key == "macro" and node.tag == _PREFIX + "call":
                continue
            if key not in value_parameters:
                valid = ", ".join(one.name for one in macro.parameters) or "none"
                raise error_at(f"macro '{name}' has no parameter '{key}'", node, f"parameters: {valid}")
            scope.define(key, self._evaluator.evaluate(text, properties, node))
        for parameter in macro.parameters:
            if parameter.is_block:
                if not remaining_blocks:
                    raise error_at(f"macro '{name}' requires the block '{parameter.name}'", node)
                scope.values[parameter.name] = remaining_blocks.pop(0)
            elif parameter.name not in scope.values:
                if parameter.inherits and self._is_defined(properties, parameter.name):
                    scope.define(parameter.name, self._lookup(properties, parameter.name, node))
                elif parameter.default is not None:
                    scope.define(parameter.name, self._evaluator.evaluate(parameter.default, properties, node))
                else:
                    raise error_at(f"macro '{name}' requires the parameter '{parameter.name}'", node)
        if remaining_blocks:
            raise error_at(f"macro '{name}' does not accept the block <{remaining_blocks[0].tag}>", node)
        try:
            self._append_text(macro.node, out, scope)
            self._expand_children(macro.node.children, out, scope, local_macros, depth)
        except DescriptionError as error:
            if " at " in error.message and ", in macro '" in error.message:
                raise
            raise add_call_location(error, node, f"macro '{name}' called") from None

    @staticmethod
    def _lookup(properties: Properties, name: str, node: XmlNode) -> object:
        try:
            return properties.lookup(name)
        except ExpressionError as error:
            raise error_at(f"property '{name}': {error}", node) from None

    def _find_macro(self, node: XmlNode, name: str, macros: XacroScope[Macro]) -> Macro:
        try:
            return macros.get(name)
        except KeyError:
            raise error_at(f"<{quote(node.tag)[1:-1]}>: unknown macro '{name[:80]}'", node) from None

    # -- includes and blocks -------------------------------------------------------------------------------------------
    def _include(
        self, node: XmlNode, out: XmlNode, properties: Properties, macros: XacroScope[Macro], depth: int
    ) -> None:
        name = self._evaluator.evaluate_to_text(self._required_attribute(node, "filename"), properties, node)
        namespace = node.get("ns") and self._evaluator.evaluate_to_text(node.get("ns"), properties, node)
        if namespace:
            included_properties, included_macros = Properties(properties), XacroScope[Macro](macros)
            properties.values[namespace] = included_properties
            self._include_files(node, name, out, included_properties, included_macros, depth)
            for key, macro in included_macros.values.items():
                macros.values[f"{namespace}.{key}"] = macro
        else:
            self._include_files(node, name, out, properties, macros, depth)

    def _include_files(
        self, node: XmlNode, name: str, out: XmlNode, properties: Properties, macros: XacroScope[Macro], depth: int
    ) -> None:
        for path in self._included_paths(node, name):
            if str(path) in self._files:
                raise error_at(f"files include each other in a cycle: {path.name}", node, "includes that end")
            label = f"included file {quote(name, 300)}"
            root = self._context.parse_included_file(path, node, label)
            self._files.append(str(path))
            self._expand_children(root.children, out, properties, macros, depth)
            self._files.pop()

    def _included_paths(self, node: XmlNode, name: str) -> list[Path]:
        resources = self._context.resources
        optional = node.get("optional") in ("true", "1")
        if has_magic(name):
            pattern = Path(name) if Path(name).is_absolute() else Path(node.file).parent / name
            matches = sorted(pattern.parent.glob(pattern.name))[:200] if not has_magic(str(pattern.parent)) else []
            matches = [path for path in matches if resources.is_allowed(path, node.file)]
            if not matches:
                self._context.warn(node, f"no file matches {quote(name)}")
            return matches
        resolved = resources.resolve(name, node.file)
        if resolved.path is None and not optional:
            raise error_at(f"included file {quote(name, 300)}: {resolved.problem}", node)
        if resolved.how_found:
            self._context.warn(node, f"included file {quote(name, 300)}: {resolved.how_found}")
        return [resolved.path] if resolved.path else []

    def _insert_block(
        self, node: XmlNode, out: XmlNode, properties: Properties, macros: XacroScope[Macro], depth: int
    ) -> None:
        name = self._evaluator.evaluate_to_text(self._required_attribute(node, "name"), properties, node)
        for key, content_only in (("**" + name, True), ("*" + name, False)):
            if self._is_defined(properties, key):
                block = properties.get(key)
                self._expand_children(block.children if content_only else [block], out, properties, macros, depth)
                return
        raise error_at(f"unknown block '{name[:80]}'", node)
