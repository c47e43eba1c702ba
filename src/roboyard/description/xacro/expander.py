"""Walks a xacro document and writes the plain one: properties, arguments, macros, includes, conditions, blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from glob import has_magic
from pathlib import Path

from roboyard.description.reading import Reading
from roboyard.description.values import fault, shown
from roboyard.description.xacro.macros import Macro, parameters
from roboyard.description.xacro.operations import ExpressionError
from roboyard.description.xacro.tables import Lazy, Properties, Scope, truth
from roboyard.description.xacro.text import Texts, placed
from roboyard.description.xml import MAX_DEPTH, Node, parse
from roboyard.errors import DescriptionError

_NAME = re.compile(r"[^\W\d]\w*")
_MAX_WRITTEN = 100_000  # elements and attributes of the expanded document; a PR2 with every sensor has about 12,000
_MAX_VISITED = 1_000_000  # elements walked over, macros' bodies each time they are called, whether they write or not
_MAX_LEVELS = 200  # of elements, conditions, macro calls and includes within each other
_PREFIX = "xacro:"
_LEGACY = {
    "property": ("name", "value"), "macro": ("name", "params"), "include": ("filename",), "if": ("value",),
    "unless": ("value",), "insert_block": ("name",),
}  # fmt: skip
"""Tags that xacro took without its prefix before 2016, and what they must have to be meant."""
_URDF = {"link", "joint", "material", "gazebo", "transmission", "ros2_control", "model", "world", "sdf"}


class Expander:
    """One expansion.

    Args:
        reading: Resolves files and packages, takes findings.
        arguments: Values of ``<xacro:arg>``.
        environment: For ``$(env)``.
    """

    def __init__(self, reading: Reading, arguments: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self._reading = reading
        self._texts = Texts(reading, arguments, environment)
        self._undeclared = set(arguments)
        self._written = 0
        self._visited = 0
        self._levels = 0
        self._files: list[str] = []

    def document(self, root: Node) -> Node:
        """The expanded document. Raises DescriptionError."""
        properties, macros = Properties(), Scope[Macro]()
        self._files.append(root.file)
        try:
            out, early = self._element(root, properties, root.tag), True
        except DescriptionError:  # <robot name="$(arg name)"> stands above the argument's default
            out, early = Node(root.tag, {}, root.file, root.line), False
        self._children(root.children, out, properties, macros, 1)
        if not early:
            out.attributes = self._element(root, properties, root.tag).attributes
        out.attributes.pop("xmlns:xacro", None)
        for name in sorted(self._undeclared):
            self._reading.note(root, f"the argument '{name}' is given, but the document declares none of this name")
        return out

    # -- walking -------------------------------------------------------------------------------------------------------
    def _children(self, nodes: list[Node], out: Node, properties: Properties, macros: Scope[Macro], depth: int) -> None:
        """Expand ``nodes`` in order into ``out``, which is ``depth`` elements deep."""
        if self._levels >= _MAX_LEVELS:
            raise fault(f"macros, conditions and elements are nested more than {_MAX_LEVELS} deep", out)
        self._levels += 1
        self._visited += 1 + len(nodes)
        if self._visited > _MAX_VISITED:
            raise fault(f"the expansion walks over more than {_MAX_VISITED} elements", out)
        for node in nodes:
            tag = node.tag if node.tag.startswith(_PREFIX) else self._prefixed(node, macros, depth)
            if not tag:
                made = self._element(node, properties, node.tag)
                out.children.append(made)
                if depth >= MAX_DEPTH:
                    raise fault(f"the expanded elements are nested more than {MAX_DEPTH} deep", node)
                self._children(node.children, made, properties, macros, depth + 1)
                continue
            match tag[len(_PREFIX) :]:
                case "if" | "unless" as word:
                    if self._holds(node, properties) == (word == "if"):
                        self._append_text(node, out, properties)
                        self._children(node.children, out, properties, macros, depth)
                case "property":
                    self._property(node, properties)
                case "macro":
                    self._macro(node, properties, macros)
                case "arg":
                    self._argument(node, properties)
                case "include":
                    self._include(node, out, properties, macros, depth)
                case "insert_block":
                    self._insert(node, out, properties, macros, depth)
                case "attribute":
                    name, value = (
                        self._texts.string(self._need(node, key), properties, node) for key in ("name", "value")
                    )
                    out.attributes[name] = value
                case "element":
                    tag = self._texts.string(self._need(node, "xacro:name"), properties, node)
                    made = self._element(node, properties, tag)
                    made.attributes.pop("xacro:name")
                    out.children.append(made)
                    self._children(node.children, made, properties, macros, depth + 1)
                case "call":
                    name = self._texts.string(self._need(node, "macro"), properties, node)
                    self._call(node, name, out, properties, macros, depth)
                case name:
                    self._call(node, name, out, properties, macros, depth)
        self._levels -= 1

    def _prefixed(self, node: Node, macros: Scope[Macro], depth: int) -> str:
        """The tag with the prefix that old files leave out; empty for what is no tag of xacro's."""
        needed = _LEGACY.get(node.tag, ())
        old = needed and all(node.get(name).strip() for name in needed)
        if not old and (depth > 1 or node.tag in _URDF or not macros.has(node.tag)):
            return ""
        if depth > 1 and node.tag not in ("if", "unless", "insert_block"):
            return ""
        self._reading.note(node, f"<{node.tag}> is taken as <{_PREFIX}{node.tag}>: present xacro wants the prefix")
        return _PREFIX + node.tag

    def _element(self, node: Node, properties: Properties, tag: str) -> Node:
        """A copy of the element itself with its attributes and text evaluated."""
        self._written += 1 + len(node.attributes)
        if self._written > _MAX_WRITTEN:
            raise fault(f"the expanded document has more than {_MAX_WRITTEN} elements and attributes", node)
        texts = self._texts
        attributes = {key: texts.string(value, properties, node) for key, value in node.attributes.items()}
        text = node.text if "$" not in node.text else texts.string(node.text.strip(), properties, node)
        return Node(tag, attributes, node.file, node.line, text)

    def _append_text(self, node: Node, out: Node, properties: Properties) -> None:
        """Text standing directly in a condition or macro belongs to the element around it."""
        text = node.text.strip()
        if text:
            out.text = f"{out.text.strip()}{self._texts.string(text, properties, node)}"

    def _need(self, node: Node, name: str) -> str:
        if name not in node.attributes:
            raise fault(f"<{node.tag}> has no {name}", node, f'{name}="…"')
        return node.attributes[name]

    # -- the words -----------------------------------------------------------------------------------------------------
    def _holds(self, node: Node, properties: Properties) -> bool:
        text = self._need(node, "value")
        try:
            return truth(self._texts.value(text, properties, node))
        except ExpressionError as error:
            raise fault(f"value {shown(text)}: {error}", node, "true, false or a number") from None

    def _argument(self, node: Node, properties: Properties) -> None:
        name = self._need(node, "name")
        self._undeclared.discard(name)
        if name not in self._texts.arguments and "default" in node.attributes:
            self._texts.arguments[name] = self._texts.string(node.get("default"), properties, node)

    def _property(self, node: Node, properties: Properties) -> None:
        name = self._need(node, "name")
        if "$" in name:
            name = self._texts.string(name, properties, node)
        if not _NAME.fullmatch(name) or name.startswith("__"):
            raise fault(f"a property is called {shown(name)}", node, "letters, digits and _, not starting with a digit")
        where = node.get("scope")
        table = properties
        if where == "global":
            root = properties.root()
            table = root if isinstance(root, Properties) else properties
        elif where == "parent":
            table = properties.parent if isinstance(properties.parent, Properties) else properties
        elif where:
            self._reading.note(node, f"scope {shown(where)} is neither parent nor global: the property stays local")
        if node.get("remove") in ("true", "1"):
            table.values.pop(name, None)
            return
        if "default" in node.attributes and "value" not in node.attributes:
            if self._has(properties, name):
                return
            text = node.get("default")
        elif "value" in node.attributes:
            text = node.get("value")
        else:
            table.values["**" + name] = node
            return
        lazy = where not in ("parent", "global") and node.get("lazy_eval", "true") not in ("false", "0")
        if lazy:
            table.values[name] = Lazy(text, self._texts.lazy(node))
        else:
            table.define(name, self._texts.value(text, properties, node))

    @staticmethod
    def _has(properties: Properties, name: str) -> bool:
        try:
            properties.get(name)
        except KeyError:
            return False
        return True

    def _macro(self, node: Node, properties: Properties, macros: Scope[Macro]) -> None:
        name = self._need(node, "name").removeprefix(_PREFIX)
        if not name or "." in name:
            raise fault(f"a macro is called {shown(name)}", node, "a name without dots")
        macros.values[name] = Macro(node, parameters(node), properties, macros)

    # -- calls ---------------------------------------------------------------------------------------------------------
    def _call(self, node: Node, name: str, out: Node, properties: Properties, macros: Scope[Macro], depth: int) -> None:
        macro = self._found(node, name, macros)
        dotted = "." in name  # from an include with ns: it sees that file's properties and macros
        scope = Properties(macro.properties if dotted else properties)
        library = Scope[Macro](macro.macros if dotted else macros)
        blocks = Node(node.tag, {}, node.file, node.line)
        self._children(node.children, blocks, properties, macros, depth)
        waiting = list(blocks.children)
        known = {one.name for one in macro.parameters if not one.block}
        for key, text in node.attributes.items():
            if key == "macro" and node.tag == _PREFIX + "call":
                continue
            if key not in known:
                valid = ", ".join(one.name for one in macro.parameters) or "none"
                raise fault(f"macro '{name}' has no parameter '{key}'", node, f"parameters: {valid}")
            scope.define(key, self._texts.value(text, properties, node))
        for parameter in macro.parameters:
            if parameter.block:
                if not waiting:
                    raise fault(f"macro '{name}' is called without its block '{parameter.name}'", node)
                scope.values[parameter.name] = waiting.pop(0)
            elif parameter.name not in scope.values:
                if parameter.forward and self._has(properties, parameter.name):
                    scope.define(parameter.name, self._look(properties, parameter.name, node))
                elif parameter.default is not None:
                    scope.define(parameter.name, self._texts.value(parameter.default, properties, node))
                else:
                    raise fault(f"macro '{name}' is called without its parameter '{parameter.name}'", node)
        if waiting:
            raise fault(f"macro '{name}' takes no block <{waiting[0].tag}>", node)
        try:
            self._append_text(macro.node, out, scope)
            self._children(macro.node.children, out, scope, library, depth)
        except DescriptionError as error:
            if " at " in error.what and ", in macro '" in error.what:
                raise
            raise placed(error, node, f"macro '{name}' called") from None

    @staticmethod
    def _look(properties: Properties, name: str, node: Node) -> object:
        try:
            return properties.lookup(name)
        except ExpressionError as error:
            raise fault(f"property '{name}': {error}", node) from None

    def _found(self, node: Node, name: str, macros: Scope[Macro]) -> Macro:
        try:
            return macros.get(name)
        except KeyError:
            raise fault(f"<{shown(node.tag)[1:-1]}>: no macro is called '{name[:80]}'", node) from None

    # -- includes and blocks -------------------------------------------------------------------------------------------
    def _include(self, node: Node, out: Node, properties: Properties, macros: Scope[Macro], depth: int) -> None:
        name = self._texts.string(self._need(node, "filename"), properties, node)
        space = node.get("ns") and self._texts.string(node.get("ns"), properties, node)
        if space:
            table, library = Properties(properties), Scope[Macro](macros)
            properties.values[space] = table
            self._include_files(node, name, out, table, library, depth)
            for key, macro in library.values.items():
                macros.values[f"{space}.{key}"] = macro
        else:
            self._include_files(node, name, out, properties, macros, depth)

    def _include_files(
        self, node: Node, name: str, out: Node, properties: Properties, macros: Scope[Macro], depth: int
    ) -> None:
        for path in self._paths(node, name):
            if str(path) in self._files:
                raise fault(f"files include each other in a circle: {path.name}", node, "includes that end")
            problem = self._reading.resources.unreadable(path, 2**24)
            if problem:
                raise fault(f"included file {shown(name, 300)}: {problem}", node)
            root, findings = parse(path.read_bytes(), str(path))
            self._reading.count(node, sum(1 for _ in root.walk()))
            self._reading.add(findings)
            self._files.append(str(path))
            self._children(root.children, out, properties, macros, depth)
            self._files.pop()

    def _paths(self, node: Node, name: str) -> list[Path]:
        resources = self._reading.resources
        optional = node.get("optional") in ("true", "1")
        if has_magic(name):
            pattern = Path(name) if Path(name).is_absolute() else Path(node.file).parent / name
            found = sorted(pattern.parent.glob(pattern.name))[:200] if not has_magic(str(pattern.parent)) else []
            found = [path for path in found if resources.allows(path, node.file)]
            if not found:
                self._reading.note(node, f"no file matches {shown(name)}")
            return found
        one = resources.resolve(name, node.file)
        if one.path is None and not optional:
            raise fault(f"included file {shown(name, 300)}: {one.problem}", node)
        if one.guess:
            self._reading.note(node, f"included file {shown(name, 300)}: {one.guess}")
        return [one.path] if one.path else []

    def _insert(self, node: Node, out: Node, properties: Properties, macros: Scope[Macro], depth: int) -> None:
        name = self._texts.string(self._need(node, "name"), properties, node)
        for key, inner in (("**" + name, True), ("*" + name, False)):
            if self._has(properties, key):
                block = properties.get(key)
                self._children(block.children if inner else [block], out, properties, macros, depth)
                return
        raise fault(f"no block is called '{name[:80]}'", node)
