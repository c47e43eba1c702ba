"""Hierarchical state machines as plain data: a stack of skills that can be saved and restored at any step, and their
memory.

A skill makes one request at a time, receives its result, and makes the next one, until it returns its own result. An
executor carries the requests out: a node in a run, a few lines in a test.
"""

from __future__ import annotations

import copy
import dis
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import cache
from types import CodeType, FunctionType
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeVar, overload

from roboyard.errors import InputError
from roboyard.manipulation.skills.arm_geometry import ArmGeometry
from roboyard.manipulation.skills.config import SkillConfig
from roboyard.manipulation.skills.requests import ABORTED, SUCCESS, Point, SkillRequest, SkillResult, SkillResultCode


class BayState(IntEnum):
    """Whether an object is in a bay of the robot; the values are those of ``load`` in messages."""

    UNKNOWN = -1
    EMPTY = 0
    FULL = 1


@dataclass(frozen=True, slots=True)
class GraspedObject:
    """The object in the gripper.

    Attributes:
        origin: Position of the disc on top before it was grasped.
        bay: Bay that it was taken from, from 1 on; 0: a work area.
    """

    origin: Point
    bay: int = 0


@dataclass(slots=True)
class SkillMemory:
    """What skills remember from one to the next.

    Attributes:
        work_area: Work area at which the robot is, or another place; empty while it drives.
        grasped_object: Object in the gripper; None: none.
        is_tool_low: Whether the tool may be between objects.
        bay_states: State of each bay.
        bay_discs: Disc of each bay, as detected or left: on the object in it, or on its floor.
        bay_yaws: Yaw of the gripper when it stowed the object of each bay; None: unknown.
        unreachable_bays: Bays that the arm could not reach.
        ignored_objects: Objects that are not picked again.
        objects: Discs on the objects of the work area, as detected or placed last.
        free_places: Centers of the free places that were detected last, nearest first.
        conveyor_lanes: Work areas with moving objects, and the height of these objects [m].
        last_skill_id: Number of skills that were started.
        recoveries: Number of failures that were recovered from.
    """

    work_area: str
    grasped_object: GraspedObject | None = None
    is_tool_low: bool = False
    bay_states: list[BayState] = field(default_factory=list)
    bay_discs: list[Point | None] = field(default_factory=list)
    bay_yaws: list[float | None] = field(default_factory=list)
    unreachable_bays: list[int] = field(default_factory=list)
    ignored_objects: list[Point] = field(default_factory=list)
    objects: list[Point] = field(default_factory=list)
    free_places: list[Point] = field(default_factory=list)
    conveyor_lanes: list[tuple[str, float]] = field(default_factory=list)
    last_skill_id: int = 0
    recoveries: int = 0

    def all_objects(self) -> list[Point]:
        """Return the discs on all objects around the arm: in the work area and in bays."""
        stored_objects = [
            disc
            for disc, state in zip(self.bay_discs, self.bay_states, strict=True)
            if disc is not None and state == BayState.FULL
        ]
        return [*self.objects, *stored_objects]

    def reset_bays(self, n_bays: int) -> None:
        """Forget the states and discs of all bays; the yaws of stowed objects are kept."""
        self.bay_states, self.bay_discs = [BayState.UNKNOWN] * n_bays, [None] * n_bays
        self.bay_yaws = self.bay_yaws or [None] * n_bays

    def store_bay(self, bay: int, state: BayState, disc: Point | None = None) -> None:
        """Store the state of a bay, from 1 on, and the disc that marks it; None: its position is unknown."""
        self.bay_states[bay - 1], self.bay_discs[bay - 1] = state, disc

    def bays_in_state(self, state: BayState) -> list[int]:
        """Return all reachable bays with a state, from 1 on, in their order."""
        return [
            bay
            for bay, bay_state in enumerate(self.bay_states, 1)
            if bay_state is state and bay not in self.unreachable_bays
        ]

    def first_bay(self, state: BayState) -> int:
        """Return the first reachable bay with a state, from 1 on; 0: none."""
        return next(iter(self.bays_in_state(state)), 0)


