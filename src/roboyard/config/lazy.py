"""Lazy exports: a package exports names of its modules, and imports each module when one of its names is first used.

``import roboyard`` or one node of a package must not import everything else in it: numba, SciPy and MuJoCo take longer
to import than most commands take to run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def lazy_exports(
    package: str, exports: Mapping[str, Collection[str]], submodules: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` (PEP 562) of a package that imports its modules on first use.

    A package's ``__init__`` lists the same names three times: under ``TYPE_CHECKING`` for type checkers, in
    ``__all__``, and here.  ``tests/project/test_lazy_exports.py`` compares the three.

    An exported name may equal that of a submodule, as in ``from roboyard.messages.schema import schema``.  The name
    then means the exported object, whichever of the two is imported first.

    Args:
        package: The package's ``__name__``.
        exports: The names that each module exports, by the module's path below the package, or by its full name
            ``roboyard.…`` if it is a module of another package.
        submodules: Modules of the package that are exported themselves.
    """
    module_of = {name: module for module, names in exports.items() for name in names}
    namespace = sys.modules[package]
    if any("." not in module and module in module_of for module in exports):
        namespace.__class__ = _namespace_class(frozenset(module_of))

    def get_export(name: str) -> Any:
        if name in module_of:
            module = module_of[name]
            value = getattr(import_module(module if module.startswith("roboyard.") else f"{package}.{module}"), name)
        elif name in submodules:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(namespace, name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*vars(namespace), *module_of, *submodules})

    return get_export, list_names


def _namespace_class(exported: frozenset[str]) -> type[ModuleType]:
    """Return the class of a package's module object that prevents the import system from replacing an export by a
    module.
    """

    class Namespace(ModuleType):
        def __setattr__(self, name: str, value: object) -> None:
            if not (name in exported and isinstance(value, ModuleType)):
                super().__setattr__(name, value)

    return Namespace
