"""Cameras are read from SDF, URDF and Gazebo plugins, survive writing, and are refused when they are invalid."""

import math

import numpy as np
import pytest

from roboyard.description import load_model
from roboyard.description.sensors import CameraSpec, Sensor, camera_frames, camera_topics
from roboyard.description.write import write_sdf, write_urdf
from roboyard.errors import DescriptionError
from roboyard.kinematics.forward_kinematics import fixed_transforms


def write_camera_sdf(kind: str, camera: str, sensor_elements: str = "") -> str:
    return f"""<sdf version="1.11"><model name="m"><link name="base"><inertial><mass>1</mass></inertial>
      <sensor name="eye" type="{kind}"><pose>0.1 0 0.2 0 0.1 0</pose><update_rate>15</update_rate>
      <topic>head</topic>{sensor_elements}<camera>{camera}</camera></sensor></link></model></sdf>"""


def write_sensor_urdf(sensor: str) -> str:
    return f"""<robot name="m"><link name="base"/><link name="camera_link"/>
      <joint name="j" type="fixed"><parent link="base"/><child link="camera_link"/><origin xyz="0.1 0 0.3"/></joint>
      <gazebo reference="camera_link">{sensor}</gazebo></robot>"""


def load_camera(text: str) -> tuple[Sensor, CameraSpec]:
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
    sensor, spec = load_camera(write_camera_sdf(written, PINHOLE))
    assert sensor.kind == kind
    camera_model = spec.color or spec.depth
    assert (camera_model.width, camera_model.height, spec.near, spec.far) == (320, 240, 0.05, 8.0)
    assert camera_model.horizontal_fov == pytest.approx(1.0)
    assert (camera_model.cx, camera_model.cy) == (159.5, 119.5)
    assert sensor.latency == pytest.approx(1 / 30)


def test_camera_intrinsics_noise_frames_and_topics_are_read():
    sensor, spec = load_camera(write_camera_sdf("rgbd_camera", PINHOLE + """
      <distortion><k1>-0.1</k1><k2>0.02</k2><p1>0.001</p1></distortion>
      <lens><intrinsics><fx>300</fx><fy>301</fy><cx>161</cx><cy>119</cy></intrinsics></lens>
      <noise><type>gaussian</type><stddev>0.007</stddev></noise><camera_info_topic>head/info</camera_info_topic>
      <optical_frame_id>eye_optical</optical_frame_id><depth_camera><clip><near>0.4</near><far>5</far></clip>
      </depth_camera><depth><pose>0 -0.025 0 0 0 0</pose></depth><infrared>true</infrared>
      <exposure><gain>1.5</gain><vignetting>0.3</vignetting></exposure>
      <depth_noise><model>nguyen</model><baseline>0.075</baseline></depth_noise>"""))  # fmt: skip
    color = spec.color
    assert (color.fx, color.fy, color.cx, color.cy) == (300, 301, 160.5, 118.5)
    assert color.distortion == (-0.1, 0.02, 0.001, 0.0, 0.0)
    assert (spec.noise.stddev, spec.exposure.gain, spec.depth_noise.model) == (0.007, 1.5, "nguyen")
    assert (spec.depth_near, spec.depth_far) == (0.4, 5.0)
    # The depth camera is 25 mm to the right of the color camera, along x of the optical frame.
    assert np.allclose(spec.T_color_depth.translation, [0.025, 0, 0])
    topics = camera_topics(sensor, spec)
    assert topics["image"] == "head/image"
    assert topics["info"] == "head/info"
    assert topics["depth"] == "head/depth/image"
    assert topics["points"] == "head/points"
    assert topics["infrared"] == "head/ir/image"
    assert camera_frames(sensor, spec).color == "eye_optical"
    assert camera_frames(sensor, spec).depth == "eye_depth_optical_frame"


def test_optical_frame_has_its_z_axis_along_the_view_direction():
    model = load_model(write_camera_sdf("camera", PINHOLE))
    frames = {child: T for T, parent, child in fixed_transforms(model)}
    T = frames["eye_optical_frame"].rotation_matrix()
    assert np.allclose(T[:, 2], [math.cos(0.1), 0, -math.sin(0.1)])  # z is the view direction of the sensor
    assert np.allclose(T[:, 0], [0, -1, 0])


def test_explicit_image_topic_is_kept():
    text = write_camera_sdf("camera", PINHOLE).replace("<topic>head</topic>", "<topic>head/image_raw</topic>")
    sensor, spec = load_camera(text)
    assert camera_topics(sensor, spec) == {"image": "head/image_raw", "info": "head/camera_info"}


def test_stereo_camera_is_read_from_two_cameras_or_a_baseline():
    cameras = f"""<camera name="left">{PINHOLE}</camera>
      <camera name="right"><pose>0 -0.12 0 0 0 0</pose>{PINHOLE}</camera>"""
    text = write_camera_sdf("multicamera", "").replace("<camera></camera>", cameras)
    sensor, spec = load_camera(text)
    assert (sensor.kind, spec.baseline) == ("stereo_camera", pytest.approx(0.12))
    _, baseline_spec = load_camera(write_camera_sdf("stereo_camera", PINHOLE + "<baseline>0.12</baseline>"))
    assert baseline_spec.baseline == 0.12
    assert set(camera_topics(sensor, spec)) == {"image", "info", "right", "right_info", "disparity", "depth", "points"}
    with pytest.raises(DescriptionError, match="same position"):
        load_model(write_camera_sdf("stereo_camera", PINHOLE))


