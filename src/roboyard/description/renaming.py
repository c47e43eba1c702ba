"""Other names for a model's parts, wherever they stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from roboyard.description.model import Collision, Joint, Model
from roboyard.description.sensors import ContactSpec, EncoderSpec, ForceTorqueSpec, Sensor

Rename = Callable[[str], str]


def rename_friction_frame(collision: Collision, links: Rename) -> Collision:
    """The collision with another name for the link in whose frame its direction of friction is."""
    surface = collision.surface
    if surface.friction_direction_frame is None:
        return collision
    return replace(
        collision, surface=replace(surface, friction_direction_frame=links(surface.friction_direction_frame))
    )


def rename_parts(model: Model, *, links: Rename, joints: Rename, others: Rename) -> Model:
    """The model with other names for links, joints, and sensors with frames, wherever they stand."""

    def rename_joint(one: Joint) -> Joint:
        mimic = replace(one.mimic, joint=joints(one.mimic.joint)) if one.mimic else None
        return replace(one, name=joints(one.name), parent=links(one.parent), child=links(one.child), mimic=mimic)

    def rename_sensor(one: Sensor) -> Sensor:
        spec = one.spec
        if isinstance(spec, EncoderSpec):
            spec = replace(spec, joints=tuple(map(joints, spec.joints)))
        elif isinstance(spec, ForceTorqueSpec):
            spec = replace(spec, joint=joints(spec.joint))
        elif isinstance(spec, ContactSpec):
            spec = replace(spec, collisions=tuple(map(others, spec.collisions)))
        frame = links(one.frame) if one.frame == one.link else others(one.frame)
        topic = others(one.topic) if one.topic == one.name else one.topic
        return replace(one, name=others(one.name), link=links(one.link), topic=topic, frame=frame, spec=spec)

    return replace(
        model,
        links=tuple(
            replace(
                link,
                name=links(link.name),
                collisions=tuple(
                    replace(rename_friction_frame(one, links), name=others(one.name)) for one in link.collisions
                ),
                visuals=tuple(replace(one, name=others(one.name)) for one in link.visuals),
            )
            for link in model.links
        ),
        joints=tuple(map(rename_joint, model.joints)),
        loop_joints=tuple(map(rename_joint, model.loop_joints)),
        sensors=tuple(map(rename_sensor, model.sensors)),
        interfaces=tuple(replace(one, joint=joints(one.joint)) for one in model.interfaces),
        frames=tuple(replace(one, name=others(one.name), link=links(one.link)) for one in model.frames),
        disabled_collisions=tuple((links(one), links(other)) for one, other in model.disabled_collisions),
        canonical_link=links(model.canonical_link) if model.canonical_link else None,
    )
