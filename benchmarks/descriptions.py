"""Robots and worlds that others made: read or refused for what is in them, compared with what others' tools read.

Looks at the folder given by ``--data``, else at ``descriptions`` in the folder that ROBOYARD_DATA names.  Beside it
plain MuJoCo, given the same URDFs with their mesh paths resolved.
"""

from __future__ import annotations

import json
import math
import os
import re
import resource
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from lxml import etree

from roboyard.description import Model, World, load_model, load_world
from roboyard.description.resources import Resources
from roboyard.errors import DescriptionError, RoboyardError, RunError
from roboyard.physics.mujoco_memory import configure_mujoco_logging
from roboyard.simulation import Simulation
from roboyard.simulation.stability_check import check_stability

SUFFIXES = (".urdf", ".xacro", ".sdf", ".world", ".xml")
ROOTS = {"robot", "sdf", "mujoco", "gazebo", "world"}
DEPTH = 0.005
"""Deepest overlap with the ground that counts as resting [m]."""


@dataclass
class Outcome:
    """What became of one file."""

    path: Path
    name: str
    found: Model | World | None = None
    reason: str = ""
    where: str = ""
    crash: str = ""
    seconds: float = 0.0

    @property
    def parts(self) -> bool:
        """Whether it holds macros for others, no robot of its own."""
        return "contains no robot, only macros" in self.reason

    @property
    def models(self) -> list[tuple[str, Model]]:
        """The models in it by name."""
        if isinstance(self.found, World):
            return [(f"{self.name}#{placed.name}", placed.model) for placed in self.found.models]
        return [(self.name, self.found)] if self.found is not None else []


def home(folder: Path | None) -> Path:
    """The folder to look at."""
    if folder is not None:
        return folder
    data = os.environ.get("ROBOYARD_DATA")
    if not data or not (Path(data) / "descriptions").is_dir():
        raise ImportError("no descriptions to look at (--data DIR, or ROBOYARD_DATA naming their folder's parent)")
    return Path(data) / "descriptions"


def load(path: Path, search: Path, *, repair: bool = False) -> Model | World:
    """A model, or the world where the file is one."""
    try:
        return load_model(path, search=[search], repair=repair)
    except DescriptionError as error:
        if not (error.valid or "").endswith("load it as a world"):
            raise
        return load_world(path, search=[search], repair=repair)


def is_description(path: Path) -> bool:
    """Whether the file is a robot or world by its root element; other XML lies among them."""
    if path.suffix not in SUFFIXES or path.name in ("package.xml", "manifest.xml"):
        return False
    if path.suffix != ".xml":
        return True
    found = re.search(
        rb"<([A-Za-z_][\w.-]*)", re.sub(rb"<!--.*?-->|<\?.*?\?>", b"", path.read_bytes()[:20_000], flags=re.S)
    )
    return found is not None and found[1].decode() in ROOTS


@lru_cache(maxsize=2)
def survey(folder: Path) -> tuple[Outcome, ...]:
    """Every description below ``folder``, read."""
    outcomes = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or not is_description(path):
            continue
        name = path.relative_to(folder)
        one = Outcome(path, str(name))
        search = folder / name.parts[0] if len(name.parts) > 1 else folder
        start = time.perf_counter()
        try:
            one.found = load(path, search)
        except DescriptionError as error:
            one.reason, one.where = error.message, error.location or ""
        except Exception as error:  # noqa: BLE001  what must never happen is what is counted here
            one.crash = f"{type(error).__name__}: {error}"
        one.seconds = time.perf_counter() - start
        outcomes.append(one)
    if not outcomes:
        raise RunError(f"there is no description in {folder}", valid="a folder with .urdf, .xacro, .sdf, .world, .xml")
    return tuple(outcomes)


# -- whether a refusal names what is really in the file ----------------------------------------------------------------
def text_at(where: str) -> tuple[str, int]:
    """Text and line that a message names."""
    file, _, line = where.rpartition(":")
    path = Path(file if line.isdigit() else where)
    return (path.read_text("utf-8", "replace"), int(line) if line.isdigit() else 1) if path.is_file() else ("", 0)


