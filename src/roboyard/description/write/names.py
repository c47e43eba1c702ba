"""Names that a format allows: without ``::``, and different across kinds."""

from __future__ import annotations

from dataclasses import replace

from roboyard.description.model import Frame, Model
from roboyard.description.naming import make_unique_name
from roboyard.description.renaming import rename_parts
from roboyard.description.write.written import ConversionLosses


def remove_scopes(model: Model, losses: ConversionLosses) -> Model:
    """The model with ``__`` for ``::`` in names, which only nested models of SDF may have."""
    parts = (model.links, model.joints, model.loop_joints, model.sensors, model.frames)
    if not any("::" in name for part in parts for name in (one.name for one in part)):
        return model
    losses.add("the model is written flat: names of nested parts have '__' for '::'")

    def replace_scope(name: str) -> str:
        return name.replace("::", "__")

    frames = tuple(frame for frame in model.frames if not frame.name.endswith("__"))
    return rename_parts(replace(model, frames=frames), links=replace_scope, joints=replace_scope, others=replace_scope)


def make_names_distinct(model: Model, losses: ConversionLosses) -> Model:
    """The model with other names for joints and frames that are called like a link, which SDF forbids."""
    used_names = {link.name: 0 for link in model.links}
    joints: dict[str, str] = {}
    for joint in (*model.joints, *model.loop_joints):
        joints[joint.name] = name = make_unique_name(
            f"{joint.name}_joint" if joint.name in used_names else joint.name, used_names
        )
        if name != joint.name:
            losses.add(f"the joint '{joint.name}', called like a link, becomes '{name}'")
    frames: list[Frame] = []
    for frame in model.frames:
        name = make_unique_name(f"{frame.name}_frame" if frame.name in used_names else frame.name, used_names)
        if name != frame.name:
            losses.add(f"the frame '{frame.name}', called like a link or joint, becomes '{name}'")
        frames.append(replace(frame, name=name))
    model = replace(model, frames=tuple(frames))
    if all(old == new for old, new in joints.items()):
        return model
    return rename_parts(model, links=_unchanged, joints=lambda name: joints.get(name, name), others=_unchanged)


def _unchanged(name: str) -> str:
    return name
