"""Xacro (XML macros): expands ``.xacro`` documents; every node keeps its file and line.

The language is that of ROS xacro; expressions are evaluated on their syntax tree with a list of allowed constructs,
never by Python's ``eval``.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.description.xacro.expander import expand, is_xacro

__all__ = ["expand", "is_xacro"]

__getattr__, __dir__ = lazy_exports(__name__, {"expander": ("expand", "is_xacro")})
