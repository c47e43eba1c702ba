"""Scopes of SDF: names and poses within one model or world (`relative_to`, `attached_to`), and placeholders.

Every link, joint, frame and nested model of a scope declares the frame of its pose.  A pose is resolved by following
these declarations to the scope's origin.  Names with ``::`` refer to parts of nested models; no name refers to an outer
scope.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from roboyard.description.model import Box, Link, Material, Model, Rgba, Visual
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at, read_pose
from roboyard.geometry import SE3

PLACEHOLDER = "placeholder"
PLACEHOLDER_COLOR: Rgba = (1.0, 0.0, 1.0, 0.5)
"""Translucent magenta, the color of placeholders for missing models, and of actors without their skin."""
_PLACEHOLDER_MATERIAL = Material(PLACEHOLDER, PLACEHOLDER_COLOR)


def make_placeholder(name: str) -> Model:
    """Make a placeholder model: half a meter of translucent magenta, without collisions."""
    cube = Visual(
        PLACEHOLDER, Box((0.5, 0.5, 0.5)), SE3.from_xyz_rpy((0.0, 0.0, 0.25)), _PLACEHOLDER_MATERIAL, cast_shadows=False
    )
    link = Link(PLACEHOLDER, SE3.identity(), visuals=(cube,))
    return Model(name, (link,), static=True, canonical_link=PLACEHOLDER)


def is_placeholder(model: Model) -> bool:
    """Return whether the model is a placeholder for a missing one."""
    return len(model.links) == 1 and model.links[0].name == PLACEHOLDER


MODEL = "__model__"
WORLD = "world"


@dataclass(slots=True)
class ScopeEntry:
    """Entry of a scope: something with a name and a pose.

    Attributes:
        name: Name as written.
        kind: "link", "joint", "frame" or "model".
        node: Its element.
        pose_node: Its ``<pose>``.
        default_frame: Frame of its pose without ``relative_to``.
        attached_to: Name whose link it moves with; empty for a link itself.
        model: The nested model.
        T_model_placement: Frame of the nested model that the pose refers to (``placement_frame``).
    """

    name: str
    kind: str
    node: XmlNode
    pose_node: XmlNode | None
    default_frame: str
    attached_to: str = ""
    model: Model | None = None
    T_model_placement: SE3 = field(default_factory=SE3.identity)


class SdfScope:
    """Names of one model (origin ``__model__``) or world (origin ``world``).

    Attributes:
        origin: Name of the scope's own frame.
        canonical_link: Link that the origin moves with; set once the links are known.
    """

    def __init__(self, owner: str, origin: str, requires_unique_names: bool) -> None:
        self.owner = owner
        self.origin = origin
        self.canonical_link = ""
        self._requires_unique_names = requires_unique_names
        self._entries: dict[str, ScopeEntry] = {}
        self._poses: dict[str, SE3] = {origin: SE3.identity()}
        self._links: dict[str, str] = {}
        self._nested_poses: dict[str, dict[str, tuple[str, SE3]]] = {}

    def declare(self, entry: ScopeEntry) -> bool:
        """Add an entry; return False if, in an older file, its name already belongs to a part of another kind.

        Such a part keeps its name in the model but cannot be referred to; before SDF 1.7 names could be shared.

        Raises:
            DescriptionError: The name is missing, reserved, or already used.
        """
        name = entry.name
        if not name:
            raise error_at(f"a {entry.kind} in {self.owner} has no name", entry.node, 'name="…"')
        if name == WORLD or (name.startswith("__") and name.endswith("__")):
            raise error_at(f"{entry.kind} name '{name}' in {self.owner} is reserved", entry.node, "another name")
        other = self._entries.get(name)
        if other is None:
            self._entries[name] = entry
            return True
        key = f"{name}\n{entry.kind}"  # no name in a file can be equal to this
        if other.kind == entry.kind or self._requires_unique_names or key in self._entries:
            duplicate = f"{entry.kind} '{name}'" if other.kind == entry.kind else f"the name '{name}'"
            raise error_at(
                f"{duplicate} in {self.owner} exists twice",
                entry.node,
                f"unique names; the other is the {other.kind} at {other.node.location}",
            )
        self._entries[key] = entry
        return False

    def entries(self, kind: str) -> Iterable[tuple[str, ScopeEntry]]:
        """Return keys and entries of one kind, in file order; `pose` accepts the keys."""
        return ((key, entry) for key, entry in self._entries.items() if entry.kind == kind)

    def kind(self, name: str) -> str:
        """Return the kind of the entry that `name` refers to; empty for an unknown name."""
        return self._entries[name].kind if name in self._entries else ""

    def resolves(self, name: str) -> bool:
        """Return whether the name is known."""
        if name == self.origin or name in self._entries:
            return True
        return self._find_nested(name) is not None

    def pose(self, name: str, node: XmlNode, usage: str) -> SE3:
        """Return T_scope_name.

        Args:
            name: A name of this scope, possibly with ``::``.
            node: Element that uses the name, for messages.
            usage: Purpose of the name: "relative_to of link 'a'".

        Raises:
            DescriptionError: The name is unknown, or poses refer to each other in a cycle.
        """
        steps: list[tuple[str, SE3]] = []  # from the name back to a known pose; nested names have no key
        visited: dict[str, None] = {}
        while name not in self._poses:
            entry = self._entries.get(name)
            if entry is None:
                nested = self._find_nested(name)
                if nested is None:
                    raise error_at(f"{usage}: {self.owner} has no '{name}'", node, self._describe_names())
                name, _, T_nested_inner = nested
                steps.append(("", T_nested_inner))
                continue
            if name in visited:
                names = [one.partition("\n")[0] for one in (*visited, name)]
                circle = " → ".join(names[names.index(names[-1]) :][-12:])
                raise error_at(f"poses in {self.owner} refer to each other in a cycle: {circle}", node)
            visited[name] = None
            steps.append((name, read_pose(entry.pose_node) @ entry.T_model_placement.inverse()))
            node, usage = entry.pose_node or entry.node, f"relative_to of {entry.kind} '{entry.name}'"
            name = _reference_frame(entry.pose_node, entry.default_frame)
        T = self._poses[name]
        for key, step in reversed(steps):
            T = T @ step
            if key:
                self._poses[key] = T
        return T

    def resolve_pose(self, pose_node: XmlNode | None, default_frame: str, node: XmlNode, usage: str) -> SE3:
        """Return the pose in the scope of a ``<pose>``; ``relative_to`` may be missing. Raises DescriptionError."""
        name = _reference_frame(pose_node, default_frame)
        return self.pose(name, pose_node or node, f"relative_to of {usage}") @ read_pose(pose_node)

    def link_of(self, name: str, node: XmlNode, usage: str) -> str:
        """Return the link (with ``::``) that `name` moves with; empty in a model without links.

        Raises DescriptionError for an unknown name or a cycle.
        """
        visited: dict[str, None] = {}
        while name not in self._links:
            if name in visited:
                circle = " → ".join([*list(visited)[:12], name])
                raise error_at(f"frames in {self.owner} are attached in a cycle: {circle}", node)
            visited[name] = None
            if name == self.origin:
                self._links[name] = self.canonical_link
                break
            entry = self._entries.get(name)
            if entry is None:
                nested = self._find_nested(name)
                if nested is None:
                    raise error_at(f"{usage}: {self.owner} has no '{name}'", node, self._describe_names())
                self._links[name] = f"{nested[0]}::{nested[1]}" if nested[1] else ""
            elif entry.kind == "link":
                self._links[name] = name
            elif entry.model is not None:
                nested_link = entry.model.canonical_link
                self._links[name] = f"{name}::{nested_link}" if nested_link else ""
            else:
                node, usage = entry.node, f"attached_to of {entry.kind} '{entry.name}'"
                name = entry.attached_to or self.origin
        link = self._links[name]
        self._links.update(dict.fromkeys(visited, link))
        return link

    def _find_nested(self, name: str) -> tuple[str, str, SE3] | None:
        """Return nested model, link in it, and pose in it, for ``model::name``; None for an unknown name."""
        separator = name.find("::")
        while separator >= 0:
            outer, inner = name[:separator], name[separator + 2 :]
            entry = self._entries.get(outer)
            if entry is not None and entry.model is not None:
                if is_placeholder(entry.model):  # its content is unknown
                    return outer, PLACEHOLDER, SE3.identity()
                if outer not in self._nested_poses:
                    self._nested_poses[outer] = named_poses(entry.model)
                link_and_pose = self._nested_poses[outer].get(inner)
                return (outer, *link_and_pose) if link_and_pose else None
            separator = name.find("::", separator + 2)
        return None

    def _describe_names(self) -> str:
        listed_names = [entry.name for entry in self._entries.values()][:12]
        more = ", …" if len(self._entries) > len(listed_names) else ""
        return f"names: {', '.join([self.origin, *listed_names])}{more}"


def _reference_frame(pose_node: XmlNode | None, default_frame: str) -> str:
    """Return the name that a pose is relative to."""
    if pose_node is None:
        return default_frame
    return pose_node.get("relative_to") or pose_node.get("frame") or default_frame


def named_poses(model: Model) -> dict[str, tuple[str, SE3]]:
    """Return link and pose in the model for every link, joint and frame of a finished model, and for its own origin."""
    links = {link.name: link for link in model.links}
    poses = {name: (name, link.T_model_link) for name, link in links.items()}
    poses[MODEL] = (model.canonical_link or "", SE3.identity())
    for frame in model.frames:
        link_and_pose = frame.link, links[frame.link].T_model_link @ frame.T_link_frame
        poses.setdefault(frame.name, link_and_pose)
        poses.setdefault(frame.name.removesuffix(f"::{MODEL}"), link_and_pose)
    for joint in model.joints:
        poses.setdefault(joint.name, (joint.child, links[joint.child].T_model_link @ joint.T_child_joint))
    return poses
