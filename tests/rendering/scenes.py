"""Small worlds for render tests, as plain MJCF."""

import mujoco

BALL_OVER_PLANE = """
<mujoco>
  <worldbody>
    <light type="directional" dir="0 0 -1"/>
    <geom name="ground" type="plane" size="0 0 1" rgba="0.6 0.6 0.6 1"/>
    <geom name="ball" type="sphere" size="0.5" pos="2 0 0.5" rgba="0.9 0.1 0.1 1"/>
    <geom name="wall" type="box" size="0.1 1 1" pos="5 0 1" rgba="0.2 0.3 0.8 1"/>
  </worldbody>
</mujoco>"""

MOVING = """
<mujoco>
  <visual><headlight ambient="0.4 0.4 0.4" diffuse="0 0 0"/></visual>
  <worldbody>
    <light type="directional" dir="-0.3 0.2 -1"/>
    <geom name="ground" type="plane" size="0 0 1" rgba="0.6 0.6 0.55 1"/>
    <geom name="post" type="cylinder" size="0.2 0.5" pos="1.5 0.8 0.5" rgba="0.2 0.5 0.3 1"/>
    <geom name="egg" type="ellipsoid" size="0.3 0.2 0.25" pos="1.2 -0.8 0.25" rgba="0.8 0.6 0.2 1"/>
    <geom name="pill" type="capsule" size="0.1 0.2" pos="2.4 -0.4 0.3" euler="0 60 20" rgba="0.5 0.2 0.6 1"/>
    <geom name="hidden" type="box" size="1 1 1" group="3" rgba="1 0 0 1"/>
    <body name="cart" pos="0 0 0.2">
      <freejoint/>
      <geom name="chassis" type="box" size="0.3 0.2 0.1" rgba="0.9 0.5 0.1 1"/>
      <body name="arm" pos="0.2 0 0.2">
        <joint name="turn" axis="0 0 1"/>
        <geom name="bar" type="box" size="0.25 0.04 0.04" pos="0.2 0 0" rgba="0.1 0.1 0.6 1"/>
      </body>
    </body>
  </worldbody>
</mujoco>"""


def compile_scene(text: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """The model of an MJCF document, and its data after one forward pass."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data