def expanded(one: Outcome) -> str:
    """What ROS's xacro made of the file, where that lies beside it; else the file that the message names."""
    stem = re.sub(r"(\.urdf)?(\.xacro)?$|\.urdf$", "", one.path.name)
    for candidate in (f"{stem}.expanded.urdf", f"{one.path.name.removesuffix('.urdf')}.expanded.urdf"):
        if (one.path.parent / candidate).is_file():
            return (one.path.parent / candidate).read_text("utf-8", "replace")
    return text_at(one.where)[0] or one.path.read_text("utf-8", "replace")


def tree_of(text: str) -> etree._Element:
    return etree.fromstring(text.encode(), etree.XMLParser(recover=True, huge_tree=False, resolve_entities=False))


def impossible_inertia(one: Outcome, found: re.Match[str]) -> bool:
    """Some link of this name has principal moments that no body has, by an independent reader."""
    for link in tree_of(expanded(one)).iter("{*}link"):
        inertia = link.find("{*}inertial/{*}inertia")
        if link.get("name") != found[1] or inertia is None:
            continue
        values = [inertia.get(key) or inertia.findtext(key) or default for key, default in
                  (("ixx", "1"), ("iyy", "1"), ("izz", "1"), ("ixy", "0"), ("ixz", "0"), ("iyz", "0"))]  # fmt: skip
        xx, yy, zz, xy, xz, yz = map(float, values)
        a, b, c = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if a <= 0 or a + b < c:
            return True
    return False


def named(one: Outcome, name: str, times: int = 1) -> bool:
    """Whether something in the file has this name, or includes something of it, at least so often."""
    text, name = expanded(one), re.escape(name)
    return len(re.findall(rf"name\s*=\s*[\"']{name}[\"']|<uri>\s*\S*{name}\s*</uri>", text)) >= times


def no_parts(one: Outcome, _: re.Match[str]) -> bool:
    root = tree_of(one.path.read_text("utf-8", "replace"))
    loose = [e for e in root.iter("{*}link", "{*}joint") if not any("macro" in str(up.tag) for up in e.iterancestors())]
    return not any(one.get("name") and e.getparent() is root for e in loose for one in [e])


def root_is(one: Outcome, *tags: str) -> bool:
    return not any(child.tag in tags for child in tree_of(text_at(one.where)[0]))


def undeclared(one: Outcome, found: re.Match[str]) -> bool:
    """The file uses an argument before it declares it, or without."""
    text = one.path.read_text("utf-8", "replace")
    declared = re.search(rf"<xacro:arg\s+name=\"{found[1]}\"", text)
    return f"$(arg {found[1]})" in text[: declared.start() if declared else None]


def without_links(one: Outcome, found: re.Match[str]) -> bool:
    """A model of this name holds no link that is written there."""
    models = [node for node in tree_of(text_at(one.where)[0]).iter("model") if node.get("name") == found[1]]
    return any(next(node.iter("link"), None) is None for node in models)


def nameless(one: Outcome, _: re.Match[str]) -> bool:
    return any(not node.get("name", "").strip() for node in tree_of(expanded(one)).iter("link", "world", "model"))


def lacking(tag: str) -> Callable[[Outcome, re.Match[str]], bool]:
    """No such element in the file has the name that the reason names."""
    return lambda one, m: not re.search(rf"<{tag}\s[^>]*name=\"{re.escape(m[1])}\"", expanded(one))


