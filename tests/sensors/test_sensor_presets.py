"""Presets against the survey they come from: each of its figures, measured on what the sensor says."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.harness.models import free_box, make_pose, make_world, static_box
from tests.harness.profiles import sample_count

from roboyard.description.sensor_presets import PRESETS
from roboyard.description.sensors import CameraSpec, EncoderSpec, GnssSpec, LidarSpec, Sensor, SonarSpec, ThreeAxisSpec
from roboyard.geometry import CameraModel
from roboyard.simulation import Simulation
from roboyard.simulation.sensor_contract import check_sensor


def mounted(name: str) -> Sensor:
    preset = PRESETS[name]
    return Sensor("s", preset.kind, "body", make_pose(0.21), preset.update_rate, "s", "body", preset.spec)


def crate(name: str, distance: float, seed: int) -> Simulation:
    wall = static_box("wall", (0.1, 60.0, 40.0), make_pose(distance + 0.05 + 0.21))
    sim = Simulation(make_world(wall, gravity=0.0), seed=seed)
    sim.add(free_box(sensors=(mounted(name),)), "crate", make_pose())
    return sim


def fraction_within(errors: np.ndarray, accuracy: float) -> float:
    return float(np.mean(np.abs(errors) <= accuracy))


@pytest.mark.parametrize(
    ("name", "rate", "far", "accuracy"),
    [
        ("sick_lms200", 20.0, 80.0, 0.010),  # a scan of 0.05 s
        ("lidar_2d_fine", 75.0, 80.0, 0.010),
        ("lidar_2d_coarse", 10.0, 30.0, 0.010),
        ("lidar_3d_16", 15.0, 120.0, 0.050),
    ],
)
def test_lidar_presets_have_the_survey_accuracy_and_rate(name: str, rate: float, far: float, accuracy: float) -> None:
    preset = PRESETS[name]
    spec = preset.spec
    assert isinstance(spec, LidarSpec)
    assert (preset.update_rate, spec.range_max) == (rate, far)
    assert spec.range_min <= 0.3
    sim = crate(name, 10.0, 1)
    center = spec.samples // 2
    layer = spec.vertical_samples // 2
    beams = slice(center - 20, center + 20)
    errors = []
    for _ in range(40):
        sim.step()
        reading = sim.sensors("crate")[0].read()
        angle = np.linspace(spec.angle_min, spec.angle_max, spec.samples)[beams]
        up = np.linspace(spec.vertical_angle_min, spec.vertical_angle_max, spec.vertical_samples)[layer]
        errors.append(reading.ranges[layer, beams] - 10.0 / (np.cos(angle) * np.cos(up)))
    assert fraction_within(np.array(errors), accuracy) == pytest.approx(0.95, abs=0.04)


def test_lidar_presets_have_the_survey_angular_steps() -> None:
    def step(name: str) -> float:
        spec = PRESETS[name].spec
        assert isinstance(spec, LidarSpec)
        return math.degrees(spec.angle_max - spec.angle_min) / (spec.samples - 1)

    sick = PRESETS["sick_lms200"].spec
    assert isinstance(sick, LidarSpec)
    assert sick.samples == 720
    assert math.degrees(sick.angle_max - sick.angle_min) == pytest.approx(180.0)
    assert step("lidar_2d_coarse") == pytest.approx(0.5, rel=1e-3)
    assert step("lidar_2d_fine") == pytest.approx(0.175, rel=1e-3)


@pytest.mark.parametrize("name", ["sonar_ring", "sonar_5m"])
def test_sonar_presets_have_the_survey_range_and_accuracy(name: str) -> None:
    preset = PRESETS[name]
    spec = preset.spec
    assert isinstance(spec, SonarSpec)
    assert 1.0 <= spec.range_max <= 5.0
    assert 2.0 * spec.range_max / 343.0 <= 1.0 / preset.update_rate
    found = []
    sim = crate(name, 1.2, 2)
    for _ in range(1500):
        sim.step()
        found.append(sim.sensors("crate")[0].read().range)
    ranges = np.array(found)
    missed = np.isinf(ranges)
    assert np.mean(missed) == pytest.approx(spec.dropout_probability, abs=0.02)
    assert fraction_within(ranges[~missed] - 1.2, 0.2) == pytest.approx(0.95, abs=0.03)


def test_ring_sonar_preset_makes_100_readings_per_second() -> None:
    assert PRESETS["sonar_ring"].update_rate == 100.0


def test_polaroid_6500_preset_has_its_pulse_and_threshold() -> None:
    spec = PRESETS["polaroid_6500"].spec
    assert isinstance(spec, SonarSpec)
    assert (spec.burst_cycles, spec.frequency) == (16, 49.4e3)
    assert spec.detection_threshold > 0.0
    length = 343.0 * spec.burst_cycles / spec.frequency
    assert spec.range_min > 0.5 * length  # while it sends it cannot listen
    quiet = replace(
        mounted("polaroid_6500"), spec=replace(spec, dropout_probability=0.0, noise=replace(spec.noise, stddev=0.0))
    )
    for distance in (0.5, 5.0, 10.0):
        wall = static_box("wall", (0.1, 60.0, 40.0), make_pose(distance + 0.26))
        sim = Simulation(make_world(wall, gravity=0.0))
        sim.add(free_box(sensors=(quiet,)), "crate", make_pose())
        late = sim.sensors("crate")[0].read().range - distance
        assert 0.0 <= late <= 0.5 * length


@pytest.mark.slow
@pytest.mark.parametrize(("name", "min_error", "max_error"), [("gps_good", 3.0, 5.0), ("gps_poor", 5.0, 50.0)])
def test_satellite_preset_errs_by_meters_and_fails_indoors(name: str, min_error: float, max_error: float) -> None:
    """95 of 100 positions are within the survey's figure; the drifting bias needs many receivers, not much time."""
    spec = PRESETS[name].spec
    assert isinstance(spec, GnssSpec)
    off = []
    for seed in range(150):
        sim = Simulation(make_world(gravity=0.0), seed=seed)
        sim.add(free_box(sensors=(mounted(name),)), "crate", make_pose())
        reading = sim.sensors("crate")[0].read()
        off.append(math.hypot(reading.latitude, reading.longitude) * 6.371e6)
    far = float(np.quantile(off, 0.95))
    assert far * 1.1 >= min_error
    assert far <= max_error * 1.1
    roof = static_box("roof", (60.0, 60.0, 0.2), make_pose(z=4.0))
    sim = Simulation(make_world(roof, gravity=0.0))
    sim.add(free_box(sensors=(mounted(name),)), "crate", make_pose())
    assert not sim.sensors("crate")[0].read().has_fix


