"""``<robot>``: links and joints as a tree, what ``<gazebo>`` and control blocks add, and the pose of every link."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from roboyard.description import checks
from roboyard.description.assembly import settle_sensors
from roboyard.description.model import Joint, JointInterface, Link, Material, Model, Plugin
from roboyard.description.reading import Reading
from roboyard.description.remedies import with_shapes
from roboyard.description.urdf.control import control_encoders, read_control
from roboyard.description.urdf.extra_joints import read_extra_joints
from roboyard.description.urdf.gazebo import apply_blocks
from roboyard.description.urdf.joint import read_joint
from roboyard.description.urdf.link import read_link, read_materials
from roboyard.description.urdf.massless import check_weightless, mend_massless
from roboyard.description.values import fault
from roboyard.description.xml import Node
from roboyard.geometry import SE3

_KNOWN = {"link", "joint", "material", "gazebo", "transmission", "ros2_control"}


def read_robot(reading: Reading, root: Node, name: str | None = None) -> Model:
    """The model of a URDF document.

    Args:
        reading: Takes findings, resolves files.
        root: The ``<robot>`` element, xacro already expanded.
        name: Replaces the robot's name.

    Raises:
        DescriptionError: anything that makes the robot inconsistent or physically impossible: see ``checks``.
    """
    reading.unknown(root, _KNOWN, {"sensor", "property"})
    nodes = _named(reading, "link", root)
    if not nodes:
        raise fault("the robot has no link", root, "at least one <link>")
    called = name or root.get("name").strip()
    if not called:
        raise fault("the robot has no name", root, '<robot name="…">')
    made = [(reading.attempt(partial(read_joint, reading, node), None), node)
            for node in _named(reading, "joint", root).values()]  # fmt: skip
    drafts = [(joint, node) for joint, node in made if joint is not None]
    drafts = reading.attempt(lambda: checks.mimics(reading, checks.known_ends(reading, nodes, drafts)), [])
    sound = not reading.faults  # what follows of a fault is none of its own
    order = checks.chain(drafts, nodes) if sound else []
    if sound:
        reading.attempt(lambda: _one_root(called, root, nodes, order), None)

    materials = read_materials(reading, root)
    links = {}
    for link, node in nodes.items():
        found = reading.attempt(partial(_link, reading, node, materials), None)
        if found is not None:
            links[link] = found
    joints = {joint.name: joint for joint, _ in drafts}
    blocks = apply_blocks(reading, root.all("gazebo"), links, joints)
    without: tuple[tuple[JointInterface, ...], tuple[Plugin, ...]] = ((), ())
    interfaces, systems = reading.attempt(lambda: read_control(reading, root, joints), without)
    if reading.faults:
        raise reading.faults[0]
    sensors = [*blocks.sensors, *control_encoders(root, joints, blocks.sensors)]

    check_weightless(reading, nodes, links, joints)
    mend_massless(reading, nodes, links, joints)
    poses = {next(iter(_roots(nodes, order))): SE3.identity()}
    for joint in order:
        poses[joint.child] = poses[joint.parent] @ joint.T_parent_child
    closures = read_extra_joints(reading, called, root.all("gazebo"), poses, joints)
    links = {link: replace(record, T_model_link=poses[link]) for link, record in links.items()}
    canonical = next(iter(_roots(nodes, order)))
    if canonical == "world" and len(links) > 1:
        _drop_world(reading, nodes["world"], links)
        canonical = order[0].child
    return Model(
        name=called,
        links=tuple(links.values()),
        joints=tuple(joints.values()),
        sensors=settle_sensors(reading, root, sensors, joints.values()),
        interfaces=interfaces,
        plugins=(*systems, *blocks.plugins),
        static=blocks.static,
        canonical_link=canonical,
        closures=closures,
    )


def _named(reading: Reading, kind: str, root: Node) -> dict[str, Node]:
    """Links or joints by name; in a survey the first of each."""
    named = [(one.get("name").strip(), one) for one in root.all(kind)]
    first = {name: one for name, one in reversed(named) if name}
    return reading.attempt(lambda: checks.unique(kind, named), dict(reversed(first.items())))


def _link(reading: Reading, node: Node, materials: dict[str, Material]) -> Link:
    return with_shapes(reading, node, read_link(reading, node, materials))


def _roots(nodes: dict[str, Node], order: list[Joint]) -> list[str]:
    children = {joint.child for joint in order}
    return [link for link in nodes if link not in children]


def _one_root(name: str, root: Node, nodes: dict[str, Node], order: list[Joint]) -> None:
    roots = _roots(nodes, order)
    if "world" not in nodes and any(joint.parent == "world" for joint in order):
        joint = next(joint for joint in order if joint.parent == "world")
        raise fault(f"joint '{joint.name}' has the unknown parent link 'world'", root, '<link name="world"/>')
    if len(roots) > 1:
        places = ", ".join(f"'{link}' (line {nodes[link].line})" for link in roots[:8])
        raise fault(f"robot '{name}' has {len(roots)} root links: {places}", root, "one root; join the others to it")


def _drop_world(reading: Reading, node: Node, links: dict[str, Link]) -> None:
    """A root called "world" is the world itself, as in Gazebo: its joints hang there and it is no body."""
    if links["world"].collisions or links["world"].visuals or links["world"].inertial:
        reading.note(node, "the link 'world' is the world itself: what it holds is left out")
    del links["world"]
