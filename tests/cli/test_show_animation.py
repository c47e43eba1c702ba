"""`roboyard check animation` and `roboyard show animation`: how a person moves, in words and as pictures; or what is
wrong.
"""

from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.simulation.clip_files import bvh

from roboyard.simulation.people.gait import walk_clip


def test_own_clip_and_file_are_checked(command: Command) -> None:
    own = command("check", "animation", "walk", "--json").json
    assert (own["loop"], own["hand"]) == (True, None)
    assert own["travel"] == pytest.approx(0.72 * 1.75)
    assert own["slide"] < 1e-3
    Path("mine.bvh").write_text(bvh(walk_clip()))
    read = command("check", "animation", "mine.bvh", "--height", "1.6", "--json").json
    assert read["travel"] == pytest.approx(0.72 * 1.6, abs=0.02)
    assert "a foot slides" in command("check", "animation", "mine.bvh").out


@pytest.mark.slow
def test_clip_is_drawn_in_motion(command: Command) -> None:
    assert command("show", "animation", "wave", "--out", "wave.png").code == 0
    assert Path("wave.png").read_bytes()[:4] == b"\x89PNG"
    Path("nod.yaml").write_text("period: 0.2 s\nkeys: [{at: 0.0}, {at: 1.0, pose: {head: [0, 30, 0]}}]")
    assert command("show", "animation", "nod.yaml", "--out", "nod.gif").code == 0
    assert Path("nod.gif").read_bytes()[:3] == b"GIF"


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("show", "animation", "fly"), "no clip 'fly'"),
        (("check", "animation", "gone.bvh"), "no file"),
        (("show", "animation", "wave", "--out", "wave.doc"), ".png, .jpg or .gif"),
        (("show", "animation", "wave", "--out", "gone/wave.gif"), "no folder"),
        (("show", "animation", "wave", "--height", "0"), "from 0.8 to 2.5 m"),
    ],
)
def test_clip_verb_refuses_bad_input(command: Command, arguments: tuple[str, ...], wanted: str) -> None:
    done = command(*arguments)
    assert done.code == 2
    assert wanted in done.error
