"""MuJoCo's own compilation of a cleaned document, and the way back from its elements to file and line."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roboyard.description.mjcf.assets import Assets, gather
from roboyard.description.mjcf.cleaning import cleaned
from roboyard.description.mjcf.includes import expanded
from roboyard.description.mjcf.surveying import Cut
from roboyard.description.mjcf.text import written
from roboyard.description.naming import free_name
from roboyard.description.reading import Reading
from roboyard.description.values import fault
from roboyard.description.xml import Node
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3

if TYPE_CHECKING:
    import mujoco

MAX_BODIES = 20_000
_LINE = re.compile(r"line (\d+)\s*$")
_NAME = re.compile(r"Element name '([^']+)'")
_FAR = 1e9  # [m]


@dataclass(slots=True)
class Compiled:
    """A compiled document.

    Attributes:
        root: The ``<mujoco>``, includes expanded.
        spec: What MuJoCo read.
        model: What it made of it.
        assets: Meshes, terrains, skins.
        bodies: Name of each body; the world is "world".
        joints: Name of each joint.
        body_nodes: Place of each body.
        joint_nodes: Place of each joint.
        geom_nodes: Place of each geom.
        sensor_nodes: Place of each sensor.
        actuator_nodes: Place of each actuator.
        tendon_nodes: Place of each tendon.
        equality_nodes: Place of each equality.
    """

    root: Node
    spec: Any
    model: mujoco.MjModel
    assets: Assets
    bodies: list[str]
    joints: list[str]
    body_nodes: list[Node]
    joint_nodes: list[Node]
    geom_nodes: list[Node]
    sensor_nodes: list[Node]
    actuator_nodes: list[Node]
    tendon_nodes: list[Node]
    equality_nodes: list[Node]

    def pose(self, body: int) -> SE3:
        """Pose of a body in its parent, every joint where the file draws it."""
        return SE3(self.model.body_quat[body], self.model.body_pos[body])

    def joints_of(self, body: int) -> range:
        """Numbers of the joints that move a body."""
        first, count = int(self.model.body_jntadr[body]), int(self.model.body_jntnum[body])
        return range(first, first + count) if count else range(0)

    def geoms_of(self, body: int) -> range:
        """Numbers of a body's geoms."""
        first, count = int(self.model.body_geomadr[body]), int(self.model.body_geomnum[body])
        return range(first, first + count) if count else range(0)


def compile_document(reading: Reading, root: Node) -> Compiled:
    """Compile ``root``.

    Raises:
        DescriptionError: MuJoCo refuses it; with its reason, at file and line.
    """
    import mujoco

    whole = expanded(reading, root)
    clean, assets = gather(reading, whole, cleaned(reading, whole))
    rest = Cut(clean)
    while True:
        text, nodes = written(clean)
        try:
            with _listening(reading, root):
                spec, model = _compile(text, assets.data, root)
            break
        except (ValueError, mujoco.FatalError) as error:
            message = str(error)
        wrong, node = _refused(message, nodes, root)
        if not reading.survey:
            raise wrong
        if not rest.follows(node, message):
            reading.faults.append(wrong)
        if not rest.take_out(node):
            break
    if reading.faults:  # what was compiled in their place is not the document
        raise reading.faults[0]
    if not (abs(model.body_pos).max(initial=0.0) < _FAR and abs(model.geom_pos).max(initial=0.0) < _FAR):
        raise fault("a body or geom lies too far away", root, f"coordinates below {_FAR:g} m")
    return Compiled(
        whole,
        spec,
        model,
        assets,
        _names("body", spec.bodies),
        _names("joint", spec.joints),
        _places(spec.bodies, nodes, root),
        _places(spec.joints, nodes, root),
        _places(spec.geoms, nodes, root),
        _places(spec.sensors, nodes, root),
        _places(spec.actuators, nodes, root),
        _places(spec.tendons, nodes, root),
        _places(spec.equalities, nodes, root),
    )


def _compile(text: str, data: dict[str, bytes], root: Node) -> tuple[Any, mujoco.MjModel]:
    import mujoco

    spec = mujoco.MjSpec.from_string(text, assets=data)
    spec.compiler.fusestatic = False  # links that are fixed to another keep their names
    spec.compiler.discardvisual = False
    spec.compiler.LRopt.mode = mujoco.mjtLRMode.mjLRMODE_NONE  # would simulate each muscle
    if len(spec.bodies) > MAX_BODIES:
        raise fault(f"the document has {len(spec.bodies)} bodies", root, f"at most {MAX_BODIES}")
    return spec, spec.compile()


@contextmanager
def _listening(reading: Reading, root: Node) -> Iterator[None]:
    """MuJoCo's warnings become findings, instead of lines on the terminal and in MUJOCO_LOG.TXT."""
    import mujoco

    before, quiet = mujoco.MjLogConfig.get(), mujoco.MjLogConfig.get()
    quiet.logto_console, quiet.logto_file = 0, 0
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        quiet.set()
        try:
            yield
        finally:
            before.set()
    for what in dict.fromkeys(str(one.message).partition("\n")[0][:300] for one in heard):
        reading.note(root, what)


def _names(kind: str, elements: Sequence[Any]) -> list[str]:
    given = [one.name for one in sorted(elements, key=lambda one: int(one.id))]
    taken = {name: 0 for name in given if name}
    return [name or free_name(f"{kind}_{index}", taken) for index, name in enumerate(given)]


def _places(elements: Sequence[Any], nodes: list[Node], root: Node) -> list[Node]:
    places = []
    for element in sorted(elements, key=lambda one: int(one.id)):
        found = _LINE.search(element.info or "")
        line = int(found[1]) if found else 0
        places.append(nodes[line - 1] if 0 < line <= len(nodes) else root)
    return places


def _refused(message: str, nodes: list[Node], root: Node) -> tuple[DescriptionError, Node]:
    """MuJoCo's words on one line, and the place it names."""
    found = _LINE.search(message.strip())
    line = int(found[1]) if found else 0
    node = nodes[line - 1] if 0 < line <= len(nodes) else root
    what, _, rest = message.strip().partition("\n")
    for start in ("XML Error: ", "Error: "):
        what = what.removeprefix(start)
    named = _NAME.search(rest)
    name = named[1] if named else node.get("name")
    what = what.replace("mjMINVAL", "1e-15").replace("Schema violation: ", "")
    return fault(f"<{node.tag}>{f' {name!r}' if name else ''}: {what[:300]}", node), node
