"""The thesis's constants: its own numbers, in degrees of its scale and millimetres."""

from __future__ import annotations

from dataclasses import dataclass

from roboyard.config import parameter
from roboyard.errors import ConfigError
from roboyard.vision.discs.disc_detector import DiscConfig, Mode, Polarity
from roboyard.vision.discs.reference_detectors import ThesisCamera

Pose = tuple[float, float, float, float]
"""Joints 2 to 5 [degrees]."""


@dataclass(frozen=True)
class ThesisConfig:
    """Defaults are as the thesis lists them, for its arm, its camera's mount and its bays.

    A laboratory with another mount measures `focal` to `bay_pose` anew; the rest is the method.
    """

    # the camera, see ThesisCamera
    focal: float = parameter(
        530.0, unit="px", low=1.0, high=1e5, doc="Focal length that turns pixels into millimeters."
    )
    zero: tuple[float, float, float] = parameter(
        (-12.0, 95.0, 564.0), doc="Position x, y of the camera and its height [mm]."
    )
    depth_map: tuple[float, float, float, float] = parameter(
        (0.1, -13.0, 0.1, -6.0), doc="Coefficients a, b, c, d of a depth pixel u + a u + b, v + c v + d."
    )
    # poses
    bearings: tuple[float, ...] = parameter((-45.0, -45.0), doc="Position of joint 1 to look at each field [degrees].")
    upright: Pose = parameter(
        (3.0, 0.0, 0.0, 5.0), doc="Positions of joints 2 to 5 to look, and with something in the hand [degrees]."
    )
    load_check: float = parameter(136.5, doc="Position of joint 1 to look at the bays [degrees].")
    load_x: tuple[float, ...] = parameter(
        (-68.0, -10.0, 47.0), doc="Lateral positions at which bays are then seen [mm]."
    )
    load_y: tuple[float, ...] = parameter(
        (217.5, 223.0, 217.5), doc="Forward positions at which bays are then seen [mm]."
    )
    bay_turns: tuple[float, ...] = parameter(
        (-59.25, -44.25, -29.25), doc="Position of joint 1 over each bay, bent back [degrees]."
    )
    bay_pose: Pose = parameter(
        (-45.5, -45.0, -90.25, 5.0), doc="Positions of joints 2 to 5 with the grip in a bay [degrees]."
    )
    stow_over: Pose = parameter(
        (5.0, 5.0, -2.0, 0.0), doc="Positions of joints 2 to 5 beside a bay, before something is stored [degrees]."
    )
    stow_at: Pose = parameter(
        (-1.0, 5.0, -4.5, 0.0), doc="Positions of joints 2 to 5 at the release in a bay [degrees]."
    )
    stow_leaves: bool = parameter(
        False, doc="Leave by take_over after storing, as the text says; false: straight up, as the program."
    )
    take_over: Pose = parameter(
        (5.0, 0.0, -2.0, 0.0), doc="Positions of joints 2 to 5 before and after something is taken out [degrees]."
    )
    as_programmed: bool = parameter(
        True, doc="Inverse kinematics with the program's tolerances of 1 mm, 5 and 1 degrees."
    )
    # the method
    load_window: float = parameter(
        20.0, low=0.0, high=1e3, doc="Distance from where a bay is seen within which discs are its own [mm]."
    )
    load_tries: int = parameter(6, low=1, high=100, doc="Number of looks at the bays.")
    pick_heights: tuple[float, float] = parameter(
        (25.0, -25.0), doc="Heights above a symbol before the grasp and in it [mm]."
    )
    place_heights: tuple[float, float] = parameter(
        (45.0, 20.0), doc="Heights above a place before and at the release [mm]."
    )
    gripper: tuple[float, float] = parameter(
        (20.0, 10.0), doc="Openings of the open and closed gripper, both fingers together [mm]."
    )
    looks: int = parameter(5, low=1, high=100, doc="Number of looks, of which those near their median count.")
    near_median: float = parameter(1.0, low=0.0, high=1e3, doc="Largest distance of a look from the median [mm].")
    empty_looks: int = parameter(
        10, low=1, high=1000, doc="Number of looks without a symbol after which the view is empty."
    )
    only_on_places: float = parameter(
        0.0,
        low=0.0,
        high=1e3,
        doc="Distance from a place within which things are taken, 5 in the thesis; 0: all things [mm].",
    )
    sensitivity: float = parameter(0.7, low=0.0, high=1.0, doc="Sensitivity of the detection of circles.")
    tolerance: float = parameter(3.0, low=0.0, high=1e3, doc="Tolerance of diameters and of distances in pairs [mm].")

    def __post_init__(self) -> None:
        bays = len(self.bay_turns)
        if not len(self.load_x) == len(self.load_y) == bays:
            raise ConfigError(
                f"{len(self.load_x)}, {len(self.load_y)} places of {bays} bays", location="thesis", valid="one for each"
            )

    @property
    def camera(self) -> ThesisCamera:
        """From pixels to the arm."""
        return ThesisCamera(self.focal, self.zero, self.depth_map)

    def discs(self, polarity: Polarity, mode: Mode) -> DiscConfig:
        """What is looked for: discs of 20 mm, pairs 52 mm apart."""
        within = 1e-3 * self.tolerance
        return DiscConfig(
            polarity=polarity,
            mode=mode,
            diameter_tolerance=within,
            pair_distance_tolerance=within,
            sensitivity=self.sensitivity,
        )

    def view(self, turn: float) -> tuple[float, ...]:
        """All joints, upright and turned [degrees]."""
        return (turn, *self.upright)

    def over_bay(self, bay: int, beside: Pose = (0.0, 0.0, 0.0, 0.0)) -> tuple[float, ...]:
        """All joints over a bay, from 1 on [degrees]."""
        return (self.bay_turns[bay - 1], *(a + b for a, b in zip(self.bay_pose, beside, strict=True)))
