"""Conversion of messages to and from poses and arrays.

Quaternions are w, x, y, z inside and x, y, z, w in messages: they are reordered here, and only here.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.messages.convert.action_goals import uuid_from_msg, uuid_of_text, uuid_to_msg
    from roboyard.messages.convert.clouds import cloud_points, cloud_to_arrays, cloud_to_msg, pack_rgb, unpack_rgb
    from roboyard.messages.convert.grids import grid_origin, grid_to_array, grid_to_msg
    from roboyard.messages.convert.images import (
        camera_info_to_msg,
        camera_matrix,
        camera_model_from_msg,
        color_to_array,
        depth_to_array,
        image_to_array,
        image_to_msg,
        jpeg_to_msg,
    )
    from roboyard.messages.convert.markers import MarkerStyle, points_marker
    from roboyard.messages.convert.people import person_capsules_from_msg
    from roboyard.messages.convert.poses import (
        covariance_to_array,
        covariance_to_msg,
        is_finite_twist,
        make_header,
        odometry_to_arrays,
        odometry_to_msg,
        path_to_array,
        path_to_msg,
        path_to_poses,
        planar_covariance_to_msg,
        point_to_msg,
        pose_stamped_to_msg,
        pose_to_msg,
        pose_to_se2,
        pose_to_se3,
        quaternion_to_array,
        quaternion_to_msg,
        transform_to_msg,
        transform_to_se3,
        transforms_to_msg,
        twist_to_arrays,
        twist_to_msg,
        vector_to_array,
        vector_to_msg,
    )
    from roboyard.messages.convert.scans import ScanGeometry, scan_angles, scan_points, scan_to_msg, scan_valid

__all__ = [
    "MarkerStyle",
    "ScanGeometry",
    "camera_info_to_msg",
    "camera_matrix",
    "camera_model_from_msg",
    "cloud_points",
    "cloud_to_arrays",
    "cloud_to_msg",
    "color_to_array",
    "covariance_to_array",
    "covariance_to_msg",
    "depth_to_array",
    "grid_origin",
    "grid_to_array",
    "grid_to_msg",
    "image_to_array",
    "image_to_msg",
    "is_finite_twist",
    "jpeg_to_msg",
    "make_header",
    "odometry_to_arrays",
    "odometry_to_msg",
    "pack_rgb",
    "path_to_array",
    "path_to_msg",
    "path_to_poses",
    "person_capsules_from_msg",
    "planar_covariance_to_msg",
    "point_to_msg",
    "points_marker",
    "pose_stamped_to_msg",
    "pose_to_msg",
    "pose_to_se2",
    "pose_to_se3",
    "quaternion_to_array",
    "quaternion_to_msg",
    "scan_angles",
    "scan_points",
    "scan_to_msg",
    "scan_valid",
    "transform_to_msg",
    "transform_to_se3",
    "transforms_to_msg",
    "twist_to_arrays",
    "twist_to_msg",
    "unpack_rgb",
    "uuid_from_msg",
    "uuid_of_text",
    "uuid_to_msg",
    "vector_to_array",
    "vector_to_msg",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "action_goals": ("uuid_from_msg", "uuid_of_text", "uuid_to_msg"),
    "clouds": ("cloud_points", "cloud_to_arrays", "cloud_to_msg", "pack_rgb", "unpack_rgb"),
    "grids": ("grid_origin", "grid_to_array", "grid_to_msg"),
    "images": ("camera_info_to_msg", "camera_matrix", "camera_model_from_msg", "color_to_array", "depth_to_array",
        "image_to_array", "image_to_msg", "jpeg_to_msg"),
    "markers": ("MarkerStyle", "points_marker"),
    "people": ("person_capsules_from_msg",),
    "poses": ("covariance_to_array", "covariance_to_msg", "is_finite_twist", "make_header", "odometry_to_arrays",
        "odometry_to_msg", "path_to_array", "path_to_msg", "path_to_poses", "planar_covariance_to_msg",
        "point_to_msg", "pose_stamped_to_msg", "pose_to_msg", "pose_to_se2", "pose_to_se3", "quaternion_to_array",
        "quaternion_to_msg", "transform_to_msg", "transform_to_se3", "transforms_to_msg", "twist_to_arrays",
        "twist_to_msg", "vector_to_array", "vector_to_msg"),
    "scans": ("ScanGeometry", "scan_angles", "scan_points", "scan_to_msg", "scan_valid"),
})  # fmt: skip
