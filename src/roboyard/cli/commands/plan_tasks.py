"""``roboyard plan tasks``: task plans (GOAP) that reach a goal, with explanations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.arguments import validate_output_path, write_text
from roboyard.cli.options import GOAL, OUT, SET, JsonOption
from roboyard.errors import InputError

if TYPE_CHECKING:
    from roboyard.task_planning import PlanningDomain, PlanningGoal, TaskFile


def tasks(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Conditions, actions and goals in YAML; or a domain in PDDL.")
    ],
    problem: Annotated[
        Path | None, typer.Argument(metavar="PROBLEM.pddl", help="Problem in PDDL, for a domain in PDDL.")
    ] = None,
    goal: Annotated[str | None, GOAL(" of the file, by name; default: the one with the highest priority")] = None,
    settings: Annotated[list[str] | None, SET(" of the initial state", metavar="CONDITION=VALUE")] = None,
    excluded_steps: Annotated[
        list[str] | None, typer.Option("--exclude-step", metavar="STEP", help="Do not use this step; repeatable.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also print the purpose of each step, and alternatives.")
    ] = False,
    out: Annotated[Path | None, OUT(": the plan as a behavior tree, .xml", metavar="FILE")] = None,
    pddl: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write domain.pddl and problem.pddl into this folder.")
    ] = None,
    solver: Annotated[
        str | None, typer.Option(metavar="ENGINE", help="Engine of unified-planning: fast-downward-opt, ….")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Plan the actions that reach a goal.

    Without a plan the command prints the reason, and the single conditions whose change would make a plan possible.

    Exit code 1: there is no plan; 2: the file cannot be used.
    """
    from roboyard.cli.exit_codes import ExitCode, exit_unless_success
    from roboyard.cli.terminal import print_note, print_result
    from roboyard.task_planning import (
        NoPlanError,
        alternatives_without_steps,
        helpful_changes,
        make_plan,
        plan_to_xml,
    )
    from roboyard.task_planning import explain_steps as explain_steps
    from roboyard.task_planning.pddl import solve_with

    domain, world, planning_goal = _load_problem(file, problem, goal, settings or [])
    blocked = frozenset(excluded_steps or ())
    if solver is not None and blocked:
        raise InputError("only one of --exclude-step and --solver is allowed", valid="one of them")
    validate_output_path("--out", out, (".xml",))
    if pddl is not None:
        _write_pddl(pddl, domain, world, planning_goal)
    try:
        if solver is None:
            plan = make_plan(domain, world, planning_goal, blocked=blocked)
        else:
            plan = solve_with(domain, world, planning_goal, solver)
    except NoPlanError as error:
        changes = [
            f"{name} = {value}" for name, value in helpful_changes(domain, world, planning_goal, blocked=blocked)
        ]
        failure = {"goal": planning_goal.name, "plan": None, "reason": error.message, "helpful_changes": changes}

        def show_failure(found: dict[str, Any]) -> None:
            print_note(f"no plan: {found['reason']}")
            print_note("possible with " + (" or ".join(changes) if changes else "no single change"))

        print_result(failure, json, show_failure)
        exit_unless_success(ExitCode.FAILURE)
        return
    if out is not None:
        write_text(out, plan_to_xml(plan, domain, world))
    result = {
        "goal": planning_goal.name, "cost": plan.cost,
        "plan": [{"step": step.name, "cost": step.cost} for step in plan.steps],
        "expanded_nodes": plan.expanded_nodes, "tree": out,
        "explanation": explain_steps(plan) if explain else None,
        "alternatives": alternatives_without_steps(domain, world, plan, blocked=blocked) if explain else None,
    }  # fmt: skip
    print_result(result, json, _print_plan)


def _print_plan(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_fields, print_lines

    print_fields([("goal", result["goal"]), ("cost", f"{result['cost']:.4g}"), ("tree", result["tree"])])
    steps = [f"{number}. {one['step']}, {one['cost']:.4g}" for number, one in enumerate(result["plan"], 1)]
    print_lines((result["explanation"] or steps) if steps else ["no step: the goal is reached already"])
    print_lines(result["alternatives"] or ())


def _load_problem(
    file: Path, problem: Path | None, goal: str | None, settings: list[str]
) -> tuple[PlanningDomain, dict[str, Any], PlanningGoal]:
    """Load the domain, the initial state and the goal from a task file, or from a domain and a problem in PDDL."""
    from roboyard.config import parse_yaml
    from roboyard.task_planning import load_tasks
    from roboyard.task_planning.pddl import load_pddl

    if problem is None:
        if file.suffix.lower() == ".pddl":
            raise InputError("a domain requires a problem", location=str(file), valid="DOMAIN.pddl PROBLEM.pddl")
        found = load_tasks(file)
        domain, world = found.domain(), dict(found.initial_world_state())
    else:
        if goal is not None:
            raise InputError(f"--goal {goal} cannot be used with PDDL", valid="the goal of the problem")
        domain, world, planning_goal = load_pddl(file, problem)
    for text in settings:
        name, sign, value = text.partition("=")
        if not sign or not value:
            raise InputError(f"--set {text}", valid="CONDITION=VALUE")
        condition_value = parse_yaml(value, f"--set {text}").to_data()
        if isinstance(condition_value, (list, dict)):
            raise InputError(f"--set {text}", valid="a text, a number, true or false")
        world[name.strip()] = condition_value
    return domain, world, planning_goal if problem is not None else _select_goal(found, goal, world)


def _write_pddl(folder: Path, domain: PlanningDomain, world: dict[str, object], goal: PlanningGoal) -> None:
    from roboyard.config import write_atomic
    from roboyard.task_planning.pddl import write_pddl

    written = write_pddl(domain, world, goal)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / "domain.pddl", written.domain)
        write_atomic(folder / "problem.pddl", written.problem)
    except OSError as error:
        raise InputError(f"the files cannot be written: {error.strerror}", location=str(folder)) from None


def _select_goal(found: TaskFile, name: str | None, world: dict[str, object]) -> PlanningGoal:

    if name is not None:
        return found.goal(name)
    goals = [found.goal(one) for one in found.goals]
    usable = [goal for goal in goals if goal.priority_in(world) > 0.0]
    if not usable:
        raise InputError("no goal has a positive priority in the initial state", valid="--goal NAME")
    return max(usable, key=lambda goal: goal.priority_in(world))
