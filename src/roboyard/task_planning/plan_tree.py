"""A plan as a behavior tree: XML of BehaviorTree.CPP.

The state of the world is on the blackboard: each step fails if an entry does not have the value of its
precondition, and sets the entries of its effects. ``on desk`` is the entry ``on_desk``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lxml import etree

from roboyard.errors import InputError
from roboyard.task_planning.domain import PlanningDomain, Value, WorldState, substitute_text
from roboyard.task_planning.planner import PlanStep, TaskPlan

TREE = "Plan"


def blackboard_key(condition: str) -> str:
    """Return the key of the blackboard entry of a condition."""
    name = re.sub(r"\W", "_", condition)
    return f"_{name}" if name[:1].isdigit() else name


def plan_to_xml(plan: TaskPlan, domain: PlanningDomain, initial_state: WorldState | None = None) -> str:
    """Return a plan as a tree.

    Args:
        plan: The plan.
        domain: What it was made of.
        initial_state: Set the entries to this first, so that the tree can be run by itself.

    Raises:
        InputError: what an action does is no part of a tree.
    """
    root = etree.Element("root", BTCPP_format="4", main_tree_to_execute=TREE)
    body = etree.SubElement(etree.SubElement(root, "BehaviorTree", ID=TREE), "Sequence", name=plan.goal.name)
    if initial_state is not None:
        code = "; ".join(f"{blackboard_key(name)} := {script_literal(value)}" for name, value in initial_state.items())
        etree.SubElement(body, "Script", name="the world at first", code=code)
    for step in plan.steps:
        body.append(_step_element(step, domain))
    if len(body) == 0:
        etree.SubElement(body, "AlwaysSuccess", name="nothing to do")
    etree.indent(root)
    return etree.tostring(root, encoding="unicode") + "\n"


def _step_element(step: PlanStep, domain: PlanningDomain) -> Any:
    element = etree.Element("Sequence", name=step.name)
    if step.preconditions:
        element.set(
            "_failureIf",
            " || ".join(f"{blackboard_key(n)} != {script_literal(v)}" for n, v in step.preconditions.items()),
        )
    element.set("_onSuccess", "; ".join(f"{blackboard_key(n)} := {script_literal(v)}" for n, v in step.effects.items()))
    text = substitute_text(step.action.behavior, _escaped_binding(step.binding, domain)) or "<AlwaysSuccess/>"
    try:
        parser = etree.XMLParser(resolve_entities=False, no_network=True)
        element.extend(etree.fromstring(f"<x>{text}</x>", parser))
    except etree.XMLSyntaxError as error:
        location = f"action {step.action.name}, behavior"
        raise InputError(f"is no XML: {error.msg}", location=location, valid="elements of a behaviour tree") from None
    if len(element) == 0:
        raise InputError("has no element", location=f"action {step.action.name}, behavior", valid="<NavigateToPose …/>")
    return element


def _escaped_binding(binding: Mapping[str, Any], domain: PlanningDomain) -> dict[str, str]:
    texts = {name: str(value) for name, value in binding.items()}
    for name, value in binding.items():
        if value in domain.places:
            texts[f"{name}_pose"] = ";".join(f"{number:.6g}" for number in domain.places[value])
    table = {ord(a): b for a, b in (("&", "&amp;"), ("<", "&lt;"), ('"', "&quot;"))}
    return {name: text.translate(table) for name, text in texts.items()}


def script_literal(value: Value) -> str:
    """Return a value as a literal of scripts.

    Raises:
        InputError: Scripts have no such value.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    text = str(value)
    if "'" in text:
        raise InputError(f"the value {text!r}", valid="a text without '")
    return f"'{text}'"