CONFIRM: tuple[tuple[str, Callable[[Outcome, re.Match[str]], bool | None]], ...] = (
    (r"contains no robot, only macros", no_parts),
    (r"link '(.*?)' has an? (?:physically impossible )?inertia", impossible_inertia),
    (r"mimics the unknown joint '(.*?)'", lacking("joint")),
    (r"unknown child link '(.*?)'", lacking("link")),
    (r"undefined name '(.*?)'", lacking("xacro:property")),
    (r"has mass (-?[\d.e-]+) kg", lambda one, m: f"{m[1]}" in expanded(one)),
    (r"unknown parent link '(.*?)'", lacking("link")),
    (r"unknown macro '(.*?)'", lambda one, m: not re.search(rf"macro\s[^>]*name=\"{m[1]}\"", expanded(one))),
    (r"package '(.*?)' not found", lambda one, m: not any(
        (up / m[1]).is_dir() for up in list(one.path.parents)[: len(Path(one.name).parts)])),
    (r"scale of mesh .* is '(.*?)'", lambda one, m: m[1] in expanded(one)),
    (r"has the child '(.*?)', which has no link", lambda one, m: named(one, m[1])),
    (r"included file '(.*?)': .*no such file", lambda one, m: not Path(m[1]).exists()),
    (r"argument '(.*?)' is not declared", undeclared),
    (r"the document has no model|document includes an? \w+, not a model", lambda one, m: root_is(one, "model")),
    (r"included file has no model", lambda one, m: root_is(one, "model")),
    (r"has no model|is a <(\w+)>", lambda one, m: root_is(one, "model", "world")),
    (r"robot has no link", lambda one, m: "<link" not in expanded(one)),
    (r"model '(.*?)' has no link", without_links),
    (r": (?:model|world) '.*?' has no '(.*?)'", lambda one, m: not named(one, m[1]) or "::" in m[1]),
    (r"has no canonical_link '(.*?)'", lambda one, m: not re.search(rf"<link\s+name=[\"']{m[1]}", expanded(one))),
    (r"'(\S*?)' in .* exists twice|the name '(.*?)' in .* exists twice",
     lambda one, m: named(one, m[1] or m[2], 2) or None),
    (r"refer to each other in a cycle|attached in a cycle", lambda one, m: "relative_to" in expanded(one)),
    (r"not well-formed XML", lambda one, m: not well_formed(one.where)),
    (r"has no version|has the invalid version",
     lambda one, m: not re.search(r"<sdf[^>]*version=.1\.\d", expanded(one))),
    (r"has no name", nameless),
    (r"name '(.*?)' in .* is reserved", lambda one, m: named(one, m[1])),
    (r"joint '(.*?)' (names itself|connects link)", lambda one, m: named(one, m[1])),
    (r"<\w+> is '(.*?)'", lambda one, m: m[1] in expanded(one)),
)  # fmt: skip


def well_formed(where: str) -> bool:
    try:
        etree.fromstring(text_at(where)[0].encode())
    except etree.XMLSyntaxError:
        return False
    return True


def confirmed(one: Outcome) -> bool | None:
    """Whether a second look at the file finds the reason it was refused for; None where there is no second look."""
    for pattern, look in CONFIRM:
        match = re.search(pattern, one.reason)
        if match:
            return look(one, match)
    return None


def loading(nightly: bool, folder: Path | None = None) -> dict[str, Any]:
    """Every robot and world loads, or is refused for what is in it."""
    outcomes = survey(home(folder))
    whole = [one for one in outcomes if not one.parts]
    refused = [one for one in whole if one.reason]
    crashed = [one for one in outcomes if one.crash]
    looks = {one.name: confirmed(one) for one in outcomes if one.reason}
    doubtful = [one for one in outcomes if one.reason and looks[one.name] is False]
    unseen = [one for one in refused if looks[one.name] is None]
    files = Counter(type(one.found).__name__ for one in whole if one.found is not None)
    entries = [
        {"name": "descriptions read", "value": len(whole) - len(refused) - len(crashed), "unit": f"of {len(whole)}"},
        {"name": "refused for a reason that a second look finds",
         "value": sum(looks[one.name] is True for one in refused), "unit": f"of {len(refused)}"},
        {"name": "refused for one that it does not find", "value": len(doubtful), "unit": "files", "target": "<= 0"},
        {"name": "crashes", "value": len(crashed), "unit": "files", "target": "<= 0"},
        {"name": "slowest", "value": max(one.seconds for one in outcomes), "unit": "s", "target": "<= 20"},
        {"name": "largest memory so far", "value": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
         "unit": "MiB", "target": "<= 4096"},
    ]  # fmt: skip
    details = [
        f"read: {files['Model']} models, {files['World']} worlds; {sum(one.parts for one in outcomes)} files of macros"
    ]
    details += [f"refused: {one.name}: {one.reason}" for one in refused]
    details += [f"a second look does not find why: {one.name}: {one.reason}" for one in doubtful]
    details += [f"no second look is made at {one.name}: {one.reason}" for one in unseen]
    details += [f"CRASH: {one.name}: {one.crash}" for one in crashed]
    return {"figures": entries, "details": details}


def percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 100.0


# -- physics takes them ------------------------------------------------------------------------------------------------
def assembling(nightly: bool, folder: Path | None = None) -> dict[str, Any]:
    """Physics takes what was read, with the mass that the file says."""
    configure_mujoco_logging()
    taken = lost = total = 0
    details = []
    for one in survey(home(folder)):
        if one.found is None:
            continue
        total += 1
        try:
            sim = Simulation(one.found if isinstance(one.found, World) else World("nowhere"))
            if isinstance(one.found, Model):
                sim.add(one.found, "model")
            taken += 1
            loose = [placed.model for placed in one.found.models] if isinstance(one.found, World) else [one.found]
            moving = sum(moving_mass(model) for model in loose)
            ours = float(sim.world.model.body_mass.sum())
            if abs(ours - moving) > 1e-3 * max(moving, 1e-9):
                lost += 1
                details.append(f"mass: {one.name}: {ours:.6g} kg of {moving:.6g} kg")
            sim.close()
        except RoboyardError as error:
            details.append(f"physics refuses {one.name}: {str(error)[:200]}")
        except Exception as error:  # noqa: BLE001
            details.append(f"CRASH: {one.name}: {type(error).__name__}: {str(error)[:200]}")
    return {
        "figures": [
            {"name": "of these, physics takes", "value": percent(taken, total), "unit": "%", "target": ">= 100"},
            {"name": "of these, mass of what moves differs", "value": lost, "unit": "files", "target": "<= 0"},
        ],
        "details": details,
    }


def moving_mass(model: Model) -> float:
    """Mass of the links that are not fast to the world [kg]."""
    if model.static:
        return 0.0
    fast = {"world"}
    waiting = True
    while waiting:
        more = {j.child for j in model.joints if j.parent in fast and j.type == "fixed"} - fast
        waiting = bool(more)
        fast |= more
    return sum(link.inertial.mass for link in model.links if link.inertial and link.name not in fast)