@pytest.mark.parametrize("name", ["gyroscope_mems", "accelerometer_mems"])
def test_inertial_presets_need_calibration(name: str) -> None:
    """Averaging does not take the error of rest away, subtracting what was seen at rest does."""
    spec = PRESETS[name].spec
    assert isinstance(spec, ThreeAxisSpec)
    raw, calibrated = [], []
    for seed in range(25):
        sim = Simulation(make_world(gravity=0.0), seed=seed)
        sim.add(free_box(sensors=(mounted(name),)), "crate", make_pose())
        halves = []
        for _ in range(2):
            samples = []
            for _ in range(150):
                sim.step()
                samples.append(sim.sensors("crate")[0].read().vector)
            halves.append(np.mean(samples, axis=0))
        raw.append(halves[1])
        calibrated.append(halves[1] - halves[0])
    noise = spec.axes[0].stddev
    assert np.std(raw) > 2.0 * noise
    assert np.std(calibrated) < 0.3 * np.std(raw)


def test_encoder_presets_count_lines_or_give_the_angle() -> None:
    counting, showing = PRESETS["encoder_500"].spec, PRESETS["encoder_absolute_12bit"].spec
    assert isinstance(counting, EncoderSpec)
    assert isinstance(showing, EncoderSpec)
    assert (counting.resolution, counting.absolute) == (4 * 500, False)
    assert (showing.resolution, showing.absolute) == (2**12, True)


def with_smaller_images(spec: CameraSpec) -> CameraSpec:
    """The camera with the same view in fewer pixels: its contract does not depend on their number."""

    def smaller(lens: CameraModel | None) -> CameraModel | None:
        if lens is None:
            return None
        width, height = sample_count(lens.width, 0.2), sample_count(lens.height, 0.2)
        across, down = width / lens.width, height / lens.height
        return replace(
            lens,
            width=width,
            height=height,
            fx=across * lens.fx,
            fy=down * lens.fy,
            cx=across * (lens.cx + 0.5) - 0.5,
            cy=down * (lens.cy + 0.5) - 0.5,
        )

    return replace(spec, color=smaller(spec.color), depth=smaller(spec.depth))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if "camera" in PRESETS[name].kind else [])
        for name in sorted(PRESETS)
    ],
)
def test_presets_keep_the_sensor_contract(name: str) -> None:
    preset = PRESETS[name]
    spec = with_smaller_images(preset.spec) if isinstance(preset.spec, CameraSpec) else preset.spec
    assert (
        len(check_sensor(Sensor(name, preset.kind, "body", make_pose(), preset.update_rate, name, "body", spec))) == 5
    )
