"""State machines that are data: skills that use skills, kept on a stack that can be saved at any moment.

A skill asks for one thing, is told how that ended, and asks for the next, until it ends itself.  What it asks for is
carried out elsewhere: by a node in a run, by a few lines in a test.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final, Literal

from roboyard.errors import InputError
from roboyard.manipulation.skills.asking import DONE, Ask, Outcome, Point
from roboyard.manipulation.skills.body import Body
from roboyard.manipulation.skills.causes import ENDED, Cause
from roboyard.manipulation.skills.config import SkillConfig
from roboyard.manipulation.skills.memory import Memory

EventKind = Literal["started", "phase", "recovered", "finished"]
_MOST_STEPS: Final = 1000


@dataclass(frozen=True, slots=True)
class Event:
    """Something to be told of a skill.

    Attributes:
        kind: started, phase, recovered, finished.
        skill: Its name.
        number: Its own, counted over all skills.
        of: Number of the one that uses it; 0: none does.
        phase: That is under way.
        outcome: How it ended, or what was mended.
    """

    kind: EventKind
    skill: str
    number: int
    of: int
    phase: str
    outcome: Outcome = DONE


@dataclass
class Now:
    """What a skill knows when it is asked.

    Attributes:
        config: Of the cell.
        memory: What is remembered.
        body: The arm.
        joints: (n,) measured [rad]; empty: nobody says.
        holding: Whether the fingers feel something.
        shift: How far the middle between the fingers is off the tool's, along its y axis [m].
        efforts: (n,) measured [N m]; empty: nobody says.
        time_ns: The moment.
        flows: How fast belts move that fields lie on, as they tell themselves [m/s]; NaN: they do not.
        told: What was mended in this step.
    """

    config: SkillConfig
    memory: Memory
    body: Body
    joints: tuple[float, ...] = ()
    holding: bool = False
    shift: float = 0.0
    efforts: tuple[float, ...] = ()
    time_ns: int = 0
    flows: Mapping[str, float] = field(default_factory=dict)
    told: list[Outcome] = field(default_factory=list)

    def mended(self, cause: Cause, text: str, position: Point | None = None) -> None:
        """Something went wrong and the skill goes on."""
        self.memory.recoveries += 1
        self.told.append(Outcome(cause, text, position=position))


@dataclass
class Skill:
    """One skill under way; its fields are all its state.

    ``phase`` names the method that takes what comes back: ``_PHASE(now, came)`` gives what is asked for next, another
    skill, or the outcome.

    Attributes:
        phase: What happens next.
        number: Its own, given when it begins.
        recoveries: What it mended.
    """

    name: ClassVar[str] = ""
    phase: str = field(default="begin", kw_only=True)
    number: int = field(default=0, kw_only=True)
    recoveries: int = field(default=0, kw_only=True)

    def then(self, phase: str, request: Request) -> Request:
        """Ask for something; ``phase`` takes what comes back."""
        self.phase = phase
        return request

    def step(self, now: Now, came: Outcome) -> Request | Outcome:
        """Go on with what came back."""
        handler: Callable[[Now, Outcome], Request | Outcome] = getattr(self, f"_{self.phase}")
        return handler(now, came)

    def about(self) -> Outcome:
        """What it deals with, for those who listen."""
        return DONE


Request = Ask | Skill
"""What a skill may ask for."""


def packed(one: Any) -> dict[str, Any]:
    """A skill's or a memory's fields as plain data."""
    found = {part.name: copy.copy(getattr(one, part.name)) for part in fields(one)}
    return {"kind": _kind(type(one)), **found} if isinstance(one, Skill) else found


def unpacked(data: dict[str, Any]) -> Skill:
    """A skill again, from what `packed` gave."""
    return {_kind(one): one for one in _below(Skill)}[data["kind"]](
        **{key: copy.copy(value) for key, value in data.items() if key != "kind"}
    )


def _kind(skill: type[Skill]) -> str:
    """Methods have skills of the same names: the module tells them apart."""
    return f"{skill.__module__}.{skill.__qualname__}"


def _below(kind: type[Skill]) -> Iterator[type[Skill]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


class Stack:
    """Skills under way: the last is used by the one before it.

    Attributes:
        frames: From the one that was asked for to the one that asks now.
        events: To be told; whoever tells them empties the list.
    """

    def __init__(self) -> None:
        self.frames: list[Skill] = []
        self.events: list[Event] = []

    @property
    def busy(self) -> bool:
        """Whether a skill is under way."""
        return bool(self.frames)

    def begin(self, skill: Skill, now: Now) -> Ask | Outcome:
        """Begin a skill: what it asks for first, or how it ended. Raises InputError: one is under way."""
        if self.frames:
            raise InputError(f"{self.frames[0].name} is under way", location="skills", valid="cancel it first")
        self._push(skill, now)
        return self.feed(now, DONE)

    def feed(self, now: Now, came: Outcome) -> Ask | Outcome:
        """Tell how what was asked for ended: what is asked for next, or how the whole ended.

        Where somebody else has stopped it, all ends there: who stops an arm does not want it to move on.
        """
        if came.cause in ENDED:
            return self.abandon(came.cause, came.text)
        for _ in range(_MOST_STEPS):
            top = self.frames[-1]
            before = top.phase
            said = top.step(now, came)
            for mended in now.told:
                top.recoveries += 1
                self._tell("recovered", top, mended)
            now.told.clear()
            if isinstance(said, Outcome):
                came = self._pop(said)
                if not self.frames:
                    return came
                continue
            if top.phase != before:
                self._tell("phase", top, top.about())
            if not isinstance(said, Skill):
                return said
            self._push(said, now)
            came = DONE
        raise InputError(f"{self.frames[-1].name} comes to no end in {self.frames[-1].phase}", location="skills")

    def abandon(self, cause: Cause, text: str) -> Outcome:
        """End everything that is under way; what is held stays held."""
        outcome = Outcome(cause, text)
        while self.frames:
            outcome = self._pop(Outcome(cause, text))
        return outcome

    def _push(self, skill: Skill, now: Now) -> None:
        now.memory.serial += 1
        skill.number = now.memory.serial
        self.frames.append(skill)
        self._tell("started", skill, skill.about())

    def _pop(self, outcome: Outcome) -> Outcome:
        skill = self.frames.pop()
        about, total = skill.about(), skill.recoveries
        ended = Outcome(
            outcome.cause,
            outcome.text,
            outcome.seen,
            outcome.position or about.position,
            outcome.bay or about.bay,
            total,
        )
        self.events.append(Event("finished", skill.name, skill.number, self._of(), skill.phase, ended))
        if self.frames:
            self.frames[-1].recoveries += total
        return ended

    def _of(self) -> int:
        return self.frames[-1].number if self.frames else 0

    def _tell(self, kind: EventKind, skill: Skill, outcome: Outcome) -> None:
        of = self.frames[-2].number if len(self.frames) > 1 else 0
        self.events.append(Event(kind, skill.name, skill.number, of, skill.phase, outcome))
