"""`roboyard plan steps` and `check step-plan`: plans in files, searches that end early, and what cannot be planned
on.
"""

import itertools
import json
import signal
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.cli.conftest import Command
from tests.harness.live_run import LiveRun, poll

from roboyard.cli.commands import plan_steps
from roboyard.errors import InputError
from roboyard.walking.free_gait.plan_file import load_heights

KEYS = ("stability_margin", "joint_speed_fraction")
ORIGIN_OPTIONS = ("--origin", "-0.8,-1")


def level() -> np.ndarray:
    """2 m by 3 m at 0, in cells of 2 cm."""
    return np.zeros((100, 150))


def saved(name: str, heights: Any) -> str:
    np.save(name, heights)
    return name


def walled(height: float, first: int = 70, last: int = 75) -> np.ndarray:
    heights = level()
    heights[:, first:last] = height
    return heights


# -- plans -------------------------------------------------------------------------------------------------------------
def test_plan_in_its_file_is_the_printed_plan(command: Command) -> None:
    result = command("plan", "steps", "flat", "--goal", "0.4,0", "--max-events", "3000", "--out", "a.json", "--json")
    assert result.code == 0
    observed = command("check", "step-plan", "a.json", "--json")
    assert observed.code == 0
    assert observed.json["duration"] == result.json["plan"]["duration"]
    assert [observed.json[key] for key in KEYS] == [result.json[key] for key in KEYS]


def test_goal_at_the_start_needs_no_step(command: Command) -> None:
    completed = command("plan", "steps", "flat", "--goal", "0,0", "--max-events", "100", "--out", "here.yaml", "--json")
    assert completed.code == 0
    assert completed.json["plan"]["steps"] == 0
    assert command("check", "step-plan", "here.yaml").code == 0


def test_holes_and_infinite_heights_are_avoided(command: Command) -> None:
    heights = level()
    heights[40:60, 60:64] = np.nan
    heights[0, 0], heights[99, 149] = np.inf, -np.inf
    completed = command(
        "plan", "steps", saved("a.npy", heights), *ORIGIN_OPTIONS, "--goal", "0.6,0", "--max-events", "3000", "--json"
    )
    assert (completed.code, completed.json["faults"]) == (0, [])


@pytest.mark.parametrize("mode", ["L", "RGB", "1", "I;16"])
def test_images_are_height_maps(command: Command, mode: str) -> None:
    Image.new(mode, (150, 100)).save("a.png")
    assert command("plan", "steps", "a.png", *ORIGIN_OPTIONS, "--goal", "0.4,0", "--max-events", "3000").code == 0


@pytest.mark.slow
def test_step_plan_is_shown_drawn_animated_and_played(command: Command) -> None:
    result = command(
        "plan", "steps", "flat", "--goal", "0.15,0.05", "--max-events", "3000", "--out", "a.json", "--json"
    ).json
    completed = command(
        "show", "step-plan", "a.json", "--picture", "a.png", "--animation", "a.gif", "--movement", "a.xml", "--json"
    )
    assert completed.code == 0, completed
    assert [completed.json[name] for name in ("picture", "animation", "movement")] == ["a.png", "a.gif", "a.xml"]
    assert (completed.json["duration"], len(completed.json["steps"])) == (
        result["plan"]["duration"],
        result["plan"]["steps"],
    )
    with Image.open("a.gif") as gif:
        lasts = sum(gif.seek(k) or gif.info["duration"] for k in range(gif.n_frames))
        assert lasts == pytest.approx(1e3 * completed.json["duration"], rel=0.1)
    played = command("check", "movement", "a.xml", "--json").json
    assert (played["ok"], played["slowed"]) == (True, 0)
    assert played["duration"] == pytest.approx(completed.json["duration"], abs=0.02)
    assert command("show", "step-plan", "a.json").out.count("\n") > result["plan"]["steps"]


def test_animation_is_embedded_in_a_page(command: Command) -> None:
    assert (
        command("plan", "steps", "flat", "--goal", "0.05,0", "--max-events", "2600", "--animation", "a.html").code == 0
    )
    assert "data:video/mp4;base64," in Path("a.html").read_text()


