"""The script language of behaviour trees: assignments, arithmetic, comparisons, conditions, names of enumerations."""

from roboyard.behavior.script.parser import Environment, Script, parse

__all__ = ["Environment", "Script", "parse"]