# -- what Debian's libraries read --------------------------------------------------------------------------------------
def reference(nightly: bool, folder: Path | None = None) -> dict[str, Any]:
    """Links, joints, mass and sensors of URDFs as libsdformat 12.3 reads them."""
    root = home(folder)
    file = root / "urdf_reference.json"
    if not file.is_file():
        return {"figures": [], "details": [f"there is no {file.name} in {root}"]}
    worst, counts, details = 0.0, Counter[str](), []
    for key, theirs in json.loads(file.read_text()).items():
        path = next((p for p in (root / key, root / key.partition("/")[2]) if p.is_file()), None)
        if path is None or theirs.get("rc") != 0 or not theirs.get("urdf_links"):
            continue
        name = str(path.relative_to(root))
        mended = ""
        try:
            model = load_model(path, search=[root])
        except DescriptionError as error:
            try:
                model, mended = load_model(path, search=[root], repair=True), " (mended)"
            except DescriptionError:
                details.append(f"reference: {name} is refused: {error.message}")
                counts["refused"] += 1
                continue
        counts["compared"] += 1
        worlds = any(joint.parent == "world" for joint in model.joints)
        said = {"urdf_links": len(model.links) + worlds, **lumped(model, path.read_text("utf-8", "replace"))}
        if theirs.get("urdf_mass") is not None:
            error_ = (
                abs(model.mass - theirs["urdf_mass"]) / max(theirs["urdf_mass"], 1e-9)
                if theirs["urdf_mass"]
                else model.mass
            )
            worst = max(worst, error_)
            if error_ > 1e-3:
                details.append(f"reference: {name}{mended}: {model.mass:.6g} kg, not {theirs['urdf_mass']}")
        for what, ours in said.items():
            if what in theirs:
                counts[what] += 1
                lost = what == "sensors" and ours > theirs[what] and "lumped" in name
                if lost:
                    details.append(f"reference: {name}: libsdformat loses a sensor in a joint that it joins links at")
                elif ours != theirs[what]:
                    counts[f"{what} differ"] += 1
                    details.append(f"reference: {name}{mended}: {what} {ours}, not {theirs[what]}")
    entries: list[dict[str, Any]] = [
        {"name": "URDFs compared with libsdformat's reading", "value": counts["compared"], "unit": "files"},
        {"name": "largest difference in total mass", "value": 100 * worst, "unit": "%", "target": "<= 0.1"},
    ]
    entries += [
        {"name": f"differing in {what.replace('urdf_links', 'links as written')}", "value": counts[f"{what} differ"],
         "unit": f"of {counts[what]}", "target": "<= 0"}
        for what in ("urdf_links", "links", "joints", "sensors")
    ]  # fmt: skip
    return {"figures": entries, "details": details}


def lumped(model: Model, text: str) -> dict[str, int]:
    """Counts after joining links at fixed joints, as libsdformat's URDF reader does."""
    kept = set()
    for block in re.findall(r"<gazebo\s+reference\s*=\s*[\"'](.*?)[\"']\s*>(.*?)</gazebo>", text, re.S):
        if re.search(r"<(preserveFixedJoint|disableFixedJointLumping)>\s*(true|1)", block[1]):
            kept.add(block[0].strip())
    head = {link.name: link.name for link in model.links}

    def top(name: str) -> str:
        while head[name] != name:
            name = head[name]
        return name

    for joint in model.joints:
        if joint.type == "fixed" and joint.parent != "world" and joint.name not in kept:
            head[joint.child] = joint.parent
    masses: Counter[str] = Counter()
    for link in model.links:
        masses[top(link.name)] += link.inertial.mass if link.inertial else 0
    joints = [
        j for j in (*model.joints, *model.loop_joints) if j.type != "fixed" or j.parent == "world" or j.name in kept
    ]
    # A body without mass is left out with all that hangs on it.
    gone = {name for name in {top(link.name) for link in model.links} if not masses[name]}
    while more := {top(j.child) for j in joints if j.parent != "world" and top(j.parent) in gone} - gone:
        gone |= more
    links = {top(link.name) for link in model.links} - gone
    seen = sum(sensor.kind != "encoder" or "enc_counts_per_rev" not in text for sensor in model.sensors)
    return {"links": len(links), "joints": sum(top(j.child) in links for j in joints), "sensors": seen}


# -- verdicts ----------------------------------------------------------------------------------------------------------
EXPLAIN = (
    (r"empty\.  Did you call sdf::setFindCallback|Unable to find uri|Could not find", "placeholder",
     "a model that is not there gets a marked placeholder and a warning"),
    (r"Unable to convert from SDF version", "joint '", "a joint in a world, new in SDF 1.10, is read here, and wrong"),
    (r"Unable to convert from SDF version", "", "SDF newer than 1.9 is read"),
    (r"Could not find the 'robot' element", "", "an element without effect here is a warning"),
    (r"Non-unique names", "", "before SDF 1.7 parts of different kinds may share a name; a lamp's is nobody's"),
    (r"only contain one model", "is left out", "the first is read and the others named, as Gazebo does"),
    (r"__model__\]", "", "SDF 1.8 and 1.9 allow __model__ as an end of a joint"),
    (r"normal_map", "", "normal maps have no effect here"),
    (r"required parameter. Key\[name\]", "is not understood", "what is not understood is a warning"),
    (r"Child frame with name", "", "links at fixed joints keep their names here, and joints may name them"),
    (r"^$", "expressed_in", "an expressed_in that names nothing is refused; their check never looks it up"),
)  # fmt: skip


