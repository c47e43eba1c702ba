"""The script language of behaviour trees: assignments, arithmetic, comparisons, conditions, names of enumerations."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.behavior.script.parser import Environment, Script, parse

__all__ = ["Environment", "Script", "parse"]

__getattr__, __dir__ = lazy_exports(__name__, {"parser": ("Environment", "Script", "parse")})