def test_gazebo_camera_plugin_sets_topics_frames_and_distortion():
    sensor, spec = load_camera(write_sensor_urdf(f"""<sensor name="kinect" type="depth"><update_rate>20</update_rate>
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
    sensor, spec = load_camera(write_sensor_urdf(f"""<sensor name="s" type="camera"><camera>{PINHOLE}</camera>
      <plugin name="p" filename="libgazebo_ros_camera.so"><ros><namespace>/front</namespace>
      <remapping>~/camera_info:=/front/info</remapping></ros><camera_name>cam</camera_name>
      <frame_name>camera_link</frame_name></plugin></sensor>"""))  # fmt: skip
    topics = camera_topics(sensor, spec)
    assert topics["info"] == "front/info"
    assert camera_frames(sensor, spec).color == "camera_optical_frame"


CAMERA_ELEMENTS = [
    ("rgbd_camera", PINHOLE + "<depth><pose>0 -0.025 0 0 0.01 0</pose><horizontal_fov>1.1</horizontal_fov>"
     "<image><width>64</width><height>48</height></image></depth><infrared>true</infrared>"),
    ("camera", PINHOLE + "<exposure><auto>true</auto><full_well>900</full_well></exposure>"
     "<distortion><k1>-0.2</k1></distortion>"),
    ("depth_camera", PINHOLE + "<noise><type>gaussian</type><stddev>0.01</stddev></noise>"),
    ("infrared", PINHOLE),
    ("stereo_camera", PINHOLE + "<baseline>0.1</baseline><depth_noise><model>stereo</model></depth_noise>"),
    ("wideanglecamera", PINHOLE.replace("1.0<", "3.0<") + "<lens><type>equidistant</type></lens>"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), CAMERA_ELEMENTS)
def test_written_cameras_are_read_back_unchanged(kind, text):
    model = load_model(write_camera_sdf(kind, text))
    for read_back in (load_model(write_sdf(model).text), load_model(write_urdf(model).text)):
        original, restored = model.sensors[0], read_back.sensors[0]
        assert (original.kind, original.update_rate, original.latency, original.topic) == (
            restored.kind, restored.update_rate, restored.latency, restored.topic,
        )  # fmt: skip
        original_spec, restored_spec = original.spec, restored.spec
        for camera_model, restored_model in (
            (original_spec.color, restored_spec.color),
            (original_spec.depth, restored_spec.depth),
        ):
            assert (camera_model is None) == (restored_model is None)
            if camera_model is not None:
                assert camera_model.matrix == pytest.approx(restored_model.matrix)
                assert (camera_model.model, camera_model.distortion) == (
                    restored_model.model,
                    restored_model.distortion,
                )
        assert original_spec.T_color_depth.almost_equal(restored_spec.T_color_depth, 1e-9)
        for name in ("near", "far", "depth_near", "depth_far", "baseline", "noise", "exposure", "depth_noise",
                     "infrared", "is_grayscale", "topics"):  # fmt: skip
            assert getattr(original_spec, name) == getattr(restored_spec, name), name


INVALID_CAMERAS = [
    (PINHOLE.replace("1.0<", "0<"), "field of view"),
    (PINHOLE.replace("1.0<", "-1<"), "field of view"),
    (PINHOLE.replace("1.0<", "nan<"), "finite"),
    (PINHOLE.replace("320", "0"), "0 × 240 pixels"),
    (PINHOLE.replace("320", "1000000"), "1000000 × 240 pixels"),
    (PINHOLE.replace("<far>8", "<far>0.05"), "far clip distance 0.05 m is not above near clip distance 0.05 m"),
    (PINHOLE.replace("<near>0.05", "<near>9"), "far clip distance 8 m is not above near clip distance 9 m"),
    (PINHOLE.replace("<near>0.05", "<near>0"), "near"),
    (PINHOLE + "<depth_noise><model>magic</model></depth_noise>", "unknown depth noise model 'magic'"),
    (PINHOLE + "<lens><intrinsics><fx>0</fx></intrinsics></lens>", "<fx>"),
]


@pytest.mark.parametrize(("text", "message"), INVALID_CAMERAS)
def test_invalid_cameras_are_refused_with_their_location(tmp_path, text, message):
    file = tmp_path / "m.sdf"
    file.write_text(write_camera_sdf("rgbd_camera", text))
    with pytest.raises(DescriptionError, match=message) as error:
        load_model(file)
    assert "m.sdf:" in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PINHOLE.replace("1.0<", "3.183<"), "3.124 rad is used"),
        (PINHOLE + "<distortion><k1>-3</k1></distortion>", "is not invertible beyond pixel"),
    ],
)
def test_camera_with_extreme_lens_is_kept_with_a_warning(text, message):
    model = load_model(write_camera_sdf("camera", text))
    assert any(message in str(warning) for warning in model.warnings)
    camera_model = model.sensors[0].spec.color
    assert camera_model is not None
    rays = camera_model.pixel_rays()
    assert np.isfinite(rays[camera_model.height // 2, camera_model.width // 2]).all()
