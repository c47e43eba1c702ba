"""`roboyard check animation` and `roboyard show animation`: how a person moves, in words and as pictures; or what is
wrong.
"""

from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.people.clip_files import write_bvh

from roboyard.people.procedural_gait import make_walk_clip


def test_own_clip_and_file_are_checked(command: Command) -> None:
    installed = command("check", "animation", "walk", "--json").json
    assert (installed["repeats"], installed["hand"]) == (True, None)
    assert installed["distance"] == pytest.approx(0.72 * 1.75)
    assert installed["max_slide"] < 1e-3
    Path("mine.bvh").write_text(write_bvh(make_walk_clip()))
    read = command("check", "animation", "mine.bvh", "--height", "1.6", "--json").json
    assert read["distance"] == pytest.approx(0.72 * 1.6, abs=0.02)
    assert "a foot slides" in command("check", "animation", "mine.bvh").out


@pytest.mark.slow
def test_clip_is_drawn_in_motion(command: Command) -> None:
    assert command("show", "animation", "wave", "--picture", "wave.png").code == 0
    assert Path("wave.png").read_bytes()[:4] == b"\x89PNG"
    Path("nod.yaml").write_text("period: 0.2 s\nkeyframes: [{phase: 0.0}, {phase: 1.0, pose: {head: [0, 30, 0]}}]")
    assert command("show", "animation", "nod.yaml", "--picture", "nod.gif").code == 0
    assert Path("nod.gif").read_bytes()[:3] == b"GIF"


@pytest.mark.parametrize(
    ("arguments", "option_words"),
    [
        (("show", "animation", "fly"), "no clip 'fly'"),
        (("check", "animation", "gone.bvh"), "no file"),
        (("show", "animation", "wave", "--picture", "wave.doc"), ".jpeg or .gif"),
        (("show", "animation", "wave", "--picture", "gone/wave.gif"), "a folder that exists"),
        (("show", "animation", "wave", "--height", "0"), "from 0.8 to 2.5 m"),
    ],
)
def test_clip_command_refuses_bad_input(command: Command, arguments: tuple[str, ...], option_words: str) -> None:
    result = command(*arguments)
    assert result.code == 2
    assert option_words in result.error