@pytest.mark.slow
def test_plan_with_a_failed_leg_reports_it(command: Command) -> None:
    words = (
        "plan",
        "steps",
        "flat",
        "--goal",
        "0.3,0",
        "--max-events",
        "30000",
        "--failed-leg",
        "rm",
        "--leg-loss",
        "0.5",
    )
    result = command(*words, "--energy", "0.5", "--out", "a.json", "--picture", "a.png", "--json")
    assert result.code == 0, result
    assert result.json["work"] > 0.0
    assert 0.0 <= result.json["leg_loss_stability"] < 1.0
    assert command("check", "step-plan", "a.json").code == 0
    assert "rm" not in {one["leg"] for one in command("show", "step-plan", "a.json", "--json").json["steps"]}
    lame = Path("a.json").read_text()
    Path("b.json").write_text(lame.replace('"failed_leg": "rm"', '"failed_leg": "rn"'))
    Path("c.json").write_text(lame.replace('"failed_leg": "rm",', ""))
    for file, expected in (("b.json", "lf, rf, lm, rm, lr, rr"), ("c.json", "feet")):
        rejected = command("check", "step-plan", file)
        assert rejected.code == 2
        assert expected in rejected.err


# -- the end of a search -----------------------------------------------------------------------------------------------
def test_search_ends_after_the_seconds_it_has(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock on which 20 ms pass each time that it is read."""
    readings = itertools.count()
    monkeypatch.setattr(plan_steps, "wall_seconds", lambda: 0.02 * next(readings))
    completed = command("plan", "steps", "flat", "--goal", "0.4,0", "--time-limit", "0.5", "--out", "a.json", "--json")
    assert 0.5 <= 0.02 * next(readings) < 1.0
    assert (completed.code, completed.json["stopped_by"]) == (0, "by --time-limit")
    assert command("check", "step-plan", "a.json").code == 0


@pytest.mark.slow
def test_ctrl_c_writes_the_best_plan_so_far(command: Command) -> None:
    command("plan", "steps", "flat", "--goal", "0.4,0", "--max-events", "100")
    words = [
        "plan",
        "steps",
        "flat",
        "--goal",
        "0.4,0",
        "--max-events",
        "100000000",
        "--out",
        "a.json",
        "--picture",
        "a.png",
    ]
    with LiveRun(*words) as run:
        poll(lambda: "best" in run.read_line("stderr"), expected="a line that names the best plan")
        run.send_signal(signal.SIGINT)
        completed = run.wait()
    assert completed.code == 130
    assert "ended by Ctrl-C" in completed.out
    assert "Traceback" not in completed.out + completed.err
    assert command("check", "step-plan", "a.json").code == 0
    assert Path("a.png").read_bytes()[:4] == b"\x89PNG"


# -- what is refused, or cannot be planned -----------------------------------------------------------------------------
def test_blocking_wall_is_named_by_its_cells(command: Command) -> None:
    words = (
        "plan",
        "steps",
        saved("wall.npy", walled(0.6)),
        *ORIGIN_OPTIONS,
        "--goal",
        "1.6,0",
        "--max-events",
        "2000",
    )
    completed = command(*words, "--json")
    assert (completed.code, completed.json["plan"]) == (1, None)
    assert completed.json["cells"]
    assert all(45 <= column < 75 for _, column in completed.json["cells"])
    assert str(tuple(completed.json["cells"][0])) in command(*words).err


@pytest.mark.parametrize(
    ("heights", "words", "parts"),
    [
        (walled(0.6), ("--goal", "0.65,0"), ("goal", "cell (50, 72)", "0.60 m")),
        (walled(0.6, 40, 44), ("--goal", "1,0"), ("start", "no room for the body", "cell (50, 40)", "0.60 m")),
        (walled(np.nan, 30, 55), ("--goal", "1,0"), ("start", "no ground near", "cell (62, 40)")),
        (walled(np.nan, 95, 150), ("--goal", "1.6,0"), ("goal", "(50, 120)", "hole")),
        (level(), ("--goal", "9,0"), ("goal", "outside of the map", "x -0.80 to 2.20")),
        (level(), ("--goal", "1,0", "--start", "5,5"), ("start", "outside of the map")),
        (walled(1e9), ("--goal", "0.4,0"), ("1e+09 m high", "10000")),
        (level() * np.nan, ("--goal", "0.4,0"), ("no finite cell",)),
        (np.zeros((2, 2)), ("--goal", "0.4,0"), ("(2, 2)", "4 x 4")),
        (np.zeros((0, 5)), ("--goal", "0.4,0"), ("(0, 5)", "4 x 4")),
        (np.zeros((3000, 3000), np.int8), ("--goal", "0.4,0"), ("a.npy", "(3000, 3000)", "4000000")),
        (np.zeros(5), ("--goal", "0.4,0"), ("a.npy", "(5,)", "rows x columns")),
        (np.float64(1.0), ("--goal", "0.4,0"), ("a.npy", "shape ()")),
        (level() + 1j, ("--goal", "0.4,0"), ("a.npy", "complex128", "numbers")),
        (level() > 0.0, ("--goal", "0.4,0"), ("a.npy", "bool", "numbers")),
        (np.array([["a", "b"]]), ("--goal", "0.4,0"), ("a.npy", "<U1", "numbers")),
        (np.array([[{}]], dtype=object), ("--goal", "0.4,0"), ("a.npy", "objects")),
        (level(), ("--goal", "0.4,0", "--fraction", "0.1"), ("--fraction", "a type")),
        (level(), ("--goal", "0.4,0", "--size", "1,1"), ("--size", "a type")),
    ],
)
def test_bad_ground_start_or_goal_is_refused(
    command: Command, heights: Any, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    completed = command("plan", "steps", saved("a.npy", heights), *ORIGIN_OPTIONS, *words, "--max-events", "2000")
    assert completed.code == 2, completed
    for part in parts:
        assert part in completed.error
    assert len(completed.error) < 300


def claiming() -> bytes:
    """A .npy that says it holds 8 TB."""
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }".ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head


def widened(png: bytes) -> bytes:
    """A picture that says it has 400 million points."""
    head = b"IHDR" + 2 * (20_000).to_bytes(4, "big") + png[24:29]
    return png[:12] + head + zlib.crc32(head).to_bytes(4, "big") + png[33:]


def test_bad_height_files_are_refused(command: Command) -> None:
    np.save("whole.npy", level())
    Image.fromarray(np.random.default_rng(0).integers(0, 60, (100, 150), np.uint8)).save("whole.png")
    Image.new("L", (1, 1)).save("huge.png")
    Path("huge.png").write_bytes(widened(Path("huge.png").read_bytes()))
    Image.new("F", (150, 100)).save("fractions.tiff")
    np.savez("more.npz", heights=level())
    Path("folder.npy").mkdir()
    texts = {
        "empty.npy": b"", "junk.npy": b"hello", "cut.npy": Path("whole.npy").read_bytes()[:3000],
        "zip.npy": Path("more.npz").read_bytes(), "claims.npy": claiming(), "empty.png": b"", "junk.png": b"hello",
        "cut.png": Path("whole.png").read_bytes()[:800], "words.txt": b"hello", "plan.eps": b"%!PS-Adobe\n/x 1 def\n",
    }  # fmt: skip
    for name, text in texts.items():
        Path(name).write_bytes(text)
    for name in [*texts, "huge.png", "fractions.tiff", "more.npz", "folder.npy", "nowhere.npy", "nowhere.jpg"]:
        completed = command("plan", "steps", name, *ORIGIN_OPTIONS, "--goal", "0.4,0")
        assert completed.code == 2, (name, completed)
        assert name in completed.error
        assert ".npy" in completed.error or "points" in completed.error


def test_corrupted_height_files_are_read_or_refused() -> None:
    rng = np.random.default_rng(3)
    Image.fromarray(rng.integers(0, 60, (40, 40), np.uint8)).save("whole.png")
    np.save("whole.npy", level()[:40, :40])
    for name in ("whole.png", "whole.npy"):
        complete = np.frombuffer(Path(name).read_bytes(), np.uint8)
        for _ in range(100):
            spoilt = complete.copy()
            spoilt[rng.integers(0, min(len(complete), 140), 4)] = rng.integers(0, 256, 4)
            file = Path("a").with_suffix(Path(name).suffix)
            file.write_bytes(spoilt.tobytes())
            with suppress(InputError):
                assert load_heights(file, 0.3).ndim == 2


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        *(
            ((("--goal", text)), ("--goal", "2 finite numbers"))
            for text in ("1", "1,2,3", "a,b", "nan,0", "inf,0", "", ",", "1;2")
        ),
        *(((("--start", text)), ("--start", "2 or 3")) for text in ("1", "1,2,3,4", "a,b", "nan,0", "0,0,nan")),
        (("--origin", "a"), ("--origin", "2 finite numbers")),
        (("--size", "1e6,1"), ("--size", "up to 10000")),
        (("--size", "0,0"), ("(0.0, 0.0)", "positive")),
        (("--cell-size", "0"), ("cell_size", "0.01")),
        (("--cell-size", "nan"), ("cell_size", "finite")),
        (("--max-events", "0"), ("--max-events", "1")),
        (("--max-events", "-5"), ("--max-events", "1")),
        (("--max-events", "1.5"), ("--max-events", "integer")),
        (("--max-events", "9" * 30), ("--max-events", "less than or equal")),
        *(((("--time-limit", text)), ("--time-limit", "more than 0")) for text in ("0", "-1", "nan", "inf", "1e9")),
        (("--time-limit", "soon"), ("--time-limit", "number")),
        (("--seed", "-1"), ("--seed", "0")),
        (("--workers", "0"), ("--workers", "1")),
        (("--planner", "spliting"), ("spliting", "did you mean", "random-sampling")),
        (("--robot", "nobody"), ("no robot 'nobody'", "akrobat")),
        (("--robot", "rover"), ("has no legs",)),
        (("--goal", "500,0"), ("goal 500.0 m away", "or less")),
        (("--out", "a.txt"), ("--out a.txt", ".yaml")),
        (("--out", "nowhere/a.yaml"), ("nowhere/a.yaml", "a folder that exists")),
        (("--picture", "a.doc"), ("--picture a.doc", ".png")),
        (("--animation", "a.png"), ("--animation a.png", ".gif")),
        (("--movement", "a.json"), ("--movement a.json", ".xml")),
        (("--picture", "nowhere/a.png"), ("nowhere/a.png", "a folder that exists")),
    ],
)
def test_bad_options_are_refused(command: Command, words: tuple[str, ...], parts: tuple[str, ...]) -> None:
    goal = () if "--goal" in words else ("--goal", "0.4,0")
    budget = () if "--max-events" in words else ("--max-events", "2000")
    completed = command("plan", "steps", "flat", *goal, *budget, *words)
    assert completed.code == 2, completed
    for part in parts:
        assert part in completed.error


def test_unknown_terrain_kind_is_refused_with_the_kinds(command: Command) -> None:
    completed = command("plan", "steps", "stonse", "--goal", "0.4,0")
    assert completed.code == 2
    assert "stones" in completed.error


def test_bad_plan_files_are_refused(command: Command) -> None:
    assert command("plan", "steps", "flat", "--goal", "0.4,0", "--max-events", "3000", "--out", "a.json").code == 0
    complete = json.loads(Path("a.json").read_text())
    for change, part in [
        ({"format": "roboyard steps 9"}, "format"),
        ({"robot": "nobody"}, "no robot 'nobody'"),
        ({"robot": "rover"}, "has no legs"),
        ({"track": []}, "track"),
        ({"track": [[0.0, 0.0, 0.0, float("nan")]]}, "track"),
        ({"track": [*complete["track"], complete["track"][0]]}, "track"),
        ({"terrain": None}, "neither or both of terrain and map"),
        ({"feet": {}}, "swings[0]"),
        ({"feet": complete["feet"] | {"tail": [0, 0, 0]}}, "tail"),
        ({"swings": [complete["swings"][0] | {"leg": "tail"}]}, "swings[0]"),
        ({"swings": [complete["swings"][0] | {"touch_down_time": 1e6}]}, "swings[0]"),
        ({"swings": [complete["swings"][0] | {"source": [0, 0]}]}, "swings"),
        ({"goal": ["a", 0]}, "goal"),
    ]:
        Path("b.json").write_text(json.dumps(complete | change))
        completed = command("check", "step-plan", "b.json")
        assert completed.code == 2, (change, completed)
        assert part in completed.error
