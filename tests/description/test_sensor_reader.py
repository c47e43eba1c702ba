"""Sensors of all kinds are read with presets, latency and outages; mirrors and geodetic origins are read too."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.description import load_model, load_world
from roboyard.description.sensor_presets import PRESETS
from roboyard.description.sensors import (
    AltimeterSpec,
    BarometerSpec,
    EncoderSpec,
    ForceTorqueSpec,
    GnssSpec,
    LidarSpec,
    Noise,
    Outage,
    Sensor,
    SonarSpec,
    ThreeAxisSpec,
)
from roboyard.description.write import write_sdf
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3
from roboyard.sensors import sensor_kinds

LINK = "<inertial><mass>1</mass></inertial>"


def load_robot(sensor: str, joint: str = ""):
    text = (
        f'<sdf version="1.11"><model name="m"><link name="a">{LINK}{sensor}</link><link name="b">{LINK}</link>'
        f'<joint name="j" type="revolute"><parent>a</parent><child>b</child><axis><xyz>0 0 1</xyz></axis>{joint}'
        "</joint></model></sdf>"
    )
    return load_model(text)


NOISE = "<noise type='gaussian'><mean>0</mean><stddev>0.5</stddev></noise>"


@pytest.mark.parametrize(
    ("kind", "body", "spec"),
    [
        ("sonar", "<sonar><min>0.1</min><max>2</max><half_angle>0.3</half_angle></sonar>", SonarSpec(0.1, 2.0, 0.3)),
        ("sonar", "<sonar><min>0</min><max>3</max><radius>3</radius></sonar>", SonarSpec(0.0, 3.0, math.pi / 4)),
        ("magnetometer", f"<magnetometer><y>{NOISE}</y></magnetometer>",
         ThreeAxisSpec((Noise(), Noise(stddev=0.5), Noise()))),
        ("altimeter", f"<altimeter><vertical_position>{NOISE}</vertical_position></altimeter>",
         AltimeterSpec(Noise(stddev=0.5))),
        ("air_pressure", "<air_pressure><reference_altitude>7</reference_altitude></air_pressure>",
         BarometerSpec(reference_altitude=7.0)),
        ("gps", f"<gps><position_sensing><vertical>{NOISE}</vertical></position_sensing></gps>",
         GnssSpec(vertical=Noise(stddev=0.5))),
        ("navsat", "", GnssSpec()),
        ("encoder", "<encoder><joint>j</joint><resolution>64</resolution><absolute>1</absolute></encoder>",
         EncoderSpec(("j",), 64, absolute=True)),
    ],
)  # fmt: skip
def test_every_sensor_kind_is_read(kind: str, body: str, spec: object) -> None:
    model = load_robot(f'<sensor name="s" type="{kind}"><update_rate>20</update_rate>{body}</sensor>')
    assert model.sensors[0].spec == spec
    assert model.sensors[0].kind in sensor_kinds()
    assert not [warning for warning in model.warnings if "s" in warning.message.split("'")]


def test_force_torque_sensor_belongs_to_its_joint() -> None:
    body = "<force_torque><frame>parent</frame><measure_direction>parent_to_child</measure_direction></force_torque>"
    model = load_robot("", f'<sensor name="ft" type="force_torque"><update_rate>10</update_rate>{body}</sensor>')
    assert model.sensors[0].spec == ForceTorqueSpec("j", "parent", "parent_to_child")
    with pytest.raises(DescriptionError, match="is not inside a joint"):
        load_robot('<sensor name="ft" type="force_torque"/>')


def test_every_sensor_has_latency_and_outages() -> None:
    elements = "<latency>0.02</latency><outage><every>60</every><lasts>2</lasts></outage>"
    sensor = load_robot(f'<sensor name="s" type="gyroscope"><update_rate>20</update_rate>{elements}</sensor>').sensors[
        0
    ]
    assert (sensor.latency, sensor.outage) == (0.02, Outage(60.0, 2.0))


@given(
    st.builds(SonarSpec, st.floats(0.01, 0.5), st.floats(1.0, 9.0), st.floats(0.01, 1.5), st.floats(0.0, 1.0),
              false_echo_probability=st.floats(0, 1), dropout_probability=st.floats(0, 1),
              frequency=st.floats(1e3, 1e6), burst_cycles=st.integers(1, 99), detection_threshold=st.floats(0, 1)),
    st.floats(0.0, 0.09),
)  # fmt: skip
@settings(max_examples=30)
def test_written_sonar_is_read_back_unchanged(spec: SonarSpec, phase: float) -> None:
    sensor = Sensor("s", "sonar", "a", SE3(), 10.0, "s", "a", spec, phase=phase)
    read_back = load_model(write_sdf(replace(load_robot(""), sensors=(sensor,))).text).sensors[0]
    assert read_back.phase == pytest.approx(phase, rel=1e-9)
    for name in SonarSpec.__dataclass_fields__:
        if name != "noise":
            assert getattr(read_back.spec, name) == pytest.approx(getattr(spec, name), rel=1e-9), name


def test_too_high_sonar_rate_causes_a_warning() -> None:
    def read_warnings(rate: float) -> list[str]:
        model = load_robot(f'<sensor name="s" type="sonar"><update_rate>{rate}</update_rate></sensor>')
        return [warning.message for warning in model.warnings if "false readings" in warning.message]

    assert read_warnings(30.0) == []  # the default maximum range is 5 m
    assert "1.7 m" in read_warnings(100.0)[0]


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_sensor_preset_sets_its_values(name: str) -> None:
    preset = PRESETS[name]
    sensor = load_robot(f'<sensor name="s" type="{preset.kind}"><preset>{name}</preset></sensor>').sensors[0]
    assert (sensor.spec, sensor.update_rate) == (preset.spec, preset.update_rate)
    with_other_rate = (
        f'<sensor name="s" type="{preset.kind}"><preset>{name}</preset><update_rate>3</update_rate></sensor>'
    )
    assert load_robot(with_other_rate).sensors[0].update_rate == 3.0


@pytest.mark.parametrize(
    ("sensor", "message"),
    [
        ('<sensor name="s" type="imu"><preset>sick_lms200</preset></sensor>', "imu_consumer"),
        ('<sensor name="s" type="lidar"><preset>sik</preset></sensor>', "sick_lms200"),
        ('<sensor name="s" type="sonar"><sonar><min>3</min><max>2</max></sonar></sensor>', "max above min"),
        ('<sensor name="s" type="sonar"><sonar><max>2</max><half_angle>2</half_angle></sonar></sensor>', "pi/2"),
        ('<sensor name="s" type="lidar"><lidar><phantom>2</phantom></lidar></sensor>', "probability"),
        ('<sensor name="s" type="imu"><outage><every>-1</every></outage></sensor>', "at least 0"),
        ('<sensor name="s" type="imu"><latency>soon</latency></sensor>', "latency"),
        ('<sensor name="s" type="sonar"><update_rate>20</update_rate><phase>0.05</phase></sensor>', "less than 0.05 s"),
        ('<sensor name="s" type="sonar"><sonar><threshold>2</threshold></sonar></sensor>', "from 0 to 1"),
        ('<sensor name="s" type="sonar"><sonar><frequency>0</frequency></sonar></sensor>', "frequency"),
        ('<sensor name="s" type="sonar"><sonar><cycles>0</cycles></sonar></sensor>', "cycles"),
    ],
)
def test_invalid_sensors_are_refused_with_their_location(sensor: str, message: str) -> None:
    with pytest.raises(DescriptionError, match=message) as caught:
        load_robot(sensor)
    assert "1" in str(caught.value.location)


@given(st.floats(-90, 90), st.floats(-180, 180), st.floats(-500, 9000), st.floats(0, 360))
@settings(max_examples=30)
def test_spherical_coordinates_are_read_in_degrees(
    latitude: float, longitude: float, height: float, heading: float
) -> None:
    world = load_world(
        '<sdf version="1.11"><world name="w"><spherical_coordinates><surface_model>EARTH_WGS84</surface_model>'
        f"<latitude_deg>{latitude}</latitude_deg><longitude_deg>{longitude}</longitude_deg>"
        f"<elevation>{height}</elevation><heading_deg>{heading}</heading_deg></spherical_coordinates>"
        "<magnetic_field>1e-5 2e-5 -3e-5</magnetic_field></world></sdf>"
    )
    assert math.degrees(world.origin.latitude) == pytest.approx(latitude, abs=1e-9)
    assert math.degrees(world.origin.longitude) == pytest.approx(longitude, abs=1e-9)
    assert math.degrees(world.origin.heading) == pytest.approx(heading, abs=1e-9)
    assert world.origin.elevation == height
    assert world.magnetic_field == (1e-5, 2e-5, -3e-5)


def test_polished_metal_is_a_mirror() -> None:
    def is_mirror(metalness: float, roughness: float):
        pbr = f"<pbr><metal><metalness>{metalness}</metalness><roughness>{roughness}</roughness></metal></pbr>"
        shape = "<geometry><sphere><radius>1</radius></sphere></geometry>"
        text = f"<visual name='v'>{shape}<material>{pbr}</material></visual>"
        return load_robot(text).links[0].visuals[0].material.mirror

    assert is_mirror(1.0, 0.05)
    assert not is_mirror(1.0, 0.5)
    assert not is_mirror(0.2, 0.05)


def test_lidar_3d_preset_covers_one_rotation() -> None:
    spec = PRESETS["lidar_3d_16"].spec
    assert isinstance(spec, LidarSpec)
    step = (spec.angle_max - spec.angle_min) / (spec.samples - 1)
    assert step * spec.samples == pytest.approx(math.tau)
