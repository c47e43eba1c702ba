"""Cameras in descriptions: every way of writing them, back and forth, and what cannot be."""

import math

import numpy as np
import pytest

from roboyard.description import load_model
from roboyard.description.sensors import CameraSpec, Sensor, camera_frames, camera_topics
from roboyard.description.write import write_sdf, write_urdf
from roboyard.errors import DescriptionError
from roboyard.kinematics.forward_kinematics import fixed_transforms


def sdf(kind: str, camera: str, more: str = "") -> str:
    return f"""<sdf version="1.11"><model name="m"><link name="base"><inertial><mass>1</mass></inertial>
      <sensor name="eye" type="{kind}"><pose>0.1 0 0.2 0 0.1 0</pose><update_rate>15</update_rate>
      <topic>head</topic>{more}<camera>{camera}</camera></sensor></link></model></sdf>"""


def urdf(sensor: str) -> str:
    return f"""<robot name="m"><link name="base"/><link name="camera_link"/>
      <joint name="j" type="fixed"><parent link="base"/><child link="camera_link"/><origin xyz="0.1 0 0.3"/></joint>
      <gazebo reference="camera_link">{sensor}</gazebo></robot>"""


def camera(text: str) -> tuple[Sensor, CameraSpec]:
    sensor = load_model(text).sensors[0]
    assert isinstance(sensor.spec, CameraSpec)
    return sensor, sensor.spec


PINHOLE = """<horizontal_fov>1.0</horizontal_fov><image><width>320</width><height>240</height><format>R8G8B8</format>
  </image><clip><near>0.05</near><far>8</far></clip>"""


@pytest.mark.parametrize(
    ("written", "kind"),
    [("camera", "camera"), ("depth", "depth_camera"), ("depth_camera", "depth_camera"), ("rgbd", "rgbd_camera"),
     ("rgbd_camera", "rgbd_camera"), ("wideanglecamera", "camera"), ("infrared", "camera")],
)  # fmt: skip
def test_every_camera_type_name_is_read(written, kind):
    sensor, spec = camera(sdf(written, PINHOLE))
    assert sensor.kind == kind
    lens = spec.color or spec.depth
    assert (lens.width, lens.height, spec.near, spec.far) == (320, 240, 0.05, 8.0)
    assert lens.horizontal_fov == pytest.approx(1.0)
    assert (lens.cx, lens.cy) == (159.5, 119.5)
    assert sensor.latency == pytest.approx(1 / 30)


def test_camera_lens_noise_format_frames_and_topics_are_read():
    sensor, spec = camera(sdf("rgbd_camera", PINHOLE + """
      <distortion><k1>-0.1</k1><k2>0.02</k2><p1>0.001</p1></distortion>
      <lens><intrinsics><fx>300</fx><fy>301</fy><cx>161</cx><cy>119</cy></intrinsics></lens>
      <noise><type>gaussian</type><stddev>0.007</stddev></noise><camera_info_topic>head/info</camera_info_topic>
      <optical_frame_id>eye_optical</optical_frame_id><depth_camera><clip><near>0.4</near><far>5</far></clip>
      </depth_camera><depth><pose>0 -0.025 0 0 0 0</pose></depth><infrared>true</infrared>
      <exposure><gain>1.5</gain><vignetting>0.3</vignetting></exposure>
      <depth_noise><model>nguyen</model><baseline>0.075</baseline></depth_noise>"""))  # fmt: skip
    lens = spec.color
    assert (lens.fx, lens.fy, lens.cx, lens.cy) == (300, 301, 160.5, 118.5)
    assert lens.distortion == (-0.1, 0.02, 0.001, 0.0, 0.0)
    assert (spec.noise.stddev, spec.exposure.gain, spec.depth_noise.model) == (0.007, 1.5, "nguyen")
    assert (spec.depth_near, spec.depth_far) == (0.4, 5.0)
    # 25 mm to the right of the colour camera: along x of the optical frame
    assert np.allclose(spec.T_color_depth.translation, [0.025, 0, 0])
    topics = camera_topics(sensor, spec)
    assert topics["image"] == "head/image"
    assert topics["info"] == "head/info"
    assert topics["depth"] == "head/depth/image"
    assert topics["points"] == "head/points"
    assert topics["infrared"] == "head/ir/image"
    assert camera_frames(sensor, spec).color == "eye_optical"
    assert camera_frames(sensor, spec).depth == "eye_depth_optical_frame"