def verdicts(nightly: bool, folder: Path | None = None) -> dict[str, Any]:
    """Verdicts on libsdformat's own test files beside that library's."""
    root = home(folder)
    oracles = sorted(root.rglob("oracle_libsdformat*.json"))
    total = agreed = 0
    details: list[str] = []
    unexplained = 0
    for oracle in oracles:
        for name, theirs in json.loads(oracle.read_text()).items():
            path = oracle.parent / name
            if not path.is_file():
                continue
            total += 1
            said = ""
            try:
                found = load(path, oracle.parent)
                ours, said = "ok", " ".join(finding.message for finding in found.warnings)
            except DescriptionError as error:
                ours, said = "error", error.message
            verdict = next(value for key, value in theirs.items() if key.endswith("_check"))
            if ours == verdict:
                agreed += 1
                continue
            error_ = theirs.get("first_error", "")
            why = next((text for p, own, text in EXPLAIN if re.search(p, error_) and own in said), "")
            unexplained += not why
            details.append(
                f"verdict: {name}: {ours}, theirs {verdict}: {why or 'NOT EXPLAINED: ' + (said or error_)[:150]}"
            )
    if not total:
        return {"figures": [], "details": ["there are no verdicts of libsdformat to compare with"]}
    return {
        "figures": [
            {"name": "verdicts that agree with libsdformat's", "value": agreed, "unit": f"of {total}"},
            {"name": "differing without an explanation", "value": unexplained, "unit": "files", "target": "<= 0"},
        ],
        "details": details,
    }


# -- standing ----------------------------------------------------------------------------------------------------------
def robots(folder: Path) -> Iterator[tuple[str, Model]]:
    """Models with joints that move and are not fixed to the world, each once."""
    seen = set()
    for one in survey(folder):
        for name, model in one.models:
            moving = [joint for joint in model.joints if joint.type != "fixed"]
            key = (model.name, len(model.links), round(model.mass, 9), len(moving))
            if model.static or not moving or any(j.parent == "world" for j in model.joints) or key in seen:
                continue
            seen.add(key)
            yield name, model


def standing(nightly: bool, folder: Path | None = None) -> dict[str, Any]:
    """Robots put on level ground with their joints held, locked or by servos, rest there after a second."""
    configure_mujoco_logging()
    rest = balanced = steady = able = 0
    deepest = fastest = 0.0
    details = []
    for name, model in robots(home(folder)):
        try:
            locked, driven = check_stability(model), check_stability(model, use_servos=True)
        except RoboyardError as error:
            details.append(f"standing: {name}: {str(error)[:200]}")
            balanced += 1
            continue
        found = locked
        if driven is not None and driven.weak_joints:
            details.append(
                f"too weak to stay as it starts: {name}: {', '.join(driven.weak_joints)} at the limit of effort"
            )
        elif driven is not None and (driven.is_balanced() or (driven.is_at_rest(DEPTH) and not driven.has_fallen())):
            able += 1
            if not driven.is_at_rest(DEPTH) or driven.has_fallen():
                details.append(
                    f"NOT HELD BY SERVOS: {name}: {driven.penetration * 1e3:.2f} mm deep, {driven.speed:.3f} m/s, "
                    f"{driven.angular_speed:.3f} rad/s, tilted {math.degrees(driven.tilt):.1f}°"
                )
        if driven is not None and driven.is_at_rest(DEPTH) and not driven.has_fallen():
            steady += not driven.weak_joints
            found = locked if locked is not None and locked.is_at_rest(DEPTH) else driven
        if found is None:
            details.append(f"standing: {name}: nothing of it can touch the ground")
            continue
        said = (f"{found.penetration * 1e3:.2f} mm deep, {found.speed:.3f} m/s, {found.angular_speed:.3f} rad/s, "
                f"tilted {math.degrees(found.tilt):.1f}°")  # fmt: skip
        if not found.is_balanced() and (found.has_fallen() or not found.is_at_rest(DEPTH)):
            why = f"its centre lies {found.com_overhang:.3f} m beside its feet" if found.com_overhang else (
                f"it may tip by {math.degrees(found.tipping_margin):.1f}° only")  # fmt: skip
            details.append(f"cannot balance: {name}: {why}; {said}")
            continue
        balanced += 1
        ok = found.is_at_rest(DEPTH) and not found.has_fallen()
        rest += ok
        deepest, fastest = max(deepest, found.penetration), max(fastest, found.speed)
        if not ok:
            details.append(f"DOES NOT REST: {name}: {said}")
    return {
        "figures": [
            {"name": "free robots whose pose balances", "value": balanced, "unit": "robots"},
            {"name": "of these, at rest after 1 s", "value": percent(rest, balanced), "unit": "%", "target": ">= 100"},
            {
                "name": "at rest where servos hold what takes positions",
                "value": percent(steady, able),
                "unit": "%",
                "target": ">= 100",
            },
            {"name": "deepest overlap", "value": deepest * 1e3, "unit": "mm", "target": "<= 5"},
            {"name": "fastest link", "value": fastest, "unit": "m/s", "target": "<= 0.1"},
        ],
        "details": details,
    }