SkillEventKind = Literal["started", "phase", "recovered", "finished"]
_MAX_STEPS: Final = 1000
"""Number of phases without a request after which a skill counts as endless."""


@dataclass(frozen=True, slots=True)
class SkillEvent:
    """Start, phase, recovery or end of a skill.

    Attributes:
        kind: started, phase, recovered, finished.
        skill: Name of the skill.
        skill_id: Its id, counted over all skills.
        parent_id: Id of the skill that uses it; 0: none.
        phase: Its current phase.
        result: Its result, or the failure that it recovered from.
    """

    kind: SkillEventKind
    skill: str
    skill_id: int
    parent_id: int
    phase: str
    result: SkillResult = SUCCESS


@dataclass
class SkillContext:
    """Inputs of a skill's step.

    Attributes:
        config: Configuration of the cell.
        memory: Memory of the skills.
        arm: Geometry of the arm.
        joints: (n,) measured positions [rad]; empty: unknown.
        is_holding: Whether the fingers measure an object.
        grasp_offset: Offset of the center between the fingers from the tool, along its y axis [m].
        efforts: (n,) measured efforts [N m]; empty: unknown.
        time_ns: Present time.
        conveyor_speeds: Reported speed of the conveyor of each work area [m/s]; NaN: not reported.
        reported_recoveries: Failures that this step recovered from.
    """

    config: SkillConfig
    memory: SkillMemory
    arm: ArmGeometry
    joints: tuple[float, ...] = ()
    is_holding: bool = False
    grasp_offset: float = 0.0
    efforts: tuple[float, ...] = ()
    time_ns: int = 0
    conveyor_speeds: Mapping[str, float] = field(default_factory=dict)
    reported_recoveries: list[SkillResult] = field(default_factory=list)

    def report_recovery(self, code: SkillResultCode, message: str, position: Point | None = None) -> None:
        """Report a failure that the skill recovers from."""
        self.memory.recoveries += 1
        self.reported_recoveries.append(SkillResult(code, message, position=position))


_HandlerT = TypeVar("_HandlerT", bound=Callable[..., Any])
_PHASE_MARK: Final = "_phase_handler"


class PhaseHandler(NamedTuple):
    """The handler of a phase, and how a failure of the request is dealt with.

    Attributes:
        method_name: Name of the method of the skill.
        on_failure: "handle": the handler receives every result; "return": a failure ends the skill with that failure.
        handled_codes: Failures that the handler receives nevertheless.
    """

    method_name: str
    on_failure: Literal["handle", "return"] = "handle"
    handled_codes: tuple[SkillResultCode, ...] = ()


@overload
def phase(handler: _HandlerT) -> _HandlerT: ...
@overload
def phase(
    *, on_failure: Literal["handle", "return"] = "handle", handled_codes: tuple[SkillResultCode, ...] = ()
) -> Callable[[_HandlerT], _HandlerT]: ...
def phase(
    handler: Any = None,
    *,
    on_failure: Literal["handle", "return"] = "handle",
    handled_codes: tuple[SkillResultCode, ...] = (),
) -> Any:
    """Register a method of a skill as the handler of a phase, whose name is that of the method without underscores.

    A phase is the time from a request to its result: ``enter_phase("descend", request)`` starts it, and the method
    ``_descend(self, context, result)`` receives the result and returns the next action or the result of the skill.

    Args:
        handler: The method, if the decorator is used without arguments.
        on_failure: "return" ends the skill with the failure of the request, without a call of the handler.
        handled_codes: Failures for which the handler is called although ``on_failure`` is "return".
    """

    def mark(method: Any) -> Any:
        setattr(method, _PHASE_MARK, PhaseHandler(method.__name__, on_failure, handled_codes))
        return method

    return mark if handler is None else mark(handler)