def test_optical_frames_look_along_z():
    model = load_model(sdf("camera", PINHOLE))
    frames = {child: T for T, parent, child in fixed_transforms(model)}
    T = frames["eye_optical_frame"].rotation_matrix()
    assert np.allclose(T[:, 2], [math.cos(0.1), 0, -math.sin(0.1)])  # its z is where the sensor looks
    assert np.allclose(T[:, 0], [0, -1, 0])


def test_image_topic_of_its_own_is_kept():
    text = sdf("camera", PINHOLE).replace("<topic>head</topic>", "<topic>head/image_raw</topic>")
    sensor, spec = camera(text)
    assert camera_topics(sensor, spec) == {"image": "head/image_raw", "info": "head/camera_info"}


def test_stereo_pairs_come_from_two_cameras_or_a_baseline():
    eyes = f"""<camera name="left">{PINHOLE}</camera>
      <camera name="right"><pose>0 -0.12 0 0 0 0</pose>{PINHOLE}</camera>"""
    text = sdf("multicamera", "").replace("<camera></camera>", eyes)
    sensor, spec = camera(text)
    assert (sensor.kind, spec.baseline) == ("stereo_camera", pytest.approx(0.12))
    _, same = camera(sdf("stereo_camera", PINHOLE + "<baseline>0.12</baseline>"))
    assert same.baseline == 0.12
    assert set(camera_topics(sensor, spec)) == {"image", "info", "right", "right_info", "disparity", "depth", "points"}
    with pytest.raises(DescriptionError, match="same place"):
        load_model(sdf("stereo_camera", PINHOLE))


def test_gazebo_plugins_give_topics_frames_and_distortion():
    sensor, spec = camera(urdf(f"""<sensor name="kinect" type="depth"><update_rate>20</update_rate>
      <camera>{PINHOLE}</camera><plugin name="p" filename="libgazebo_ros_openni_kinect.so">
      <cameraName>camera</cameraName><imageTopicName>/camera/rgb/image_raw</imageTopicName>
      <cameraInfoTopicName>/camera/rgb/camera_info</cameraInfoTopicName>
      <depthImageTopicName>/camera/depth/image_raw</depthImageTopicName>
      <depthImageCameraInfoTopicName>/camera/depth/camera_info</depthImageCameraInfoTopicName>
      <pointCloudTopicName>/camera/depth/points</pointCloudTopicName><frameName>camera_rgb_optical_frame</frameName>
      <pointCloudCutoff>0.4</pointCloudCutoff><pointCloudCutoffMax>5</pointCloudCutoffMax>
      <distortionK1>0.01</distortionK1></plugin></sensor>"""))  # fmt: skip
    assert sensor.kind == "rgbd_camera"
    topics = camera_topics(sensor, spec)
    assert topics["image"] == "camera/rgb/image_raw"
    assert topics["depth_info"] == "camera/depth/camera_info"
    assert topics["points"] == "camera/depth/points"
    assert topics["registered"] == "camera/depth_registered/image"
    assert camera_frames(sensor, spec).color == "camera_rgb_optical_frame"
    assert (spec.depth_near, spec.depth_far, spec.color.distortion[0]) == (0.4, 5.0, 0.01)


def test_ros2_camera_plugin_applies_its_remappings():
    sensor, spec = camera(urdf(f"""<sensor name="s" type="camera"><camera>{PINHOLE}</camera>
      <plugin name="p" filename="libgazebo_ros_camera.so"><ros><namespace>/front</namespace>
      <remapping>~/camera_info:=/front/info</remapping></ros><camera_name>cam</camera_name>
      <frame_name>camera_link</frame_name></plugin></sensor>"""))  # fmt: skip
    topics = camera_topics(sensor, spec)
    assert topics["info"] == "front/info"
    assert camera_frames(sensor, spec).color == "camera_optical_frame"


