"""``roboyard check clip`` and ``show clip``: how a person moves, from a file or of our own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.grammar import JsonOption

if TYPE_CHECKING:
    from roboyard.simulation.people.clip import Clip

ClipArgument = Annotated[str, typer.Argument(metavar="FILE|NAME", help="Key poses, BVH or COLLADA; or one of ours.")]
HeightOption = Annotated[float, typer.Option(metavar="M", help="Of the person.")]


def check_clip(file: ClipArgument, height: HeightOption = 1.75, json: JsonOption = False) -> None:
    """A clip of a person's motion: whether it can be read.

    How long it is, whether it goes round, how far a round travels, how many steps it has,
    and how far feet slide while they stand.
    """
    from roboyard.cli.terminal import emit, fields
    from roboyard.simulation.people.library import find_clip

    clip = find_clip(file)
    found = _found(clip, height)
    if json:
        emit({"ok": True, "file": file, **found})
        return
    fields(_words(found))


def show_clip(
    file: ClipArgument,
    height: HeightOption = 1.75,
    out: Annotated[Path | None, typer.Option(metavar="PNG|GIF", help="Draw some poses, or the whole motion.")] = None,
    json: JsonOption = False,
) -> None:
    """A clip of a person's motion, in words and as a picture.

    A .png or .jpg file shows some of its poses beside each other, a .gif one how it moves.
    """
    from roboyard.cli.terminal import emit, fields
    from roboyard.errors import InputError
    from roboyard.simulation.people.anthropometry import Physique
    from roboyard.simulation.people.body import make_body
    from roboyard.simulation.people.library import find_clip
    from roboyard.simulation.people.picture import save_animation, save_strip

    if out is not None and out.suffix.lower() not in (".png", ".jpg", ".jpeg", ".gif"):
        raise InputError(f"--out {out}", valid="a name that ends in .png, .jpg or .gif")
    body = make_body(Physique.of_height(height))
    clip = find_clip(file)
    if out is not None:
        (save_animation if out.suffix.lower() == ".gif" else save_strip)(clip, body, out)
    found = {**_found(clip, height), "picture": out}
    if json:
        emit({"file": file, **found})
        return
    fields([*_words(found), *([("picture", str(out))] if out is not None else [])])


def _found(clip: Clip, height: float) -> dict[str, Any]:
    from roboyard.simulation.people.clip import steps_of

    steps = [slid * height for slid in steps_of(clip)]
    return {
        "clip": clip.name, "summary": clip.summary, "period": clip.period, "samples": clip.frames, "loop": clip.loop,
        "travel": clip.travel * height, "turning": clip.turning, "hand": clip.hand, "steps": len(steps),
        "slide": max(steps, default=0.0),
    }  # fmt: skip


def _words(found: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        ("clip", f"{found['clip']}: {found['summary']}" if found["summary"] else found["clip"]),
        ("takes", f"{found['period']:.2f} s, {found['samples']} samples{', goes round' if found['loop'] else ''}"),
        *([("travels", f"{found['travel']:.2f} m a round")] if found["travel"] else []),
        *([("turns", f"{found['turning']:.2f} rad a round")] if found["turning"] else []),
        *([("reaches", f"with the {found['hand']} hand")] if found["hand"] else []),
        ("stands", f"{found['steps']} times; a foot slides by at most {1000.0 * found['slide']:.1f} mm"),
    ]
