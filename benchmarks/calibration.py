"""What calibrating a drive is worth: the rover on the arena's course, its heading by odometry with and without.

The rover is calibrated by moves of its own in the empty world, with another seed each time, and then drives the figure
of eight.  The same wheel angles are integrated twice: with what calibration found, and with k = 1 and nominal radii.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roboyard.bringup.calibration_store import calibrated_parameters
from roboyard.bringup.robot_loader import load_robot
from roboyard.control import DifferentialDrive
from roboyard.geometry import wrap_angle
from roboyard.localization import WheelOdometry
from roboyard.scenarios.assembly import build_run
from roboyard.scenarios.calibration import DriveCalibrationResult, calibrate_drive, find_differential_drive
from roboyard.scenarios.loading import load_scenario
from roboyard.scenarios.resolve import resolve_scenario


def course(calibrated: DriveCalibrationResult, seed: int) -> tuple[float, float]:
    """Final heading errors [rad] on the course, not wrapped: uncalibrated, calibrated."""
    package, found = calibrated.package, calibrated.calibration
    settings = [
        f"robots.rover.parameters.{node}.{name}={value!r}"
        for node, values in calibrated_parameters(package, found).items()
        for name, value in values.items()
    ]
    spec = load_scenario("rover-drive", overrides=settings).with_seed(seed)
    wheels = find_differential_drive(package)
    nominal = DifferentialDrive(wheel_radius=wheels.wheel_radius, track=wheels.track)
    estimates = [WheelOdometry(drive) for drive in (nominal, calibrated.fit.drive)]
    headings, turned = [0.0, 0.0], [0.0]

    with build_run(resolve_scenario(spec), record=False) as run:
        robot = run.robots["rover"]
        last = [robot.truth.pose.yaw]

        def see(topic: Any, message: Any, node: str, time_ns: int) -> None:
            if topic.name != "/joint_states":
                return
            angles = dict(zip(message.name, message.position.tolist(), strict=True))
            sides = [
                np.mean([angles[joint] for joint in joints]) for joints in (wheels.left_joints, wheels.right_joints)
            ]
            for k, odometry in enumerate(estimates):
                before = odometry.T_odom_base.theta
                if odometry.update(time_ns, *map(float, sides)) is not None:
                    headings[k] += wrap_angle(odometry.T_odom_base.theta - before)
            yaw = robot.truth.pose.yaw
            turned[0] += wrap_angle(yaw - last[0])
            last[0] = yaw

        run.bus.add_message_observer(see)
        run.run_for(spec.config.duration)
    return headings[0] - turned[0], headings[1] - turned[0]


def run(nightly: bool = False) -> dict[str, Any]:
    """Calibrate and drive with several seeds; ``nightly`` takes more."""
    package = load_robot("rover", use_calibration=False)
    rows = []
    for seed in range(10 if nightly else 3):
        calibrated = calibrate_drive(package, seed=seed)
        without, with_it = course(calibrated, seed)
        rows.append((abs(without), abs(with_it), calibrated.fit.slip_factor.value))
    without, with_it, factors = np.array(rows).T
    worst = 100.0 * float((with_it / without).max())
    errors = [math.degrees(float(values.max())) for values in (with_it, without)]
    return {
        "figures": [
            {
                "name": f"rover's final heading error on the arena's course, worst of {len(rows)} seeds",
                "value": errors[0], "unit": "°",
                "peer": "uncalibrated (k = 1)", "peer_value": errors[1],
            },
            {"name": "calibrated over uncalibrated error, worst seed", "value": worst, "unit": "%", "target": "<= 5"},
            {"name": "slip factor k, mean of the seeds", "value": float(factors.mean())},
        ],
        "details": [
            f"seed {seed}: k {k:.4f}, heading off by {math.degrees(b):.2f}° calibrated, {math.degrees(a):.1f}° without"
            for seed, (a, b, k) in enumerate(rows)
        ],
    }  # fmt: skip


if __name__ == "__main__":
    for line in run()["details"]:
        print(line)
