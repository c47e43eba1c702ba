"""Configuration of the skills: the cell, its work areas, the gripper and the attempts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from roboyard.config import parameter
from roboyard.errors import ConfigError


@dataclass(frozen=True)
class SkillConfig:
    """Positions are in the frame of the robot's root link.

    Heights are those of Westfälische Hochschule's thesis (2017): tip 25 mm above a symbol before a grasp and 25 mm
    below it in the grasp; 20 mm above a place's symbol when it lets go.
    """

    # objects
    object_radius: float = parameter(0.010, unit="m", low=0.001, high=0.1, doc="Radius of the cylinders.")
    object_height: float = parameter(
        0.045, unit="m", low=0.01, high=0.5, doc="Height of the disc on top above the floor."
    )
    # views
    work_areas: tuple[str, ...] = parameter(("left", "right"), doc="Names of the work areas, in the order of the loop.")
    view_poses: tuple[str, ...] = parameter(("view", "view"), doc="Named view pose of the arm for each work area.")
    view_azimuths: tuple[float, ...] = parameter(
        (), unit="rad", doc="Position of the first joint for each work area; empty: that of the named pose."
    )
    is_mobile: bool = parameter(False, doc="Drive between work areas, with the arm at rest.")
    approach_distance: float = parameter(
        0.25,
        unit="m",
        low=0.0,
        high=5.0,
        doc="Distance before a work area from which the robot approaches it straight.",
    )
    bay_view_pose: str = parameter("load_check", doc="Named pose from which the bays are seen.")
    rest_pose: str = parameter("rest", doc="Named pose at the end.")
    settle_time: float = parameter(0.1, unit="s", low=0.0, high=10.0, doc="Time between a motion and a detection.")
    quick_images: int = parameter(4, low=1, high=50, doc="Number of images of a first detection.")
    num_images: int = parameter(5, low=1, high=50, doc="Number of images before a grasp and at a place.")
    max_empty_images: int = parameter(
        10, low=1, high=100, doc="Number of images without a detection after which an alignment is given up."
    )
    align_tolerance: float = parameter(
        0.003, unit="rad", low=1e-5, high=1.0, doc="Tolerance of the alignment to the arm's plane."
    )
    max_align_rotations: int = parameter(6, low=1, high=100, doc="Maximum number of rotations of the first joint.")
    same_object_radius: float = parameter(
        0.015, unit="m", low=0.001, high=0.1, doc="Distance within which detections are the same object."
    )
    # work areas with a conveyor
    conveyor_areas: tuple[str, ...] = parameter((), doc="Names of the work areas with a conveyor.")
    conveyors: tuple[float, ...] = parameter(
        (), unit="m", doc="Start x, y, end x, y and width of each of these conveyors."
    )
    conveyor_images: int = parameter(20, low=3, high=200, doc="Number of images of a detection of moving targets.")
    conveyor_settle_time: float = parameter(
        0.3, unit="s", low=0.0, high=10.0, doc="Time between a motion and such a detection."
    )
    stationary_speed: float = parameter(
        0.002, unit="m/s", low=1e-5, high=1.0, doc="Speed below which an object is stationary."
    )
    speed_change_tolerance: float = parameter(
        0.003, unit="m/s", low=1e-5, high=1.0, doc="Change of a conveyor's speed from which a motion is given up."
    )
    intercept_lead_time: float = parameter(
        3.0, unit="s", low=0.1, high=100.0, doc="Time until the tool is above the path of a moving target."
    )
    sync_time: float = parameter(0.8, unit="s", low=0.1, high=10.0, doc="Time until the tool moves with the target.")
    descend_time: float = parameter(
        1.1, unit="s", low=0.1, high=10.0, doc="Duration of the descent to the moving target."
    )
    grip_time: float = parameter(
        0.7, unit="s", low=0.05, high=10.0, doc="Time until the fingers hold or release the object."
    )
    ascend_time: float = parameter(1.1, unit="s", low=0.1, high=10.0, doc="Duration of the ascent.")
    leave_time: float = parameter(0.6, unit="s", low=0.1, high=10.0, doc="Time until the tool is at rest again.")
    # gripper
    open_width: float = parameter(0.024, unit="m", low=0.001, high=0.5, doc="Distance between the open fingers.")
    closed_width: float = parameter(
        0.001, unit="m", low=0.0, high=0.5, doc="Distance between the fingers that closing fingers are commanded."
    )
    grip_force: float = parameter(0.0, unit="N", low=0.0, high=1e4, doc="Force of each finger; 0: the maximum.")
    finger_size: tuple[float, ...] = parameter((0.012, 0.014), unit="m", doc="Thickness and width of a finger.")
    finger_clearance: float = parameter(
        0.006, unit="m", low=0.0, high=0.1, doc="Clearance around fingers and object; more than planning requires."
    )
    yaw_samples: int = parameter(12, low=1, high=180, doc="Number of gripper yaws that are tried, over half a turn.")
    grasp_depth: float = parameter(
        0.025, unit="m", low=0.0, high=0.5, doc="Depth of the fingertips below the disc in the grasp."
    )
    max_payload: float = parameter(
        0.75,
        unit="kg",
        low=0.0,
        high=1e4,
        doc="Mass from which an object is put down, estimated from the joint efforts.",
    )
    approach_height: float = parameter(
        0.050, unit="m", low=0.0, high=0.5, doc="Height of the vertical descent and ascent."
    )
    release_height: float = parameter(
        0.001, unit="m", low=0.0, high=0.05, doc="Height of the object above the floor at the release."
    )
    linear_speed_scaling: float = parameter(0.5, low=0.01, high=1.0, doc="Velocity scaling of straight motions.")
    guarded_speed_scaling: float = parameter(0.15, low=0.01, high=1.0, doc="Velocity scaling of the guarded descent.")
    speed_scaling: float = parameter(1.0, low=0.01, high=1.0, doc="Velocity scaling of other motions.")
    # places
    occupied_radius: float = parameter(
        0.03,
        unit="m",
        low=0.0,
        high=0.5,
        doc="Distance from a place's center within which an object occupies it.",
    )
    require_place_within: float = parameter(
        0.0, unit="m", low=0.0, high=0.1, doc="Maximum distance of picked objects from a place; 0: all objects."
    )
    reach_range: tuple[float, ...] = parameter(
        (0.10, 0.27), unit="m", doc="Minimum and maximum horizontal distance from the axis of the first joint."
    )
    bay_frames: tuple[str, ...] = parameter(
        (), doc="Links whose frames are on the floor of each bay, at the disc of an empty bay."
    )
    bay_window: float = parameter(
        0.02, unit="m", low=0.001, high=0.2, doc="Distance in x and y within which discs belong to a bay."
    )
    # attempts and timeouts
    max_attempts: int = parameter(
        3, low=1, high=100, doc="Maximum number of attempts at a grasp, an inspection of the bays, a place."
    )
    wait_timeout: float = parameter(
        10.0, unit="s", low=0.0, high=1e4, doc="Timeout of the loop for a free place, or for the camera."
    )
    idle_time: float = parameter(
        20.0, unit="s", low=0.1, high=1e5, doc="Time for which the loop rests when no object can be moved."
    )
    pick_area: str = parameter("", doc="Work area from which the loop picks; empty: all.")
    place_area: str = parameter("", doc="Work area on which the loop places; empty: all.")

    def __post_init__(self) -> None:
        n_areas = len(self.work_areas)
        if not n_areas or len(self.view_poses) != n_areas or len(self.view_azimuths) not in (0, n_areas):
            raise ConfigError(
                f"{n_areas} work areas, {len(self.view_poses)} view poses, {len(self.view_azimuths)} view azimuths",
                location="skills",
                valid="a view pose for each work area, and a view azimuth for each or none",
            )
        for name in (self.pick_area, self.place_area):
            if name and name not in self.work_areas:
                raise ConfigError(f"no work area {name!r}", location="skills", valid=", ".join(self.work_areas))
        for name in self.conveyor_areas:
            if name not in self.work_areas:
                raise ConfigError(
                    f"no work area {name!r}", location="skills.conveyor_areas", valid=", ".join(self.work_areas)
                )
        if len(self.conveyors) != 5 * len(self.conveyor_areas):
            raise ConfigError(
                f"{len(self.conveyors)} numbers for {len(self.conveyor_areas)} conveyors", location="skills.conveyors",
                valid="x, y of start and end, and width, of each of 'conveyor_areas'",
            )  # fmt: skip
        for k, name in enumerate(self.conveyor_areas):
            x, y, end_x, end_y, width = self.conveyors[5 * k : 5 * k + 5]
            if not (math.isfinite(x + y + end_x + end_y + width) and math.hypot(end_x - x, end_y - y) > width > 0.0):
                raise ConfigError(
                    f"the conveyor of {name} from {x:g}, {y:g} to {end_x:g}, {end_y:g}, {width:g} wide",
                    location="skills.conveyors",
                    valid="finite numbers, longer than wide",
                )
        for key, size in (("finger_size", 2), ("reach_range", 2)):
            if len(getattr(self, key)) != size:
                raise ConfigError(f"{key} of {len(getattr(self, key))} numbers", location="skills", valid=f"{size}")
