"""What a plan of steps is written as, beside its own file: a picture, an animation, a movement."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roboyard.errors import InputError

if TYPE_CHECKING:
    from roboyard.walking.steps.ground import Ground
    from roboyard.walking.steps.plan import StepPlan
    from roboyard.walking.steps.rig import Rig

PictureOption = Annotated[Path | None, typer.Option(metavar="FILE.png", help="Draw it; .svg also.")]
AnimationOption = Annotated[
    Path | None, typer.Option(metavar="FILE.gif", help="Draw it as it moves; .mp4 and .html also.")
]
MovementOption = Annotated[
    Path | None, typer.Option(metavar="FILE.xml", help="Write it as a movement, whose feet walk it when it is played.")
]


@dataclass(frozen=True)
class Outputs:
    """Files to write; None: not.  All are looked at before anything long begins.

    Raises:
        InputError: a name that ends otherwise, or a folder that is not there.
    """

    picture: Path | None = None
    animation: Path | None = None
    movement: Path | None = None

    def __post_init__(self) -> None:
        check_file("--picture", self.picture, (".png", ".svg"))
        check_file("--animation", self.animation, (".gif", ".mp4", ".html"))
        check_file("--movement", self.movement, (".xml",))
        if self.animation is not None and self.animation.suffix.lower() != ".gif":
            from roboyard.scenarios.video.mp4 import find_ffmpeg

            find_ffmpeg()

    @property
    def named(self) -> dict[str, Path]:
        """Those that are written, by option."""
        every = {"picture": self.picture, "animation": self.animation, "movement": self.movement}
        return {name: file for name, file in every.items() if file is not None}

    def write(self, plan: StepPlan, rig: Rig, ground: Ground, goal: tuple[float, float]) -> None:
        """Write them. Raises InputError where one cannot be written."""
        if self.movement is not None:
            from roboyard.walking.movement_file import movement_text
            from roboyard.walking.steps.as_movement import movement_of

            write_text(self.movement, movement_text(movement_of(plan, rig.walker, name=self.movement.stem)))
        if self.picture is not None:
            from roboyard.cli.steps_picture import draw_steps

            draw_steps(self.picture, plan, rig, ground, goal)
        if self.animation is not None:
            from roboyard.cli.steps_animation import animate_steps

            animate_steps(self.animation, plan, rig, ground)


def check_file(option: str, file: Path | None, endings: tuple[str, ...]) -> None:
    """Before something long: whether what it finds can be written there. Raises InputError."""
    if file is None:
        return
    if file.suffix.lower() not in endings:
        said = f"{', '.join(endings[:-1])} or {endings[-1]}" if len(endings) > 1 else endings[0]
        raise InputError(f"{option} {file}", valid=f"a name that ends in {said}")
    if not file.parent.is_dir() or file.is_dir():
        raise InputError(f"{option} {file}: cannot be written", valid="a file in a folder that exists")


def write_text(file: Path, text: str) -> None:
    """Write a file. Raises InputError."""
    from roboyard.config import write_atomic

    try:
        write_atomic(file, text)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", location=str(file), valid="a file in a folder"
        ) from None
