"""What the checks need to know of one Python file, extracted from its syntax tree in one pass.

The facts of a file depend on its text alone, so that they can be cached by the hash of the text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

REFERENCE = re.compile(r"roboyard(?:\.[A-Za-z_]\w*)+(?::[A-Za-z_]\w*)?")
"""A string that names a module of the package, with or without an attribute after a colon."""


ImportPlace = Literal["module", "function", "type_checking"]
"""Where an import statement stands, which says when Python runs it.

``module``: when the file is loaded.  ``function``: when a function is called.  ``type_checking``: never.
"""


@dataclass(slots=True)
class Import:
    """One import statement; `names` is empty for ``import module``."""

    line: int
    module: str
    level: int
    names: tuple[str, ...]
    place: ImportPlace = "module"


@dataclass(slots=True)
class Definition:
    """A name that the file defines: once in each scope, at its first place."""

    line: int
    name: str
    kind: str
    scope: str


@dataclass(slots=True)
class Class:
    """A class of the module's top level, and the last parts of its bases' names."""

    line: int
    name: str
    bases: tuple[str, ...]


@dataclass(slots=True)
class Function:
    """A function or method with the number of its parameters; `self` and `cls` are not counted."""

    line: int
    name: str
    n_parameters: int
    is_public: bool
    decorators: tuple[str, ...]
    annotations: tuple[str, ...]
    """What is called inside annotations of its parameters, as `Option` is in ``Annotated[int, typer.Option()]``."""


@dataclass(slots=True)
class Facts:
    """All that the checks use of one file."""

    n_lines: int
    imports: list[Import] = field(default_factory=list)
    definitions: list[Definition] = field(default_factory=list)
    classes: list[Class] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    exports: dict[str, int] = field(default_factory=dict)
    lazy_exports: dict[str, tuple[int, str]] = field(default_factory=dict)
    references: list[tuple[int, str]] = field(default_factory=list)
    docstrings: list[tuple[int, str]] = field(default_factory=list)
    messages: list[tuple[int, str]] = field(default_factory=list)


def extract(text: str) -> Facts:
    """Facts of a file with this text; raises SyntaxError."""
    tree = ast.parse(text)
    facts = Facts(len(text.splitlines()))
    reader = _Reader(facts)
    reader.docstring(tree)
    module = _Scope("", "module")
    for node in tree.body:
        reader.visit(node, module)
    _read_tables(tree, facts)
    return facts


@dataclass(slots=True)
class _Scope:
    name: str
    kind: str
    defined: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    """Attributes of the class that the scope is, or whose method it is."""
    receiver: str = ""
    """The name of `self` in a method."""
    owner: str = ""
    """The class whose method the scope is."""
    is_public: bool = True


class _Reader:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.import_place: ImportPlace = "module"

    def define(self, line: int, name: str, kind: str, scope: _Scope) -> None:
        if name in scope.defined or (scope.kind == "class" and name in scope.attributes):
            return
        scope.defined.add(name)
        if scope.kind == "class":
            scope.attributes.add(name)
        self.facts.definitions.append(Definition(line, name, kind, scope.name))

    def docstring(self, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if not node.body:
            return
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            self.facts.docstrings.append((first.lineno, first.value.value))

    def visit(self, node: ast.AST, scope: _Scope) -> None:
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            handler(self, node, scope)
        else:
            self.children(node, scope)

    def children(self, node: ast.AST, scope: _Scope) -> None:
        for name in node._fields:
            value = getattr(node, name)
            if isinstance(value, ast.AST):
                self.visit(value, scope)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.AST):
                        self.visit(item, scope)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: _Scope) -> None:
        self.define(node.lineno, node.name, "function", scope)
        decorators = tuple(map(_last_name, node.decorator_list))
        in_class = scope.kind == "class"
        bound = in_class and "staticmethod" not in decorators
        name = f"{scope.name}.{node.name}" if scope.name else node.name
        public = scope.is_public and scope.kind != "function" and _is_public(node.name)
        inner = _Scope(name, "function", is_public=public)
        if in_class:
            inner.attributes, inner.owner = scope.attributes, scope.name
        elif scope.kind == "function":
            inner.attributes, inner.owner, inner.receiver = scope.attributes, scope.owner, scope.receiver
        parameters = _parameters(node.args)
        if bound and parameters:
            inner.receiver = parameters[0].arg
            inner.defined.add(parameters.pop(0).arg)
        if "overload" not in decorators:
            called = tuple(
                _last_name(item)
                for parameter in parameters
                if parameter.annotation is not None
                for item in ast.walk(parameter.annotation)
                if isinstance(item, ast.Call)
            )
            self.facts.functions.append(Function(node.lineno, name, len(parameters), public, decorators, called))
        for item in node.decorator_list:
            self.visit(item, scope)
        for parameter in parameters:
            self.define(parameter.lineno, parameter.arg, "parameter", inner)
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default, scope)
        self.docstring(node)
        self.statements(node.body, inner, "function")

    def statements(self, body: list[ast.stmt], scope: _Scope, place: ImportPlace) -> None:
        """Visit statements whose imports stand at `place`."""
        outer, self.import_place = self.import_place, place
        for statement in body:
            self.visit(statement, scope)
        self.import_place = outer

    def if_(self, node: ast.If, scope: _Scope) -> None:
        if _last_name(node.test) != "TYPE_CHECKING":
            self.children(node, scope)
            return
        self.statements(node.body, scope, "type_checking")
        self.statements(node.orelse, scope, self.import_place)

    def lambda_(self, node: ast.Lambda, scope: _Scope) -> None:
        for parameter in _parameters(node.args):
            self.define(parameter.lineno, parameter.arg, "parameter", _function_scope(scope))
        self.children(node, scope)

    def class_(self, node: ast.ClassDef, scope: _Scope) -> None:
        self.define(node.lineno, node.name, "class", scope)
        name = f"{scope.name}.{node.name}" if scope.name else node.name
        if scope.kind == "module":
            self.facts.classes.append(Class(node.lineno, node.name, tuple(map(_last_name, node.bases))))
        public = scope.is_public and scope.kind != "function" and _is_public(node.name)
        inner = _Scope(name, "class", is_public=public)
        for item in [*node.decorator_list, *node.bases, *node.keywords]:
            self.visit(item, scope)
        self.docstring(node)
        for statement in node.body:
            self.visit(statement, inner)

    def name(self, node: ast.Name, scope: _Scope) -> None:
        if isinstance(node.ctx, ast.Store):
            self.define(node.lineno, node.id, "attribute" if scope.kind == "class" else "variable", scope)

    def attribute(self, node: ast.Attribute, scope: _Scope) -> None:
        value = node.value
        if isinstance(node.ctx, ast.Store) and isinstance(value, ast.Name) and value.id == scope.receiver != "":
            if node.attr not in scope.attributes:
                scope.attributes.add(node.attr)
                self.facts.definitions.append(Definition(node.lineno, node.attr, "attribute", scope.owner))
            return
        self.visit(value, scope)

    def import_(self, node: ast.Import, scope: _Scope) -> None:
        for alias in node.names:
            self.facts.imports.append(Import(node.lineno, alias.name, 0, (), self.import_place))
        self.aliases(node, scope)

    def import_from(self, node: ast.ImportFrom, scope: _Scope) -> None:
        names = tuple(alias.name for alias in node.names)
        self.facts.imports.append(Import(node.lineno, node.module or "", node.level, names, self.import_place))
        self.aliases(node, scope)

    def aliases(self, node: ast.Import | ast.ImportFrom, scope: _Scope) -> None:
        for alias in node.names:
            if alias.asname and alias.asname != alias.name:
                self.define(node.lineno, alias.asname, "variable", scope)

    def handler(self, node: ast.ExceptHandler, scope: _Scope) -> None:
        if node.name:
            self.define(node.lineno, node.name, "variable", scope)
        self.children(node, scope)

    def capture(self, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping, scope: _Scope) -> None:
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name:
            self.define(node.lineno, name, "variable", scope)
        self.children(node, scope)

    def outer_names(self, node: ast.Global | ast.Nonlocal, scope: _Scope) -> None:
        scope.defined.update(node.names)

    def comprehension(self, node: ast.AST, scope: _Scope) -> None:
        self.children(node, _function_scope(scope))

    def raise_(self, node: ast.Raise, scope: _Scope) -> None:
        if isinstance(node.exc, ast.Call) and node.exc.args:
            words = [
                item.value
                for item in ast.walk(node.exc.args[0])
                if isinstance(item, ast.Constant) and isinstance(item.value, str)
            ]
            self.facts.messages.append((node.lineno, " ".join(words)))
        self.children(node, scope)

    def constant(self, node: ast.Constant, scope: _Scope) -> None:
        if isinstance(node.value, str) and REFERENCE.fullmatch(node.value):
            self.facts.references.append((node.lineno, node.value))

    def expression(self, node: ast.Expr, scope: _Scope) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring refers to modules and does not use them
            self.visit(node.value, scope)

    def leaf(self, node: ast.AST, scope: _Scope) -> None:
        pass


_HANDLERS: dict[type[ast.AST], Callable[..., None]] = {
    ast.FunctionDef: _Reader.function,
    ast.AsyncFunctionDef: _Reader.function,
    ast.If: _Reader.if_,
    ast.Lambda: _Reader.lambda_,
    ast.ClassDef: _Reader.class_,
    ast.Name: _Reader.name,
    ast.Attribute: _Reader.attribute,
    ast.Import: _Reader.import_,
    ast.ImportFrom: _Reader.import_from,
    ast.ExceptHandler: _Reader.handler,
    ast.MatchAs: _Reader.capture,
    ast.MatchStar: _Reader.capture,
    ast.MatchMapping: _Reader.capture,
    ast.Global: _Reader.outer_names,
    ast.Nonlocal: _Reader.outer_names,
    ast.ListComp: _Reader.comprehension,
    ast.SetComp: _Reader.comprehension,
    ast.DictComp: _Reader.comprehension,
    ast.GeneratorExp: _Reader.comprehension,
    ast.Raise: _Reader.raise_,
    ast.Constant: _Reader.constant,
    ast.Expr: _Reader.expression,
    ast.Load: _Reader.leaf,
    ast.Store: _Reader.leaf,
}


def _function_scope(scope: _Scope) -> _Scope:
    """A scope for variables of lambdas and comprehensions, which are no attributes of a class around them."""
    return _Scope(scope.name, "function", scope.defined) if scope.kind == "class" else scope


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    """All parameters in their order; ``*args`` and ``**kwargs`` are one each."""
    found = [*arguments.posonlyargs, *arguments.args]
    if arguments.vararg:
        found.append(arguments.vararg)
    found += arguments.kwonlyargs
    if arguments.kwarg:
        found.append(arguments.kwarg)
    return found


def _is_public(name: str) -> bool:
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def _last_name(node: ast.expr) -> str:
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _read_tables(tree: ast.Module, facts: Facts) -> None:
    """Read ``__all__``, and the tables by which a module's ``__getattr__`` finds names in other modules."""
    lazy = any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body)
    for node in tree.body:
        targets: list[ast.expr]
        if isinstance(node, ast.AnnAssign):
            targets, value = [node.target], node.value
        elif isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        else:
            continue
        names = {target.id for target in targets if isinstance(target, ast.Name)}
        if "__all__" in names and value is not None:
            for item in ast.walk(value):
                if isinstance(item, ast.Constant) and isinstance(item.value, str):
                    facts.exports[item.value] = item.lineno
        elif lazy and isinstance(value, ast.Dict):
            for key, home in zip(value.keys, value.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(home, ast.Constant) and isinstance(home.value, str):
                    facts.lazy_exports[str(key.value)] = (key.lineno, home.value)
