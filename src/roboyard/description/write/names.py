"""Names that a format allows: without ``::``, and different across kinds."""

from __future__ import annotations

from dataclasses import replace

from roboyard.description.model import Frame, Model
from roboyard.description.naming import free_name
from roboyard.description.renaming import renamed
from roboyard.description.write.written import Losses


def plain_names(model: Model, losses: Losses) -> Model:
    """The model with ``__`` for ``::`` in names, which only nested models of SDF may have."""
    parts = (model.links, model.joints, model.closures, model.sensors, model.frames)
    if not any("::" in name for part in parts for name in (one.name for one in part)):
        return model
    losses.say("the model is written flat: names of nested parts have '__' for '::'")

    def plain(name: str) -> str:
        return name.replace("::", "__")

    kept = tuple(frame for frame in model.frames if not frame.name.endswith("__"))
    return renamed(replace(model, frames=kept), links=plain, joints=plain, others=plain)


def distinct(model: Model, losses: Losses) -> Model:
    """The model with other names for joints and frames that are called like a link, which SDF forbids."""
    taken = {link.name: 0 for link in model.links}
    joints: dict[str, str] = {}
    for joint in (*model.joints, *model.closures):
        joints[joint.name] = name = free_name(f"{joint.name}_joint" if joint.name in taken else joint.name, taken)
        if name != joint.name:
            losses.say(f"the joint '{joint.name}', called like a link, becomes '{name}'")
    frames: list[Frame] = []
    for frame in model.frames:
        name = free_name(f"{frame.name}_frame" if frame.name in taken else frame.name, taken)
        if name != frame.name:
            losses.say(f"the frame '{frame.name}', called like a link or joint, becomes '{name}'")
        frames.append(replace(frame, name=name))
    model = replace(model, frames=tuple(frames))
    if all(old == new for old, new in joints.items()):
        return model
    return renamed(model, links=_same, joints=lambda name: joints.get(name, name), others=_same)


def _same(name: str) -> str:
    return name