SPECS = [
    ("rgbd_camera", PINHOLE + "<depth><pose>0 -0.025 0 0 0.01 0</pose><horizontal_fov>1.1</horizontal_fov>"
     "<image><width>64</width><height>48</height></image></depth><infrared>true</infrared>"),
    ("camera", PINHOLE + "<exposure><auto>true</auto><full_well>900</full_well></exposure>"
     "<distortion><k1>-0.2</k1></distortion>"),
    ("depth_camera", PINHOLE + "<noise><type>gaussian</type><stddev>0.01</stddev></noise>"),
    ("infrared", PINHOLE),
    ("stereo_camera", PINHOLE + "<baseline>0.1</baseline><depth_noise><model>stereo</model></depth_noise>"),
    ("wideanglecamera", PINHOLE.replace("1.0<", "3.0<") + "<lens><type>equidistant</type></lens>"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), SPECS)
def test_written_cameras_are_read_back_unchanged(kind, text):
    model = load_model(sdf(kind, text))
    for again in (load_model(write_sdf(model).text), load_model(write_urdf(model).text)):
        one, other = model.sensors[0], again.sensors[0]
        assert (one.kind, one.update_rate, one.latency, one.topic) == (
            other.kind, other.update_rate, other.latency, other.topic,
        )  # fmt: skip
        first, second = one.spec, other.spec
        for lens, twin in ((first.color, second.color), (first.depth, second.depth)):
            assert (lens is None) == (twin is None)
            if lens is not None:
                assert lens.matrix == pytest.approx(twin.matrix)
                assert (lens.model, lens.distortion) == (twin.model, twin.distortion)
        assert first.T_color_depth.almost_equal(second.T_color_depth, 1e-9)
        for name in ("near", "far", "depth_near", "depth_far", "baseline", "noise", "exposure", "depth_noise",
                     "infrared", "is_grayscale", "topics"):  # fmt: skip
            assert getattr(first, name) == getattr(second, name), name


WRONG = [
    (PINHOLE.replace("1.0<", "0<"), "field of view"),
    (PINHOLE.replace("1.0<", "-1<"), "field of view"),
    (PINHOLE.replace("1.0<", "nan<"), "finite"),
    (PINHOLE.replace("320", "0"), "0 × 240 pixels"),
    (PINHOLE.replace("320", "1000000"), "1000000 × 240 pixels"),
    (PINHOLE.replace("<far>8", "<far>0.05"), "from 0.05 m to 0.05 m"),
    (PINHOLE.replace("<near>0.05", "<near>9"), "from 9 m to 8 m"),
    (PINHOLE.replace("<near>0.05", "<near>0"), "near"),
    (PINHOLE + "<depth_noise><model>magic</model></depth_noise>", "errs like 'magic'"),
    (PINHOLE + "<lens><intrinsics><fx>0</fx></intrinsics></lens>", "<fx>"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_invalid_cameras_are_refused_with_their_location(tmp_path, text, said):
    file = tmp_path / "m.sdf"
    file.write_text(sdf("rgbd_camera", text))
    with pytest.raises(DescriptionError, match=said) as error:
        load_model(file)
    assert "m.sdf:" in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PINHOLE.replace("1.0<", "3.183<"), "3.124 rad taken"),
        (PINHOLE + "<distortion><k1>-3</k1></distortion>", "folds the picture over"),
    ],
)
def test_cameras_only_gazebo_runs_are_kept_with_a_finding(text, said):
    model = load_model(sdf("camera", text))
    assert any(said in str(finding) for finding in model.warnings)
    lens = model.sensors[0].spec.color
    assert lens is not None
    rays = lens.pixel_rays()
    assert np.isfinite(rays[lens.height // 2, lens.width // 2]).all()
