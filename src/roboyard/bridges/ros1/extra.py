"""Definitions of ROS 1 Noetic that rosbags does not bring and that differ from ROS 2's of the same name."""

from __future__ import annotations

from typing import Final

MESSAGES: Final = {
    "tf2_msgs/msg/TFMessage": "geometry_msgs/TransformStamped[] transforms\n",
    "tf/msg/tfMessage": "geometry_msgs/TransformStamped[] transforms\n",
    "control_msgs/msg/JointTolerance": "string name\nfloat64 position\nfloat64 velocity\nfloat64 acceleration\n",
    "control_msgs/msg/GripperCommand": "float64 position\nfloat64 max_effort\n",
}
"""By full name."""

ACTIONS: Final = {
    "control_msgs/action/FollowJointTrajectory": {
        "Goal": "trajectory_msgs/JointTrajectory trajectory\ncontrol_msgs/JointTolerance[] path_tolerance\n"
        "control_msgs/JointTolerance[] goal_tolerance\nduration goal_time_tolerance\n",
        "Result": "int32 SUCCESSFUL=0\nint32 INVALID_GOAL=-1\nint32 INVALID_JOINTS=-2\nint32 OLD_HEADER_TIMESTAMP=-3\n"
        "int32 PATH_TOLERANCE_VIOLATED=-4\nint32 GOAL_TOLERANCE_VIOLATED=-5\nint32 error_code\nstring error_string\n",
        "Feedback": "std_msgs/Header header\nstring[] joint_names\ntrajectory_msgs/JointTrajectoryPoint desired\n"
        "trajectory_msgs/JointTrajectoryPoint actual\ntrajectory_msgs/JointTrajectoryPoint error\n",
    },
}
"""Parts of actions by full name."""
