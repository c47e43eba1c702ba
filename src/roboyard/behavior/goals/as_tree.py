"""A plan as a behaviour tree: BehaviorTree.CPP's XML, which any engine of such trees can run.

The world is on the blackboard: each step fails where an entry is not as the step needs it, and sets the entries that
it changes.  ``on desk`` is the entry ``on_desk``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lxml import etree

from roboyard.behavior.goals.domain import Domain, Value, World, filled
from roboyard.behavior.goals.planner import Plan
from roboyard.behavior.goals.problem import Step
from roboyard.errors import InputError

TREE = "Plan"


def entry(condition: str) -> str:
    """The entry of the blackboard that a condition is."""
    name = re.sub(r"\W", "_", condition)
    return f"_{name}" if name[:1].isdigit() else name


def as_xml(plan: Plan, domain: Domain, world: World | None = None) -> str:
    """A plan as a tree.

    Args:
        plan: The plan.
        domain: What it was made of.
        world: Set the entries to this first, so that the tree can be run by itself.

    Raises:
        InputError: what an action does is no part of a tree.
    """
    root = etree.Element("root", BTCPP_format="4", main_tree_to_execute=TREE)
    body = etree.SubElement(etree.SubElement(root, "BehaviorTree", ID=TREE), "Sequence", name=plan.goal.name)
    if world is not None:
        code = "; ".join(f"{entry(name)} := {literal(value)}" for name, value in world.items())
        etree.SubElement(body, "Script", name="the world at first", code=code)
    for step in plan.steps:
        body.append(_element(step, domain))
    if len(body) == 0:
        etree.SubElement(body, "AlwaysSuccess", name="nothing to do")
    etree.indent(root)
    return etree.tostring(root, encoding="unicode") + "\n"


def _element(step: Step, domain: Domain) -> Any:
    element = etree.Element("Sequence", name=step.name)
    if step.needs:
        element.set("_failureIf", " || ".join(f"{entry(n)} != {literal(v)}" for n, v in step.needs.items()))
    element.set("_onSuccess", "; ".join(f"{entry(n)} := {literal(v)}" for n, v in step.effects.items()))
    text = filled(step.action.does, _escaped(step.binding, domain)) or "<AlwaysSuccess/>"
    try:
        parser = etree.XMLParser(resolve_entities=False, no_network=True)
        element.extend(etree.fromstring(f"<x>{text}</x>", parser))
    except etree.XMLSyntaxError as error:
        where = f"action {step.action.name}, does"
        raise InputError(f"is no XML: {error.msg}", location=where, valid="elements of a behaviour tree") from None
    if len(element) == 0:
        raise InputError("has no element", location=f"action {step.action.name}, does", valid="<NavigateToPose …/>")
    return element


def _escaped(binding: Mapping[str, Any], domain: Domain) -> dict[str, str]:
    texts = {name: str(value) for name, value in binding.items()}
    for name, value in binding.items():
        if value in domain.places:
            texts[f"{name}_pose"] = ";".join(f"{number:.6g}" for number in domain.places[value])
    table = {ord(a): b for a, b in (("&", "&amp;"), ("<", "&lt;"), ('"', "&quot;"))}
    return {name: text.translate(table) for name, text in texts.items()}


def literal(value: Value) -> str:
    """A value as scripts write it.

    Raises:
        InputError: scripts have no such value.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    text = str(value)
    if "'" in text:
        raise InputError(f"the value {text!r}", valid="a text without '")
    return f"'{text}'"
