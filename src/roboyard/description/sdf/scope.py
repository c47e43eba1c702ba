"""Names and poses inside one model or world: SDF's ``relative_to`` and ``attached_to``.

Every link, joint, frame and nested model of a scope declares where its pose starts.  A pose is looked up by walking
these declarations back to the scope's origin.  Names with ``::`` descend into nested models; nothing refers upwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from roboyard.description.fields import pose
from roboyard.description.model import Model
from roboyard.description.sdf.placeholders import PLACEHOLDER, is_placeholder
from roboyard.description.values import fault
from roboyard.description.xml import Node
from roboyard.geometry import SE3

MODEL = "__model__"
WORLD = "world"


@dataclass(slots=True)
class Entry:
    """Something with a name and a pose.

    Attributes:
        name: As written.
        kind: "link", "joint", "frame" or "model".
        node: Where it stands.
        pose_node: Its ``<pose>``.
        default: Name its pose refers to where ``relative_to`` is missing.
        attached: Name whose link it moves with; empty for a link itself.
        model: The finished nested model.
        T_model_placed: Frame of the nested model that the pose puts in place (``placement_frame``).
    """

    name: str
    kind: str
    node: Node
    pose_node: Node | None
    default: str
    attached: str = ""
    model: Model | None = None
    T_model_placed: SE3 = field(default_factory=SE3.identity)


class Scope:
    """The names of one model (origin ``__model__``) or world (origin ``world``).

    Attributes:
        origin: Name of the scope's own frame.
        canonical: Link that the origin moves with; set once the links are known.
    """

    def __init__(self, owner: str, origin: str, strict: bool) -> None:
        self.owner = owner
        self.origin = origin
        self.canonical = ""
        self._strict = strict
        self._entries: dict[str, Entry] = {}
        self._poses: dict[str, SE3] = {origin: SE3.identity()}
        self._bodies: dict[str, str] = {}
        self._insides: dict[str, dict[str, tuple[str, SE3]]] = {}

    def declare(self, entry: Entry) -> bool:
        """Add an entry; False where, in an older file, its name belongs to a part of another kind already.

        Such a part keeps its name in the model but cannot be referred to; names before SDF 1.7 could be shared.

        Raises:
            DescriptionError: no name, a reserved one, or one that is taken.
        """
        name = entry.name
        if not name:
            raise fault(f"a {entry.kind} in {self.owner} has no name", entry.node, 'name="…"')
        if name == WORLD or (name.startswith("__") and name.endswith("__")):
            raise fault(f"{entry.kind} name '{name}' in {self.owner} is reserved", entry.node, "another name")
        other = self._entries.get(name)
        if other is None:
            self._entries[name] = entry
            return True
        key = f"{name}\n{entry.kind}"  # no name in a file can be this
        if other.kind == entry.kind or self._strict or key in self._entries:
            what = f"{entry.kind} '{name}'" if other.kind == entry.kind else f"the name '{name}'"
            raise fault(
                f"{what} in {self.owner} exists twice",
                entry.node,
                f"unique names; the other is the {other.kind} at {other.node.where}",
            )
        self._entries[key] = entry
        return False

    def entries(self, kind: str) -> Iterable[tuple[str, Entry]]:
        """Keys and entries of one kind, in file order; a key serves `pose`."""
        return ((key, entry) for key, entry in self._entries.items() if entry.kind == kind)

    def kind(self, name: str) -> str:
        """Kind of the entry that ``name`` refers to; empty for none."""
        return self._entries[name].kind if name in self._entries else ""

    def knows(self, name: str) -> bool:
        """Whether the name leads somewhere."""
        if name == self.origin or name in self._entries:
            return True
        return self._inside(name) is not None

    def pose(self, name: str, node: Node, what: str) -> SE3:
        """T_scope_name.

        Args:
            name: A name of this scope, possibly with ``::``.
            node: Who asks, for messages.
            what: What the name is used for: "relative_to of link 'a'".

        Raises:
            DescriptionError: the name is unknown, or poses refer to each other in a circle.
        """
        steps: list[tuple[str, SE3]] = []  # from the name back to a known pose; nested places have no key
        walked: dict[str, None] = {}
        while name not in self._poses:
            entry = self._entries.get(name)
            if entry is None:
                found = self._inside(name)
                if found is None:
                    raise fault(f"{what} names '{name}', which {self.owner} does not have", node, self._names())
                name, _, T_nested_inner = found
                steps.append(("", T_nested_inner))
                continue
            if name in walked:
                names = [one.partition("\n")[0] for one in (*walked, name)]
                circle = " → ".join(names[names.index(names[-1]) :][-12:])
                raise fault(f"poses in {self.owner} refer to each other in a circle: {circle}", node)
            walked[name] = None
            steps.append((name, pose(entry.pose_node) @ entry.T_model_placed.inverse()))
            node, what = entry.pose_node or entry.node, f"relative_to of {entry.kind} '{entry.name}'"
            name = _start(entry.pose_node, entry.default)
        T = self._poses[name]
        for key, step in reversed(steps):
            T = T @ step
            if key:
                self._poses[key] = T
        return T

    def relative(self, pose_node: Node | None, default: str, node: Node, what: str) -> SE3:
        """Pose in the scope of a ``<pose>`` whose ``relative_to`` may be missing. Raises DescriptionError."""
        name = _start(pose_node, default)
        return self.pose(name, pose_node or node, f"relative_to of {what}") @ pose(pose_node)

    def body(self, name: str, node: Node, what: str) -> str:
        """The link (with ``::``) that ``name`` moves with; empty in a model without links.

        Raises DescriptionError for an unknown name or a circle.
        """
        seen: dict[str, None] = {}
        while name not in self._bodies:
            if name in seen:
                circle = " → ".join([*list(seen)[:12], name])
                raise fault(f"frames in {self.owner} are attached in a circle: {circle}", node)
            seen[name] = None
            if name == self.origin:
                self._bodies[name] = self.canonical
                break
            entry = self._entries.get(name)
            if entry is None:
                found = self._inside(name)
                if found is None:
                    raise fault(f"{what} names '{name}', which {self.owner} does not have", node, self._names())
                self._bodies[name] = f"{found[0]}::{found[1]}" if found[1] else ""
            elif entry.kind == "link":
                self._bodies[name] = name
            elif entry.model is not None:
                held = entry.model.canonical_link
                self._bodies[name] = f"{name}::{held}" if held else ""
            else:
                node, what = entry.node, f"attached_to of {entry.kind} '{entry.name}'"
                name = entry.attached or self.origin
        link = self._bodies[name]
        self._bodies.update(dict.fromkeys(seen, link))
        return link

    def _inside(self, name: str) -> tuple[str, str, SE3] | None:
        """Nested model, link in it, and pose in it, that ``model::name`` stands for; None for nothing."""
        at = name.find("::")
        while at >= 0:
            outer, inner = name[:at], name[at + 2 :]
            entry = self._entries.get(outer)
            if entry is not None and entry.model is not None:
                if is_placeholder(entry.model):  # whatever it would hold: nobody knows
                    return outer, PLACEHOLDER, SE3.identity()
                if outer not in self._insides:
                    self._insides[outer] = places(entry.model)
                found = self._insides[outer].get(inner)
                return (outer, *found) if found else None
            at = name.find("::", at + 2)
        return None

    def _names(self) -> str:
        shown = [entry.name for entry in self._entries.values()][:12]
        more = ", …" if len(self._entries) > len(shown) else ""
        return f"names: {', '.join([self.origin, *shown])}{more}"


def _start(pose_node: Node | None, default: str) -> str:
    """Name that a pose is relative to."""
    if pose_node is None:
        return default
    return pose_node.get("relative_to") or pose_node.get("frame") or default


def places(model: Model) -> dict[str, tuple[str, SE3]]:
    """Link and pose in the model of every link, joint and frame of a finished model, and of its own origin."""
    links = {link.name: link for link in model.links}
    found = {name: (name, link.T_model_link) for name, link in links.items()}
    found[MODEL] = (model.canonical_link or "", SE3.identity())
    for frame in model.frames:
        place = frame.link, links[frame.link].T_model_link @ frame.T_link_frame
        found.setdefault(frame.name, place)
        found.setdefault(frame.name.removesuffix(f"::{MODEL}"), place)
    for joint in model.joints:
        found.setdefault(joint.name, (joint.child, links[joint.child].T_model_link @ joint.T_child_joint))
    return found
