"""Xacro (XML macros): expands ``.xacro`` documents; every node keeps its file and line.

The language is that of ROS xacro; expressions are evaluated on their syntax tree with a list of allowed constructs,
never by Python's ``eval``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from roboyard.description.reader_context import ReaderContext
from roboyard.description.xacro.expander import Expander
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at

__all__ = ["expand", "is_xacro"]


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
