"""Clips: our own, and those from BVH, COLLADA and key poses; feet that stand do not slide, broken files say where."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.simulation.clip_files import BLENDER, CMU, MIXAMO, bvh, collada

from roboyard.errors import ConfigError, DescriptionError, InputError, RoboyardError, UnknownNameError
from roboyard.geometry import quaternions
from roboyard.simulation.people.bvh import read_bvh
from roboyard.simulation.people.clip import LIFTED, UNIT, Clip, soles, steps_of
from roboyard.simulation.people.collada_motion import read_collada_motion
from roboyard.simulation.people.gait import turn_clip, walk_clip
from roboyard.simulation.people.library import clip_names, find_clip, own_clip, read_clip
from roboyard.simulation.people.limbs import LEFT_ARM, LEFT_LEG, RIGHT_ARM, RIGHT_LEG, stretch
from roboyard.simulation.people.retarget import find_joints, retarget
from roboyard.simulation.people.skeleton import INDEX, PARTS

Array = NDArray[np.float64]
SLIDE = 0.02 / 1.75
"""Of a step [statures]."""


def places(clip: Clip, phase: float) -> Array:
    root, turns = clip.at(phase)
    return UNIT.forward(root, turns)[0]


# -- our own -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", clip_names())
def test_own_clips_stand_on_the_ground_and_move_smoothly(name: str) -> None:
    clip = own_clip(name)
    points = soles(clip.root, clip.turns)
    assert points[..., 2].min() == pytest.approx(0.0, abs=0.004)
    assert np.allclose(np.linalg.norm(clip.turns, axis=-1), 1.0)
    inner = np.abs(np.diff(points, axis=0)).max()
    step = clip.period / clip.frames
    assert inner / step < 4.0  # statures a second
    if clip.loop:
        moved = np.array([clip.travel / clip.frames, 0.0, 0.0])
        seam = np.abs(points[0] + (moved if not clip.turning else 0.0) - points[-1]).max()
        assert seam < 2.0 * inner + 0.01
    assert clip.summary


def test_clip_library_has_the_clips_of_the_cell() -> None:
    wanted = {"idle", "walk", "turn", "reach", "pick_up", "put_down", "hand_over", "wave", "inspect", "sit", "carry"}
    assert wanted | {"carry_idle", "carry_turn"} <= set(clip_names())


@given(st.floats(0.3, 0.85), st.floats(0.8, 1.5))
@settings(max_examples=10, deadline=None)
def test_standing_feet_do_not_slide_while_walking(stride: float, period: float) -> None:
    clip = walk_clip(stride, period)
    assert max(steps_of(clip)) < 1e-6
    assert (clip.rests != LIFTED).any(axis=1).all()  # one foot is always down
    both = (clip.rests != LIFTED).all(axis=1).mean()
    assert 0.1 < both < 0.4
    assert np.all(clip.root[:, 2] < 0.53)


@given(st.floats(0.2, 1.2))
@settings(max_examples=6, deadline=None)
def test_standing_feet_do_not_slide_while_turning(angle: float) -> None:
    assert max(steps_of(turn_clip(angle))) < 1e-6


def test_left_and_right_limbs_move_half_a_cycle_apart() -> None:
    clip = walk_clip()
    half = clip.frames // 2
    later = np.roll(clip.turns, -half, axis=0)
    for limb in ("thigh", "shank", "foot", "upper_arm", "forearm"):
        left, right = clip.turns[:, INDEX[f"left_{limb}"]], later[:, INDEX[f"right_{limb}"]]
        mirrored = right * [1.0, -1.0, 1.0, -1.0]
        assert np.abs(np.abs((left * mirrored).sum(axis=1)) - 1.0).max() < 1e-6, limb


# -- two bones ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("limb", [LEFT_ARM, RIGHT_ARM, LEFT_LEG, RIGHT_LEG])
@given(st.floats(0.0, 2.0 * math.pi), st.floats(-1.2, 1.2), st.floats(0.1, 1.6))
def test_limb_ik_reaches_targets_or_their_nearest_points(
    limb: int, azimuth: float, elevation: float, far: float
) -> None:
    before, turns = UNIT.forward(*own_clip("idle").at(0.3))
    after = before.copy()
    upper, lower = (float(np.linalg.norm(UNIT.offsets[limb + k])) for k in (1, 2))
    total = upper + lower
    way = np.array(
        [math.cos(elevation) * math.cos(azimuth), math.cos(elevation) * math.sin(azimuth), math.sin(elevation)]
    )
    target = before[limb] + far * total * way
    missed = stretch(UNIT.offsets, after, turns, limb, tuple(target.tolist()))
    assert np.linalg.norm(after[limb + 2] - target) == pytest.approx(missed, abs=1e-9)
    short = max((far - 0.9995) * total, abs(upper - lower) - far * total, 0.0)
    assert missed == pytest.approx(short, abs=2e-3 * total)
    for part in (limb, limb + 1):
        bone = after[part + 1] - after[part]
        assert np.allclose(quaternions.rotate(turns[part], UNIT.offsets[part + 1]), bone, atol=1e-9)


# -- files -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("names", [CMU, MIXAMO, BLENDER], ids=["cmu", "mixamo", "blender"])
def test_bvh_clip_survives_writing_and_reading(names: dict[str, str], tmp_path: Path) -> None:
    for clip in (walk_clip(), own_clip("pick_up")):
        path = tmp_path / f"{clip.name}.bvh"
        path.write_text(bvh(clip, names))
        again = read_clip(path)
        assert again.period == pytest.approx(clip.period, rel=1e-3)
        assert again.travel == pytest.approx(clip.travel, abs=0.01)
        moved = places(again, 0.0)[0] - places(clip, 0.0)[0]
        for phase in (0.0, 0.2, 0.5, 0.7):
            shift = places(again, phase) - places(clip, phase) - moved * [1.0, 1.0, 0.0]
            assert np.abs(shift).max() < 0.03, (clip.name, phase)  # the trunk bends in one piece


def test_collada_and_bvh_give_the_same_clip(tmp_path: Path) -> None:
    clip = walk_clip()
    (tmp_path / "a.bvh").write_text(bvh(clip))
    (tmp_path / "a.dae").write_text(collada(clip))
    one, other = read_clip(tmp_path / "a.bvh"), read_clip(tmp_path / "a.dae")
    assert one.travel == pytest.approx(other.travel, abs=5e-3)
    for phase in (0.1, 0.4, 0.9):
        assert np.abs(places(one, phase) - places(other, phase))[:14].max() < 0.02


def test_feet_of_read_clips_do_not_slide(tmp_path: Path) -> None:
    (tmp_path / "walk.bvh").write_text(bvh(walk_clip()))
    clip = read_clip(tmp_path / "walk.bvh")
    assert clip.loop
    assert len(steps_of(clip)) >= 2
    assert max(steps_of(clip)) < SLIDE


def broken(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


BVH = bvh(own_clip("reach"))
LAST = BVH.rstrip().splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no line MOTION"),
        ("HIERARCHY\nROOT Hips\n{\nMOTION\n", "ends within its hierarchy"),
        (broken(BVH, "LeftLeg", "Left"), "no joint for the left shank"),
        (broken(BVH, LAST, LAST.replace(LAST.split()[3], "nan", 1)), "a number that is none"),
        (broken(BVH, LAST, LAST + " 1"), "has 55 numbers"),
        (broken(BVH, LAST, "x " * 54), "no number"),
        (broken(BVH, LAST, ""), "frames are there"),
        (broken(BVH, "Frames: 120", "Frames: 1e9"), "frames"),
        (broken(BVH, "Frame Time: 0.02", "Frame Time: -0.02"), "frame time"),
        (broken(BVH, "Zrotation", "Wrotation"), "channel 'Wrotation'"),
        (broken(BVH, "LeftArm", "RightArm"), "two joints named"),
        (broken(BVH, "OFFSET", "OFFSET inf"), "finite"),
    ],
)
def test_broken_bvh_is_refused_with_its_location(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.bvh"
    path.write_text(text)
    with pytest.raises(DescriptionError, match=says) as caught:
        read_clip(path)
    assert "broken.bvh" in str(caught.value)


def test_skeletons_with_misplaced_limbs_are_refused(tmp_path: Path) -> None:
    names = {**CMU, "left_shank": "RightLeg", "right_shank": "LeftLeg"}
    path = tmp_path / "crossed.bvh"
    path.write_text(bvh(own_clip("reach"), names))
    with pytest.raises(DescriptionError, match="does not hang on"):
        read_clip(path)


DAE = collada(own_clip("reach"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("<robot/>", "<COLLADA>"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><COLLADA>&x;</COLLADA>', "."),
        ("<COLLADA/>", "no joints"),
        (broken(DAE, 'stride="16"', 'stride="15"'), "values"),
        (broken(DAE, 'target="Hips/transform"', 'target="Hips"'), "channel"),
        (broken(DAE, 'source="#Hips-out"', 'source="#gone"'), "without OUTPUT"),
        (broken(DAE, "0.000000 ", "nan "), "none"),
        (broken(DAE, "0.000000 ", "7.0 "), "rising times"),
        (DAE[: len(DAE) // 2], "."),
    ],
)
def test_broken_collada_is_refused_with_its_location(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.dae"
    path.write_text(text)
    with pytest.raises(DescriptionError, match=says) as caught:
        read_clip(path)
    assert "broken.dae" in str(caught.value)


@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_corrupted_clip_files_end_in_an_error_or_a_clip(data: st.DataObject, tmp_path: Path) -> None:
    kind = data.draw(st.sampled_from(["bvh", "dae"]))
    text = BVH if kind == "bvh" else DAE
    at, size = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 4000))
    put = data.draw(st.text(st.characters(codec="utf-8"), max_size=12))
    path = tmp_path / f"mixed.{kind}"
    path.write_text(text[:at] + put + text[at + size :], encoding="utf-8")
    try:
        clip = read_clip(path)
    except RoboyardError as error:
        assert str(error)
    else:
        assert np.isfinite(clip.root).all()
        assert np.isfinite(clip.turns).all()


def test_joint_names_of_clips_can_be_mapped(tmp_path: Path) -> None:
    names = {part: f"bone{k}" for k, part in enumerate(PARTS)}
    path = tmp_path / "own.bvh"
    path.write_text(bvh(own_clip("reach"), names))
    motion = read_bvh(path)
    with pytest.raises(DescriptionError, match="bone1"):
        find_joints(motion)
    needed = {part: name for part, name in names.items() if part not in ("pelvis", "abdomen", "chest")}
    clip = retarget(motion, "own", names=needed)
    assert np.abs(places(clip, 0.5) - places(clip, 0.0)).max() > 0.1
    with pytest.raises(DescriptionError, match="no joint 'gone'"):
        retarget(motion, "own", names={**needed, "head": "gone"})
    with pytest.raises(InputError, match="a part of 0 to"):
        retarget(motion, "own", names=needed, part=(9.0, 10.0))


def test_clip_can_be_cut_from_a_motion(tmp_path: Path) -> None:
    path = tmp_path / "long.dae"
    path.write_text(collada(own_clip("inspect")))
    clip = retarget(read_collada_motion(path), "part", part=(1.0, 2.5), loop=False)
    assert clip.period == pytest.approx(1.5, abs=0.05)


# -- key poses ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("period: 1 s\nkeys: [{at: 0.0}]", "at least two"),
        ("period: 1 s\nkeys: [{at: 0.0}, {at: 0.5}]", "rising from 0 to 1"),
        ("period: 1 s\nkeys: [{at: 0.0}, {at: 1.0, pose: {tail: [0, 0, 0]}}]", "no part 'tail'"),
        ("period: 1 s\nkeys: [{at: 0.0}, {at: 1.0, pose: {head: [0, 0]}}]", "head"),
        ("period: 0 s\nkeys: [{at: 0.0}, {at: 1.0}]", "period"),
        ("period: 1 s\nbase: fly\nkeys: [{at: 0.0}, {at: 1.0}]", "no clip 'fly'"),
        ("period: 1 s\nreach: [0.6, 0.4]\nkeys: [{at: 0.0}, {at: 1.0}]", "smaller one first"),
        ("period: .nan\nkeys: [{at: 0.0}, {at: 1.0}]", "period"),
    ],
)
def test_broken_key_poses_are_refused_with_their_location(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says) as caught:
        read_clip(path)
    assert "broken.yaml" in str(caught.value)


def test_clip_on_a_base_clip_keeps_its_legs() -> None:
    carry, walk = own_clip("carry"), own_clip("walk")
    legs = [INDEX[part] for part in PARTS if part.endswith(("thigh", "shank", "foot"))]
    assert np.array_equal(carry.turns[:, legs], walk.turns[:, legs])
    assert carry.travel == walk.travel
    assert not np.allclose(carry.turns[:, INDEX["left_forearm"]], walk.turns[:, INDEX["left_forearm"]])


def test_missing_clips_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="walk"):
        find_clip("fly")
    with pytest.raises(InputError, match="there is no file"):
        find_clip("gone.bvh")
    with pytest.raises(InputError, match="ends in"):
        read_clip(tmp_path / "clip.fbx")
    (tmp_path / "mine.yaml").write_text("period: 1 s\nkeys: [{at: 0.0}, {at: 1.0, pose: {head: [0, 20, 0]}}]")
    assert find_clip("mine.yaml", tmp_path).name == "mine"