# -- plain MuJoCo ------------------------------------------------------------------------------------------------------
def beside(nightly: bool, folder: Path | None = None) -> dict[str, Any]:
    """The same URDFs given to plain MuJoCo, their mesh paths resolved."""
    configure_mujoco_logging()
    root = home(folder)
    counts: Counter[str] = Counter()
    for one in survey(root):
        if (
            not one.name.endswith(".urdf")
            or not isinstance(one.found, Model)
            or "xacro:" in one.path.read_text("utf-8", "replace")
        ):
            continue
        counts["files"] += 1
        counts["ours keeps the mass"] += 1  # `assembling` compares it
        mass = plain(one, root)
        if mass is None:
            counts["refused"] += 1
        elif mass < one.found.mass * (1 - 1e-3):
            counts["loses mass"] += 1
        elif mass > one.found.mass * (1 + 1e-3):
            counts["invents mass"] += 1
        else:
            counts["keeps the mass"] += 1
    said = ", ".join(f"{what} {counts[what]}" for what in ("refused", "loses mass", "invents mass", "keeps the mass"))
    return {
        "figures": [
            {"name": "URDFs read with the mass they state", "value": counts["ours keeps the mass"],
             "unit": f"of {counts['files']}", "peer": f"plain MuJoCo {mujoco.__version__}",
             "peer_value": counts["keeps the mass"]},
        ],
        "details": [f"plain MuJoCo, of {counts['files']} URDFs: {said}; no sensor or actuator of any; SDF is not read"],
    }  # fmt: skip


def plain(one: Outcome, root: Path) -> float | None:
    """Total mass that MuJoCo alone gives the URDF [kg]; None if it refuses it."""
    resources = Resources([root])
    text = one.path.read_text("utf-8", "replace")

    def resolved(match: re.Match[str]) -> str:
        found = resources.resolve(match[2], one.path).path
        return f"{match[1]}{found if found is not None else match[2]}{match[3]}"

    text = re.sub(r"(<mesh[^>]*filename\s*=\s*[\"'])(.*?)([\"'])", resolved, text)
    text = re.sub(r"(<robot\b[^>]*>)", r'\1<mujoco><compiler strippath="false"/></mujoco>', text, count=1)
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = Path(place) / "plain.urdf"
        file.write_text(text)
        try:
            return float(mujoco.MjModel.from_xml_path(str(file)).body_mass.sum())
        except ValueError:
            return None


PARTS = (loading, assembling, reference, verdicts, standing, beside)
