"""Clips: built-in ones, and those of BVH, COLLADA and keyframe files; feet do not slip; errors state their location."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.people.clip_files import BLENDER, CMU, MIXAMO, write_bvh, write_collada

from roboyard.errors import ConfigError, DescriptionError, InputError, RoboyardError, UnknownNameError
from roboyard.geometry import quaternions
from roboyard.people.clip import LIFTED, UNIT_SKELETON, AnimationClip, measure_foot_slip, sole_points
from roboyard.people.clip_library import builtin_clip_names, find_clip, load_builtin_clip, read_clip
from roboyard.people.motion_files import read_bvh, read_collada_motion
from roboyard.people.procedural_gait import make_turning_clip, make_walk_clip
from roboyard.people.retargeting import match_joints_to_parts, retarget_motion
from roboyard.people.skeleton import LEFT_ARM, LEFT_LEG, PART_INDEX, PARTS, RIGHT_ARM, RIGHT_LEG, solve_two_bone_ik

Array = NDArray[np.float64]
MAX_FOOT_SLIP = 0.02 / 1.75
"""Maximum slip of a foot in a stance [statures]."""


def part_positions(clip: AnimationClip, phase: float) -> Array:
    root, rotations = clip.pose_at(phase)
    return UNIT_SKELETON.compute_part_poses(root, rotations)[0]


# -- our own -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", builtin_clip_names())
def test_builtin_clips_touch_the_ground_and_move_smoothly(name: str) -> None:
    clip = load_builtin_clip(name)
    points = sole_points(clip.root, clip.rotations)
    assert points[..., 2].min() == pytest.approx(0.0, abs=0.004)
    assert np.allclose(np.linalg.norm(clip.rotations, axis=-1), 1.0)
    inner = np.abs(np.diff(points, axis=0)).max()
    step = clip.period / clip.num_frames
    assert inner / step < 4.0  # statures a second
    if clip.loop:
        displacement = np.array([clip.travel_per_period / clip.num_frames, 0.0, 0.0])
        seam = np.abs(points[0] + (displacement if not clip.yaw_per_period else 0.0) - points[-1]).max()
        assert seam < 2.0 * inner + 0.01
    assert clip.summary


def test_clip_library_has_the_clips_of_the_cell() -> None:
    expected = {"idle", "walk", "turn", "reach", "pick_up", "put_down", "hand_over", "wave", "inspect", "sit", "carry"}
    assert expected | {"carry_idle", "carry_turn"} <= set(builtin_clip_names())


@given(st.floats(0.3, 0.85), st.floats(0.8, 1.5))
@settings(max_examples=10, deadline=None)
def test_standing_feet_do_not_slide_while_walking(stride: float, period: float) -> None:
    clip = make_walk_clip(stride, period)
    assert max(measure_foot_slip(clip)) < 1e-6
    assert (clip.foot_contacts != LIFTED).any(axis=1).all()  # one foot is always down
    both = (clip.foot_contacts != LIFTED).all(axis=1).mean()
    assert 0.1 < both < 0.4
    assert np.all(clip.root[:, 2] < 0.53)


@given(st.floats(0.2, 1.2))
@settings(max_examples=6, deadline=None)
def test_standing_feet_do_not_slide_while_turning(angle: float) -> None:
    assert max(measure_foot_slip(make_turning_clip(angle))) < 1e-6


def test_right_limbs_follow_left_limbs_by_half_a_cycle() -> None:
    clip = make_walk_clip()
    half = clip.num_frames // 2
    later = np.roll(clip.rotations, -half, axis=0)
    for limb in ("thigh", "shank", "foot", "upper_arm", "forearm"):
        left, right = clip.rotations[:, PART_INDEX[f"left_{limb}"]], later[:, PART_INDEX[f"right_{limb}"]]
        mirrored = right * [1.0, -1.0, 1.0, -1.0]
        assert np.abs(np.abs((left * mirrored).sum(axis=1)) - 1.0).max() < 1e-6, limb


# -- two bones ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("limb", [LEFT_ARM, RIGHT_ARM, LEFT_LEG, RIGHT_LEG])
@given(st.floats(0.0, 2.0 * math.pi), st.floats(-1.2, 1.2), st.floats(0.1, 1.6))
def test_limb_ik_reaches_targets_or_their_nearest_points(
    limb: int, azimuth: float, elevation: float, extension: float
) -> None:
    before, orientations = UNIT_SKELETON.compute_part_poses(*load_builtin_clip("idle").pose_at(0.3))
    after = before.copy()
    upper, lower = (float(np.linalg.norm(UNIT_SKELETON.offsets[limb + k])) for k in (1, 2))
    total = upper + lower
    direction = np.array(
        [math.cos(elevation) * math.cos(azimuth), math.cos(elevation) * math.sin(azimuth), math.sin(elevation)]
    )
    target = before[limb] + extension * total * direction
    position_error = solve_two_bone_ik(UNIT_SKELETON.offsets, after, orientations, limb, tuple(target.tolist()))
    assert np.linalg.norm(after[limb + 2] - target) == pytest.approx(position_error, abs=1e-9)
    expected_error = max((extension - 0.9995) * total, abs(upper - lower) - extension * total, 0.0)
    assert position_error == pytest.approx(expected_error, abs=2e-3 * total)
    for part in (limb, limb + 1):
        bone = after[part + 1] - after[part]
        assert np.allclose(quaternions.rotate(orientations[part], UNIT_SKELETON.offsets[part + 1]), bone, atol=1e-9)


# -- files -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("names", [CMU, MIXAMO, BLENDER], ids=["cmu", "mixamo", "blender"])
def test_bvh_clip_survives_writing_and_reading(names: dict[str, str], tmp_path: Path) -> None:
    for clip in (make_walk_clip(), load_builtin_clip("pick_up")):
        path = tmp_path / f"{clip.name}.bvh"
        path.write_text(write_bvh(clip, names))
        read = read_clip(path)
        assert read.period == pytest.approx(clip.period, rel=1e-3)
        assert read.travel_per_period == pytest.approx(clip.travel_per_period, abs=0.01)
        displacement = part_positions(read, 0.0)[0] - part_positions(clip, 0.0)[0]
        for phase in (0.0, 0.2, 0.5, 0.7):
            shift = part_positions(read, phase) - part_positions(clip, phase) - displacement * [1.0, 1.0, 0.0]
            assert np.abs(shift).max() < 0.03, (clip.name, phase)  # the trunk bends in one piece


def test_collada_and_bvh_give_the_same_clip(tmp_path: Path) -> None:
    clip = make_walk_clip()
    (tmp_path / "a.bvh").write_text(write_bvh(clip))
    (tmp_path / "a.dae").write_text(write_collada(clip))
    one, other = read_clip(tmp_path / "a.bvh"), read_clip(tmp_path / "a.dae")
    assert one.travel_per_period == pytest.approx(other.travel_per_period, abs=5e-3)
    for phase in (0.1, 0.4, 0.9):
        assert np.abs(part_positions(one, phase) - part_positions(other, phase))[:14].max() < 0.02


def test_feet_of_read_clips_do_not_slide(tmp_path: Path) -> None:
    (tmp_path / "walk.bvh").write_text(write_bvh(make_walk_clip()))
    clip = read_clip(tmp_path / "walk.bvh")
    assert clip.loop
    assert len(measure_foot_slip(clip)) >= 2
    assert max(measure_foot_slip(clip)) < MAX_FOOT_SLIP


def replace_once(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


BVH = write_bvh(load_builtin_clip("reach"))
LAST = BVH.rstrip().splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no line MOTION"),
        ("HIERARCHY\nROOT Hips\n{\nMOTION\n", "ends within its hierarchy"),
        (replace_once(BVH, "LeftLeg", "Left"), "no joint for the left shank"),
        (replace_once(BVH, LAST, LAST.replace(LAST.split()[3], "nan", 1)), "contains an invalid number"),
        (replace_once(BVH, LAST, LAST + " 1"), "has 55 numbers"),
        (replace_once(BVH, LAST, "x " * 54), "not a number"),
        (replace_once(BVH, LAST, ""), "has 119 of 120 frames"),
        (replace_once(BVH, "Frames: 120", "Frames: 1e9"), "frames"),
        (replace_once(BVH, "Frame Time: 0.02", "Frame Time: -0.02"), "frame time"),
        (replace_once(BVH, "Zrotation", "Wrotation"), "channel 'Wrotation'"),
        (replace_once(BVH, "LeftArm", "RightArm"), "two joints named"),
        (replace_once(BVH, "OFFSET", "OFFSET inf"), "finite"),
    ],
)
def test_broken_bvh_is_refused_with_its_location(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.bvh"
    path.write_text(text)
    with pytest.raises(DescriptionError, match=message) as caught:
        read_clip(path)
    assert "broken.bvh" in str(caught.value)


def test_skeletons_with_misplaced_limbs_are_refused(tmp_path: Path) -> None:
    names = {**CMU, "left_shank": "RightLeg", "right_shank": "LeftLeg"}
    path = tmp_path / "crossed.bvh"
    path.write_text(write_bvh(load_builtin_clip("reach"), names))
    with pytest.raises(DescriptionError, match="is not below"):
        read_clip(path)


DAE = write_collada(load_builtin_clip("reach"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("<robot/>", "<COLLADA>"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><COLLADA>&x;</COLLADA>', "."),
        ("<COLLADA/>", "no joints"),
        (replace_once(DAE, 'stride="16"', 'stride="15"'), "values"),
        (replace_once(DAE, 'target="Hips/transform"', 'target="Hips"'), "channel"),
        (replace_once(DAE, 'source="#Hips-out"', 'source="#gone"'), "without OUTPUT"),
        (replace_once(DAE, "0.000000 ", "nan "), "invalid number"),
        (replace_once(DAE, "0.000000 ", "7.0 "), "increasing times"),
        (DAE[: len(DAE) // 2], "."),
    ],
)
def test_broken_collada_is_refused_with_its_location(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.dae"
    path.write_text(text)
    with pytest.raises(DescriptionError, match=message) as caught:
        read_clip(path)
    assert "broken.dae" in str(caught.value)


@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_corrupted_clip_files_end_in_an_error_or_a_clip(data: st.DataObject, tmp_path: Path) -> None:
    kind = data.draw(st.sampled_from(["bvh", "dae"]))
    text = BVH if kind == "bvh" else DAE
    offset, size = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 4000))
    inserted = data.draw(st.text(st.characters(codec="utf-8"), max_size=12))
    path = tmp_path / f"mixed.{kind}"
    path.write_text(text[:offset] + inserted + text[offset + size :], encoding="utf-8")
    try:
        clip = read_clip(path)
    except RoboyardError as error:
        assert str(error)
    else:
        assert np.isfinite(clip.root).all()
        assert np.isfinite(clip.rotations).all()


def test_joint_names_of_clips_can_be_mapped(tmp_path: Path) -> None:
    names = {part: f"bone{k}" for k, part in enumerate(PARTS)}
    path = tmp_path / "own.bvh"
    path.write_text(write_bvh(load_builtin_clip("reach"), names))
    motion = read_bvh(path)
    with pytest.raises(DescriptionError, match="bone1"):
        match_joints_to_parts(motion)
    needed = {part: name for part, name in names.items() if part not in ("pelvis", "abdomen", "chest")}
    clip = retarget_motion(motion, "own", joint_names=needed)
    assert np.abs(part_positions(clip, 0.5) - part_positions(clip, 0.0)).max() > 0.1
    with pytest.raises(DescriptionError, match="no joint 'gone'"):
        retarget_motion(motion, "own", joint_names={**needed, "head": "gone"})
    with pytest.raises(InputError, match="a part of 0 to"):
        retarget_motion(motion, "own", joint_names=needed, time_range=(9.0, 10.0))


def test_clip_can_be_cut_from_a_motion(tmp_path: Path) -> None:
    path = tmp_path / "long.dae"
    path.write_text(write_collada(load_builtin_clip("inspect")))
    clip = retarget_motion(read_collada_motion(path), "part", time_range=(1.0, 2.5), loop=False)
    assert clip.period == pytest.approx(1.5, abs=0.05)


# -- key poses ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("period: 1 s\nkeyframes: [{phase: 0.0}]", "at least two"),
        ("period: 1 s\nkeyframes: [{phase: 0.0}, {phase: 0.5}]", "increasing from 0 to 1"),
        ("period: 1 s\nkeyframes: [{phase: 0.0}, {phase: 1.0, pose: {tail: [0, 0, 0]}}]", "no part 'tail'"),
        ("period: 1 s\nkeyframes: [{phase: 0.0}, {phase: 1.0, pose: {head: [0, 0]}}]", "head"),
        ("period: 0 s\nkeyframes: [{phase: 0.0}, {phase: 1.0}]", "period"),
        ("period: 1 s\nbase_clip: fly\nkeyframes: [{phase: 0.0}, {phase: 1.0}]", "'fly' is not a base clip"),
        ("period: 1 s\nreach_interval: [0.6, 0.4]\nkeyframes: [{phase: 0.0}, {phase: 1.0}]", "smaller phase first"),
        ("period: .nan\nkeyframes: [{phase: 0.0}, {phase: 1.0}]", "period"),
    ],
)
def test_broken_keyframes_are_refused_with_their_location(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        read_clip(path)
    assert "broken.yaml" in str(caught.value)


def test_clip_on_a_base_clip_keeps_its_legs() -> None:
    carry, walk = load_builtin_clip("carry"), load_builtin_clip("walk")
    legs = [PART_INDEX[part] for part in PARTS if part.endswith(("thigh", "shank", "foot"))]
    assert np.array_equal(carry.rotations[:, legs], walk.rotations[:, legs])
    assert carry.travel_per_period == walk.travel_per_period
    assert not np.allclose(
        carry.rotations[:, PART_INDEX["left_forearm"]], walk.rotations[:, PART_INDEX["left_forearm"]]
    )


def test_missing_clips_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="walk"):
        find_clip("fly")
    with pytest.raises(InputError, match="there is no file"):
        find_clip("gone.bvh")
    with pytest.raises(InputError, match="ends in"):
        read_clip(tmp_path / "clip.fbx")
    (tmp_path / "mine.yaml").write_text(
        "period: 1 s\nkeyframes: [{phase: 0.0}, {phase: 1.0, pose: {head: [0, 20, 0]}}]"
    )
    assert find_clip("mine.yaml", tmp_path).name == "mine"
