"""A two-wheeled cart whose plugin states other wheels than it has."""

WHEEL = """<link name="{name}"><collision><origin rpy="1.5707963 0 0"/>
      <geometry><cylinder radius="{radius}" length="0.02"/></geometry></collision>
    <inertial><mass value="0.5"/><inertia ixx="2e-3" iyy="2.5e-3" izz="2e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="{name}_joint" type="continuous"><parent link="base"/><child link="{name}"/>
    <origin xyz="0.1 {y} {radius}"/><axis xyz="0 1 0"/><limit effort="5" velocity="30"/></joint>"""
CART = f"""<robot name="cart">
  <link name="base"><inertial><origin xyz="0.06 0 0.1"/><mass value="5"/>
      <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  {WHEEL.format(name="left", y=0.2, radius=0.1)}{WHEEL.format(name="right", y=-0.2, radius=0.098)}
  <link name="caster"><collision><geometry><sphere radius="0.03"/></geometry></collision>
    <inertial><mass value="0.2"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="caster_joint" type="fixed"><parent link="base"/><child link="caster"/>
    <origin xyz="-0.15 0 0.03"/></joint>
  <gazebo reference="caster"><mu1>0.001</mu1><mu2>0.001</mu2></gazebo>
  <gazebo><plugin name="diff" filename="libgazebo_ros_diff_drive.so"><left_joint>left_joint</left_joint>
    <right_joint>right_joint</right_joint><wheel_separation>0.43</wheel_separation><wheel_diameter>0.22</wheel_diameter>
    </plugin></gazebo>
</robot>"""
