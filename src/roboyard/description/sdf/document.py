"""Selects the model or world of an ``<sdf>`` document."""

from __future__ import annotations

from dataclasses import replace

from roboyard.description.model import Model, World
from roboyard.description.reader_context import ReaderContext
from roboyard.description.sdf.includes import read_include, read_sdf_version
from roboyard.description.sdf.model import read_model
from roboyard.description.sdf.world import read_world
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at

_DOCUMENT_TAGS = {"model", "world", "light", "actor", "include"}


def read_model_document(context: ReaderContext, root: XmlNode, name: str | None = None) -> Model:
    """Read the document's model.

    Args:
        context: Receives warnings, resolves files.
        root: The ``<sdf>``.
        name: Name that replaces the model's name.

    Raises:
        DescriptionError: The document has no model, or it is invalid.
    """
    version = read_sdf_version(context, root)
    context.warn_unknown_children(root, _DOCUMENT_TAGS)
    candidates = root.children_with_tag("model", "include")
    if not candidates:
        worlds = root.children_with_tag("world")
        if worlds:
            raise error_at("the file describes a world, not a model", worlds[0], "load it as a world")
        raise error_at("the document has no model", root, "<model>")
    for extra in candidates[1:]:
        context.warn(extra, f"a second <{extra.tag}> in the document is ignored")
    if candidates[0].tag == "model":
        model = read_model(context, candidates[0], version)
    else:
        entity = read_include(context, candidates[0], read_model)
        if entity.model is None:
            raise error_at(f"the document includes a {entity.node.tag}, not a model", candidates[0], "a model")
        model = entity.model
    return replace(model, name=name) if name else model


def read_world_document(context: ReaderContext, root: XmlNode) -> World:
    """Read the document's world. Raises DescriptionError if it has none, or it is invalid."""
    version = read_sdf_version(context, root)
    context.warn_unknown_children(root, _DOCUMENT_TAGS)
    worlds = root.children_with_tag("world")
    if not worlds:
        model = root.child("model")
        raise error_at(
            "the file describes a model, not a world" if model else "the document has no world", root, "<world>"
        )
    for extra in worlds[1:]:
        context.warn(extra, "a second <world> in the document is ignored")
    return read_world(context, worlds[0], version)
