"""Groups as a YAML file that `load_groups` reads back as the same."""

from __future__ import annotations

import json
from collections.abc import Iterable

from roboyard.manipulation.groups.model import Groups, Reason

_REASONS: tuple[Reason, ...] = ("never", "always", "stated")
_WIDTH = 112


def groups_text(groups: Groups, title: str) -> str:
    """The file's text; pairs that a joint holds together are not written, since they need not be."""
    lines = [f"# {title}", "groups:"]
    for group in groups.groups.values():
        lines += [
            f"  {_text(group.name)}:",
            f"    base: {_text(group.base)}",
            f"    tip: {_text(group.tip)}",
            f"    joints: [{_listed(group.joints)}]",
            f"    tool_axis: [{_numbers(group.axis)}]  # in which the tool approaches, in its own frame",
        ]
        if group.tools:
            lines.append("    tools:")
        for name, tool in group.tools.items():
            place = f"xyz: [{_numbers(tool.T_link_tool.xyz)}], rpy: [{_numbers(tool.T_link_tool.rpy)}]"
            lines.append(f"      {_text(name)}: {{link: {_text(tool.link)}, {place}}}")
        if group.poses:
            lines.append("    poses:")
        lines += [f"      {_text(name)}: [{_numbers(values)}]" for name, values in group.poses.items()]
        if group.gripper is not None:
            lines.append(f"    gripper: {_text(group.gripper)}")
        if group.start is not None:
            lines.append(f"    start: {_text(group.start)}")
    if groups.grippers:
        lines.append("grippers:")
    for gripper in groups.grippers.values():
        lines += [
            f"  {_text(gripper.name)}:",
            f"    joints: [{_listed(gripper.joints)}]",
            f"    closed: [{_numbers(gripper.closed)}]",
            f"    open: [{_numbers(gripper.open)}]",
            f"    width: [{_numbers(gripper.width)}]",
            f"    links: [{_listed(gripper.links)}]",
        ]
        if gripper.force is not None:
            lines.append(f"    force: {gripper.force:g}")
    rated = sorted({*groups.acceleration, *groups.jerk})
    if rated:
        lines.append("joints:")
    for joint in rated:
        rates = {"acceleration": groups.acceleration.get(joint), "jerk": groups.jerk.get(joint)}
        said = ", ".join(f"{key}: {value:.6g}" for key, value in rates.items() if value is not None)
        lines.append(f"  {_text(joint)}: {{{said}}}")
    if groups.gains:
        lines.append("gains:")
    for joint, gains in groups.gains.items():
        lines.append(f"  {_text(joint)}: {{{', '.join(f'{key}: {value:.6g}' for key, value in gains.items())}}}")
    if any(reason in _REASONS for reason in groups.allowed.values()):
        lines.append("allowed_collisions:")
    for reason in _REASONS:
        pairs = [pair for pair, why in groups.allowed.items() if why == reason]
        if pairs:
            lines += [f"  {reason}: [", *_wrapped(f"[{_listed(pair)}]," for pair in pairs), "  ]"]
    return "\n".join(lines) + "\n"


def _wrapped(words: Iterable[str]) -> list[str]:
    lines = ["   "]
    for word in words:
        if len(lines[-1]) + len(word) > _WIDTH:
            lines.append("   ")
        lines[-1] += f" {word}"
    return lines


def _text(name: str) -> str:
    """A name, in quotes where YAML would take it for something else."""
    plain = name.replace("_", "").replace("-", "").isalnum() and name[0].isalpha()
    return name if plain and name.lower() not in ("null", "true", "false") else json.dumps(name)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(_text, names))


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(f"{float(value):.9g}" for value in values)
