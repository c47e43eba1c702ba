"""BVH: the text format of motion capture, a hierarchy of joints and a line of numbers for each frame."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from roboyard.errors import DescriptionError
from roboyard.geometry.arrays import Array
from roboyard.simulation.people.motion import END, MOST_FRAMES, MOST_JOINTS, Motion, check_motion, read_bytes

_CHANNELS = {f"{axis}{what}": (what, k) for what in ("position", "rotation") for k, axis in enumerate("XYZ")}


@dataclass(slots=True)
class _Joint:
    name: str
    parent: int
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    channels: list[str] = field(default_factory=list)
    first: int = 0


class _Words:
    """Words of the hierarchy with their lines."""

    def __init__(self, lines: list[str], source: str) -> None:
        self._words = [(word, number) for number, line in enumerate(lines, 1) for word in line.split()]
        self._at, self.source = 0, source

    def next(self) -> str:
        """The next word. Raises DescriptionError at the end."""
        if self._at >= len(self._words):
            raise DescriptionError("the file ends within its hierarchy", location=self.source, valid="MOTION after it")
        self._at += 1
        return self._words[self._at - 1][0]

    def number(self) -> float:
        """The next word as a number. Raises DescriptionError."""
        word = self.next()
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.fault(f"{word[:40]!r}", "a finite number")
        return value

    def expect(self, wanted: str) -> None:
        """Take this word. Raises DescriptionError if it is another one."""
        word = self.next()
        if word.upper() != wanted:
            raise self.fault(f"{word[:40]!r}", wanted)

    def fault(self, what: str, valid: str) -> DescriptionError:
        """An error at the last word."""
        return DescriptionError(f"BVH: {what}", location=f"{self.source}:{self._words[self._at - 1][1]}", valid=valid)


def read_bvh(path: Path) -> Motion:
    """The motion of a BVH file.

    Raises:
        DescriptionError: it is none, or broken; with file and line.
    """
    text = read_bytes(path).decode("utf-8", errors="replace")
    lines = text.splitlines()
    where = str(path)
    start = next((k for k, line in enumerate(lines) if line.strip().upper() == "MOTION"), None)
    if start is None:
        raise DescriptionError("BVH: no line MOTION", location=where, valid="a hierarchy, then MOTION and its frames")
    joints = _hierarchy(_Words(lines[:start], where))
    count, frame_time, first = _head(lines, start, where)
    width = sum(len(joint.channels) for joint in joints)
    rows = [(k, line.split()) for k, line in enumerate(lines[first:], first + 1) if line.strip()]
    if len(rows) < count:
        raise DescriptionError(f"BVH: {len(rows)} of {count} frames are there", location=f"{where}:{len(lines)}")
    table = np.empty((count, width))
    for n, (line, words) in enumerate(rows[:count]):
        if len(words) != width:
            raise DescriptionError(
                f"BVH: frame {n} has {len(words)} numbers", location=f"{where}:{line}", valid=f"{width}, one a channel"
            )
        try:
            table[n] = [float(word) for word in words]
        except ValueError:
            raise DescriptionError(
                f"BVH: frame {n} has a word that is no number", location=f"{where}:{line}", valid=f"{width} numbers"
            ) from None
        if not np.isfinite(table[n]).all():
            raise DescriptionError(
                f"BVH: frame {n} has a number that is none", location=f"{where}:{line}", valid="finite numbers"
            )
    names, parents = tuple(joint.name for joint in joints), tuple(joint.parent for joint in joints)
    return check_motion(Motion(where, names, parents, _places(joints, table), frame_time))


def _hierarchy(words: _Words) -> list[_Joint]:
    words.expect("HIERARCHY")
    words.expect("ROOT")
    joints: list[_Joint] = [_Joint(words.next(), -1)]
    words.expect("{")
    open_joints, width = [0], 0
    while open_joints:
        joint = joints[open_joints[-1]]
        word = words.next().upper()
        if word == "OFFSET":
            joint.offset = (words.number(), words.number(), words.number())
        elif word == "CHANNELS":
            count = words.number()
            if not 0 <= count <= 6 or count != int(count):
                raise words.fault(f"{count:g} channels", "0 to 6")
            joint.first = width
            for _ in range(int(count)):
                channel = words.next()
                if channel not in _CHANNELS or channel in joint.channels:
                    raise words.fault(f"channel {channel[:40]!r}", ", ".join(_CHANNELS) + ", each once")
                joint.channels.append(channel)
            width += int(count)
        elif word in ("JOINT", "END"):
            name = words.next()
            if len(joints) >= MOST_JOINTS:
                raise words.fault("too many joints", f"at most {MOST_JOINTS}")
            joints.append(_Joint(name if word == "JOINT" else joint.name + END, open_joints[-1]))
            words.expect("{")
            open_joints.append(len(joints) - 1)
        elif word == "}":
            open_joints.pop()
        else:
            raise words.fault(f"{word[:40]!r}", "OFFSET, CHANNELS, JOINT, End Site or }")
    names = [joint.name for joint in joints]
    twice = {name for name in names if names.count(name) > 1 and not name.endswith(END)}
    if twice:
        raise words.fault(f"two joints named {min(twice)!r}", "a name once")
    return joints


def _head(lines: list[str], start: int, where: str) -> tuple[int, float, int]:
    """Number of frames, time from one to the next [s], and the line where they begin."""
    found: dict[str, float] = {}
    line = start + 1
    while line < len(lines) and len(found) < 2:
        key, colon, value = lines[line].partition(":")
        if colon and key.strip().lower() in ("frames", "frame time"):
            try:
                found[key.strip().lower()] = float(value)
            except ValueError:
                raise DescriptionError(f"BVH: {lines[line].strip()[:60]!r}", location=f"{where}:{line + 1}") from None
        elif lines[line].strip():
            break
        line += 1
    count, frame_time = found.get("frames", math.nan), found.get("frame time", math.nan)
    if not 1 <= count <= MOST_FRAMES or count != int(count):
        raise DescriptionError(f"BVH: {count:g} frames", location=f"{where}:{start + 2}", valid=f"1 to {MOST_FRAMES}")
    if not 1e-4 <= frame_time <= 1.0:
        raise DescriptionError(
            f"BVH: frame time {frame_time:g} s", location=f"{where}:{start + 2}", valid="0.0001 to 1 s"
        )
    return int(count), frame_time, line


def _places(joints: list[_Joint], table: Array) -> Array:
    """(n, joints, 3): forward kinematics of all frames at once; channels turn one after another, from the left."""
    n = len(table)
    places, turns = np.empty((n, len(joints), 3)), np.empty((n, len(joints), 3, 3))
    for k, joint in enumerate(joints):
        local, shift = np.broadcast_to(np.eye(3), (n, 3, 3)), np.tile(joint.offset, (n, 1))
        for c, channel in enumerate(joint.channels):
            what, axis = _CHANNELS[channel]
            values = table[:, joint.first + c]
            if what == "position":
                shift[:, axis] = values if joint.parent < 0 else shift[:, axis] + values
            else:
                local = local @ _about(axis, np.radians(values))
        if joint.parent < 0:
            places[:, k], turns[:, k] = shift, local
        else:
            above = turns[:, joint.parent]
            places[:, k] = places[:, joint.parent] + np.einsum("nij,nj->ni", above, shift)
            turns[:, k] = above @ local
    return places


def _about(axis: int, angles: Array) -> Array:
    """(n, 3, 3) rotations about an axis."""
    c, s = np.cos(angles), np.sin(angles)
    R = np.zeros((len(angles), 3, 3))
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R[:, axis, axis] = 1.0
    R[:, i, i], R[:, i, j], R[:, j, i], R[:, j, j] = c, -s, s, c
    return R
