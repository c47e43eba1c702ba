"""``roboyard plan tasks``: what to do that a goal is reached, why that, and why not something else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import JsonOption

if TYPE_CHECKING:
    from roboyard.behavior.goals import Domain, Goal, Tasks


def tasks(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Conditions, actions and goals in YAML; or a domain in PDDL.")
    ],
    problem: Annotated[
        Path | None, typer.Argument(metavar="[PROBLEM.pddl]", help="With a domain in PDDL: what is wanted.")
    ] = None,
    goal: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which of its goals; default: the one that is worth most.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="CONDITION=VALUE", help="Another value in the world.")
    ] = None,
    excluded_steps: Annotated[
        list[str] | None, typer.Option("--exclude-step", metavar="STEP", help="Not this step, as the plan names it.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also say what each step is for, and what else there is.")
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE.xml", help="Write the plan as a behaviour tree.")] = None,
    pddl: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write domain.pddl and problem.pddl, for other planners.")
    ] = None,
    solver: Annotated[
        str | None, typer.Option(metavar="ENGINE", help="Ask a planner of unified-planning's: fast-downward-opt, ….")
    ] = None,
    json: JsonOption = False,
) -> None:
    """A plan for a goal: which actions, in which order.

    Or says why there is none, and which single condition would make one possible if it had another value.

    Exit code 0: there is a plan; 1: the goal is impossible; 2: the file cannot be used.
    """
    from roboyard.behavior.goals import Impossible, as_xml, make_plan, without, would_help
    from roboyard.behavior.goals import why as reasons
    from roboyard.behavior.goals.solver import plan_by
    from roboyard.cli.terminal import print_fields, print_json, print_line, print_note
    from roboyard.config import write_atomic
    from roboyard.errors import InputError

    domain, world, planning_goal = _load_problem(file, problem, goal, settings or [])
    blocked = frozenset(excluded_steps or ())
    if solver is not None and blocked:
        raise InputError("--exclude-step with --solver", valid="one of them: other planners are told all steps")
    if pddl is not None:
        _write_pddl(pddl, domain, world, planning_goal)
    try:
        if solver is None:
            plan = make_plan(domain, world, planning_goal, blocked=blocked)
        else:
            plan = plan_by(domain, world, planning_goal, solver)
    except Impossible as error:
        helps = [f"{name} = {value}" for name, value in would_help(domain, world, planning_goal, blocked=blocked)]
        if json:
            print_json({"goal": planning_goal.name, "plan": None, "why": error.message, "would_help": helps})
        else:
            print_note(f"roboyard: {error.message}")
            print_note("it would be possible with " + (" or ".join(helps) if helps else "no single other value"))
        raise typer.Exit(1) from None
    if out is not None:
        try:
            write_atomic(out, as_xml(plan, domain, world))
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", location=str(out)) from None
    alternatives = without(domain, world, plan, blocked=blocked) if explain else []
    if json:
        steps = [{"step": step.name, "cost": step.cost} for step in plan.steps]
        more = {"why": reasons(plan), "otherwise": alternatives} if explain else {}
        print_json(
            {
                "goal": planning_goal.name,
                "cost": plan.cost,
                "plan": steps,
                "looked_at": plan.looked_at,
                "tree": out,
                **more,
            }
        )
        return
    print_fields(
        [("goal", planning_goal.name), ("cost", f"{plan.cost:.4g}"), *([("tree", str(out))] if out is not None else [])]
    )
    for number, step in enumerate(plan.steps, 1):
        print_line(reasons(plan)[number - 1] if explain else f"{number}. {step.name}, {step.cost:.4g}")
    if not plan.steps:
        print_line("nothing to do: it is so already")
    for line in alternatives:
        print_line(line)


def _load_problem(
    file: Path, problem: Path | None, goal: str | None, settings: list[str]
) -> tuple[Domain, dict[str, Any], Goal]:
    """What the robot can do, the world, and what is wanted: from a file of tasks, or from two in PDDL."""
    from roboyard.behavior.goals import load_tasks
    from roboyard.behavior.goals.pddl import load_pddl
    from roboyard.config import parse_yaml
    from roboyard.errors import InputError

    if problem is None:
        if file.suffix.lower() == ".pddl":
            raise InputError("a domain without a problem", location=str(file), valid="DOMAIN.pddl PROBLEM.pddl")
        found = load_tasks(file)
        domain, world = found.domain(), dict(found.start())
    else:
        if goal is not None:
            raise InputError(f"--goal {goal} with PDDL", valid="the problem's own goal")
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


def _write_pddl(folder: Path, domain: Domain, world: dict[str, object], goal: Goal) -> None:
    from roboyard.behavior.goals.pddl import as_pddl
    from roboyard.config import write_atomic
    from roboyard.errors import InputError

    written = as_pddl(domain, world, goal)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / "domain.pddl", written.domain)
        write_atomic(folder / "problem.pddl", written.problem)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", location=str(folder)) from None


def _select_goal(found: Tasks, name: str | None, world: dict[str, object]) -> Goal:
    from roboyard.errors import InputError

    if name is not None:
        return found.goal(name)
    goals = [found.goal(one) for one in found.goals]
    usable = [goal for goal in goals if goal.worth(world) > 0.0]
    if not usable:
        raise InputError("no goal is worth anything now", valid="--goal NAME")
    return max(usable, key=lambda goal: goal.worth(world))
