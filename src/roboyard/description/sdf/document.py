"""``<sdf>``: which of its parts is wanted."""

from __future__ import annotations

from dataclasses import replace

from roboyard.description.model import Model, World
from roboyard.description.reading import Reading
from roboyard.description.sdf.includes import read_include, sdf_version
from roboyard.description.sdf.model import read_model
from roboyard.description.sdf.world import read_world
from roboyard.description.values import fault
from roboyard.description.xml import Node

_KNOWN = {"model", "world", "light", "actor", "include"}


def read_model_document(reading: Reading, root: Node, name: str | None = None) -> Model:
    """The document's model.

    Args:
        reading: Takes findings, resolves files.
        root: The ``<sdf>``.
        name: Replaces the model's name.

    Raises:
        DescriptionError: there is none, or it is wrong.
    """
    version = sdf_version(reading, root)
    reading.unknown(root, _KNOWN)
    found = root.all("model", "include")
    if not found:
        worlds = root.all("world")
        if worlds:
            raise fault("this describes a world, not a model", worlds[0], "load it as a world")
        raise fault("the document has no model", root, "<model>")
    for extra in found[1:]:
        reading.note(extra, f"a second <{extra.tag}> in the document is left out")
    if found[0].tag == "model":
        model = read_model(reading, found[0], version)
    else:
        included = read_include(reading, found[0], read_model)
        if included.model is None:
            raise fault(f"the document includes a {included.node.tag}, not a model", found[0], "a model")
        model = included.model
    return replace(model, name=name) if name else model


def read_world_document(reading: Reading, root: Node) -> World:
    """The document's world. Raises DescriptionError when there is none, or it is wrong."""
    version = sdf_version(reading, root)
    reading.unknown(root, _KNOWN)
    found = root.all("world")
    if not found:
        model = root.child("model")
        raise fault("this describes a model, not a world" if model else "the document has no world", root, "<world>")
    for extra in found[1:]:
        reading.note(extra, "a second <world> in the document is left out")
    return read_world(reading, found[0], version)