@dataclass
class Skill:
    """A running skill: a state machine whose fields are its whole state.

    The methods that `phase` decorates are its phases; every skill begins in the phase ``start``.  A class with a name
    whose ``enter_phase`` names a phase without a handler is refused when it is created; one without is a base.

    Attributes:
        phase: Current phase: the activity whose result is awaited.
        skill_id: Id of the skill, assigned when it starts.
        recoveries: Number of failures that it recovered from.
    """

    name: ClassVar[str] = ""
    phases: ClassVar[Mapping[str, PhaseHandler]] = {}
    """Phases of the class by name."""
    phase: str = field(default="start", kw_only=True)
    skill_id: int = field(default=0, kw_only=True)
    recoveries: int = field(default=0, kw_only=True)

    def __init_subclass__(cls, **options: Any) -> None:
        """Collect the phases of the class.

        Raises:
            InputError: The class enters a phase that has no handler, or a phase whose name is not a literal.
        """
        super().__init_subclass__(**options)
        cls.phases = {
            name.strip("_"): getattr(method, _PHASE_MARK)
            for base in reversed(cls.__mro__)
            for name, method in vars(base).items()
            if hasattr(method, _PHASE_MARK)
        }
        if not cls.name:
            return
        for method in (method for base in cls.__mro__ for method in vars(base).values()):
            for target in entered_phases(method) if isinstance(method, FunctionType) else ():
                if target not in cls.phases:
                    raise InputError(
                        f"enters the phase {target!r}, which has no handler" if target else "enters a computed phase",
                        location=f"{cls.__qualname__}.{method.__name__}",
                        valid=f"a literal name of a method that `phase` decorates: {', '.join(cls.phases)}",
                    )

    def enter_phase(self, phase: str, request: NextAction) -> NextAction:
        """Enter a phase and return its request, or the skill that it uses; the phase's handler receives the result."""
        self.phase = phase
        return request

    def advance(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        """Process the result of the last request: call the handler of the current phase."""
        method_name, on_failure, handled_codes = self.phases[self.phase]
        if on_failure == "return" and not result.is_success and result.code not in handled_codes:
            return result
        handler: Callable[[SkillContext, SkillResult], NextAction | SkillResult] = getattr(self, method_name)
        return handler(context, result)

    def subject(self) -> SkillResult:
        """Return position and bay that the skill deals with, for its events."""
        return SUCCESS


@cache
def entered_phases(method: FunctionType) -> tuple[str, ...]:
    """Return the names of the phases that a method enters, read from its code; "" for a name that is computed."""
    if "enter_phase" not in method.__code__.co_names:
        return ()
    targets, is_call = [], False
    for instruction in dis.get_instructions(method):
        if is_call:
            is_literal = instruction.opname.startswith("LOAD_CONST") and isinstance(instruction.argval, str)
            targets.append(instruction.argval if is_literal else "")
        is_call = instruction.opname in ("LOAD_METHOD", "LOAD_ATTR") and instruction.argval == "enter_phase"
    return tuple(targets)


def phase_graph(skill_type: type[Skill]) -> dict[str, tuple[str, ...]]:
    """Return the phases that can follow each phase of a skill; a phase without successors ends the skill.

    It is read from the code of the handlers and of the methods that they call, so that it may contain transitions that
    no run takes.
    """
    return {
        name: tuple(sorted(_targets_of(skill_type, handler.method_name, set())))
        for name, handler in skill_type.phases.items()
    }


def _targets_of(skill_type: type[Skill], method_name: str, visited: set[str]) -> set[str]:
    """Return the phases that a method enters, itself or by other methods of the class."""
    visited.add(method_name)
    targets: set[str] = set()
    for method in (vars(base)[method_name] for base in skill_type.__mro__ if method_name in vars(base)):
        if not isinstance(method, FunctionType):
            continue
        names = set(_names_in(method.__code__))
        targets.update(entered_phases(method))
        for name in names - visited:
            if isinstance(getattr(skill_type, name, None), FunctionType):
                targets |= _targets_of(skill_type, name, visited)
        if "super" not in names:
            break
    return targets


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


NextAction = SkillRequest | Skill
"""What a skill does next: a request to the executor, or another skill."""


def to_dict(state: Any) -> dict[str, Any]:
    """Return the fields of a skill or a memory as plain data."""
    values = {state_field.name: copy.copy(getattr(state, state_field.name)) for state_field in fields(state)}
    return {"kind": _type_name(type(state)), **values} if isinstance(state, Skill) else values


def skill_from_dict(data: dict[str, Any]) -> Skill:
    """Return a skill from the data of `to_dict`."""
    return {_type_name(skill_type): skill_type for skill_type in _all_subclasses(Skill)}[data["kind"]](
        **{key: copy.copy(value) for key, value in data.items() if key != "kind"}
    )


def _type_name(skill: type[Skill]) -> str:
    """Return the name of a skill class with its module."""
    return f"{skill.__module__}.{skill.__qualname__}"


def _all_subclasses(skill_type: type[Skill]) -> Iterator[type[Skill]]:
    for subclass in skill_type.__subclasses__():
        yield subclass
        yield from _all_subclasses(subclass)


class SkillStack:
    """Running skills: each is used by the one before it.

    Attributes:
        skills: From the requested skill to the one that made the last request.
        events: Events to publish; the publisher clears the list.
    """

    def __init__(self) -> None:
        self.skills: list[Skill] = []
        self.events: list[SkillEvent] = []

    @property
    def is_busy(self) -> bool:
        """Whether a skill is running."""
        return bool(self.skills)

    def start(self, skill: Skill, context: SkillContext) -> SkillRequest | SkillResult:
        """Start a skill and return its first request, or its result. Raises InputError if a skill is running."""
        if self.skills:
            raise InputError(f"{self.skills[0].name} is running", location="skills", valid="cancel it first")
        self._push(skill, context)
        return self.on_result(context, SUCCESS)

    def on_result(self, context: SkillContext, result: SkillResult) -> SkillRequest | SkillResult:
        """Process the result of the last request and return the next request, or the result of the first skill.

        If another client has stopped the arm, all skills end: the arm must not move on.

        Raises:
            InputError: No skill is running, or a skill changes its phase without end.
        """
        if not self.skills:
            raise InputError("a result without a running skill", location="skills", valid="start a skill first")
        if result.code in ABORTED:
            return self.abort(result.code, result.message)
        for _ in range(_MAX_STEPS):
            skill = self.skills[-1]
            previous_phase = skill.phase
            action = skill.advance(context, result)
            for recovery in context.reported_recoveries:
                skill.recoveries += 1
                self._add_event("recovered", skill, recovery)
            context.reported_recoveries.clear()
            if isinstance(action, SkillResult):
                result = self._pop(action)
                if not self.skills:
                    return result
                continue
            if skill.phase != previous_phase:
                self._add_event("phase", skill, skill.subject())
            if not isinstance(action, Skill):
                return action
            self._push(action, context)
            result = SUCCESS
        raise InputError(f"{self.skills[-1].name} does not end in phase {self.skills[-1].phase}", location="skills")

    def abort(self, code: SkillResultCode, message: str) -> SkillResult:
        """End all skills and return the result of the first one; the gripper keeps a held object."""
        result = SkillResult(code, message)
        while self.skills:
            result = self._pop(SkillResult(code, message))
        return result

    def _push(self, skill: Skill, context: SkillContext) -> None:
        context.memory.last_skill_id += 1
        skill.skill_id = context.memory.last_skill_id
        self.skills.append(skill)
        self._add_event("started", skill, skill.subject())

    def _pop(self, result: SkillResult) -> SkillResult:
        skill = self.skills.pop()
        subject, n_recoveries = skill.subject(), skill.recoveries
        final_result = SkillResult(
            result.code,
            result.message,
            result.detections,
            result.position or subject.position,
            result.bay or subject.bay,
            n_recoveries,
        )
        self.events.append(
            SkillEvent("finished", skill.name, skill.skill_id, self._parent_id(), skill.phase, final_result)
        )
        if self.skills:
            self.skills[-1].recoveries += n_recoveries
        return final_result

    def _parent_id(self) -> int:
        return self.skills[-1].skill_id if self.skills else 0

    def _add_event(self, kind: SkillEventKind, skill: Skill, result: SkillResult) -> None:
        parent_id = self.skills[-2].skill_id if len(self.skills) > 1 else 0
        self.events.append(SkillEvent(kind, skill.name, skill.skill_id, parent_id, skill.phase, result))
