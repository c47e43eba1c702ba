"""MJCF documents for tests, and a context in which MuJoCo writes no log."""

from collections.abc import Iterator
from contextlib import contextmanager

import mujoco


@contextmanager
def disable_mujoco_log() -> Iterator[None]:
    """Keep MuJoCo from writing to its log file and to the console."""
    before, disabled = mujoco.MjLogConfig.get(), mujoco.MjLogConfig.get()
    disabled.logto_console, disabled.logto_file = 0, 0
    disabled.set()
    try:
        yield
    finally:
        before.set()


CART = """<mujoco model="cart">
  <default>
    <default class="wheel">
      <geom type="cylinder" size="0.1 0.025" euler="90 0 0" mass="0.5" friction="1"/>
      <joint type="hinge" axis="0 1 0" damping="0.001"/>
      <velocity kv="2" forcerange="-5 5" ctrlrange="-20 20"/>
    </default>
  </default>
  <worldbody>
    <body name="base_link" pos="0 0 0.1">
      <freejoint/>
      <geom name="body" type="box" size="0.2 0.12 0.04" mass="4" pos="0 0 0.03"/>
      <geom name="caster" type="sphere" size="0.03" pos="-0.17 0 -0.07" mass="0.1" friction="0.01"/>
      <site name="imu" pos="0 0 0.07"/>
      <replicate count="180" euler="0 0 2" sep="-"><site name="beam" pos="0 0 0.12" zaxis="1 0 0"/></replicate>
      <body name="left_wheel" pos="0.05 0.15 0" childclass="wheel"><joint name="left"/><geom/></body>
      <body name="right_wheel" pos="0.05 -0.15 0" childclass="wheel"><joint name="right"/><geom/></body>
    </body>
  </worldbody>
  <actuator>
    <velocity joint="left" class="wheel"/>
    <velocity joint="right" class="wheel"/>
  </actuator>
  <sensor>
    <gyro site="imu" noise="0.002"/><accelerometer site="imu"/><jointvel joint="left"/><jointvel joint="right"/>
    <rangefinder name="scan" site="beam" interval="0.1" cutoff="12"/>
  </sensor>
</mujoco>
"""

SMALL_WORLD = """<mujoco model="yard">
  <worldbody>
    <light directional="true" pos="0 0 5" dir="0 0 -1"/>
    <geom name="floor" type="plane" size="20 20 1"/>
    <geom name="wall" type="box" size="0.1 3 0.5" pos="6 0 0.5"/>
    <body name="crate" pos="3 2 0.3"><freejoint/><geom type="box" size="0.3 0.3 0.3" mass="5"/></body>
  </worldbody>
</mujoco>
"""

ALL_ELEMENTS = """<mujoco model="rich">
  <compiler angle="degree" eulerseq="ZYX"/>
  <option gravity="0 0 -9.81" timestep="0.001"/>
  <default>
    <geom density="500"/>
    <default class="thin"><geom type="capsule" size="0.02"/><joint damping="0.5" armature="0.01"/></default>
  </default>
  <asset>
    <texture name="grid" type="2d" builtin="checker" width="64" height="64" rgb1="1 0 0" rgb2="0 0 1"/>
    <material name="red" rgba="0.9 0.2 0.1 1" emission="0.5" texture="grid"/>
    <mesh name="wedge" vertex="0 0 0 1 0 0 0 1 0 0 0 1" scale="0.1 0.1 0.1"/>
    <hfield name="hills" nrow="3" ncol="3" size="1 1 0.2 0.1"/>
  </asset>
  <worldbody>
    <light name="sun" directional="true" pos="0 0 5" dir="0 0 -1"/>
    <geom name="floor" type="plane" size="0 0 1" material="red"/>
    <geom type="hfield" hfield="hills" pos="3 3 0"/>
    <body name="base" pos="0 0 0.5" euler="10 20 30">
      <freejoint/>
      <geom type="box" size="0.2 0.1 0.05" material="red"/>
      <geom type="mesh" mesh="wedge" pos="0 0 0.1"/>
      <frame pos="0.2 0 0" euler="0 0 45">
        <body name="arm" childclass="thin">
          <joint name="shoulder" axis="0 0 1" range="-90 90" pos="0.01 0 0"/>
          <joint name="lift" axis="0 1 0" range="-45 45"/>
          <geom fromto="0 0 0 0.3 0 0"/>
          <body name="hand" pos="0.3 0 0">
            <joint name="wrist" type="ball"/>
            <geom type="ellipsoid" size="0.03 0.05 0.02" condim="6"/>
            <site name="palm" pos="0 0 0.01"/>
            <body name="finger" pos="0.05 0 0">
              <joint name="slide" type="slide" axis="1 0 0" range="0 0.05" ref="0.01" stiffness="3" springref="0.02"/>
              <geom size="0.01" type="sphere"/>
            </body>
            <body name="finger2" pos="-0.05 0 0">
              <joint name="slide2" type="slide" axis="1 0 0"/><geom size="0.01" type="sphere"/>
            </body>
          </body>
        </body>
      </frame>
      <replicate count="3" offset="0 0.1 0">
        <body name="leg" pos="-0.1 0 0"><joint name="hip" axis="0 1 0"/><geom type="cylinder" size="0.02 0.05"/></body>
      </replicate>
    </body>
    <body name="post" pos="2 0 0"><geom type="cylinder" size="0.1 0.5"/></body>
  </worldbody>
  <contact><exclude body1="base" body2="hand"/></contact>
  <equality>
    <joint joint1="slide2" joint2="slide" polycoef="0.001 -1 0 0 0"/>
    <connect name="loop" body1="finger" body2="leg0" anchor="0 0 0"/>
  </equality>
  <actuator>
    <motor name="m" joint="shoulder" gear="10" ctrlrange="-1 1"/>
    <position name="p" joint="lift" kp="20" kv="2" ctrlrange="-30 30" forcerange="-5 5"/>
    <velocity joint="hip0" kv="3"/>
    <general joint="hip1" gainprm="7" biastype="affine" biasprm="0 -7 -1"/>
    <position joint="slide" kp="3"/>
  </actuator>
  <sensor>
    <gyro site="palm"/><accelerometer site="palm"/><framequat objtype="site" objname="palm"/>
    <touch name="feel" site="palm"/><jointpos joint="lift"/><rangefinder name="far" site="palm"/>
    <framepos name="where" objtype="body" objname="base"/>
  </sensor>
  <keyframe><key name="home" qpos="0 0 0.7 1 0 0 0  0.3 0.2 1 0 0 0 0.02 -0.01 0 0 0"/></keyframe>
</mujoco>
"""
