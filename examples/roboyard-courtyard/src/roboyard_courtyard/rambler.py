"""Rambler: drives ahead while there is room, and turns to where there is more while there is not."""

import numpy as np

import roboyard as ry


class RamblerConfig(ry.Config):
    distance: float = ry.parameter(0.7, unit="m", low=0.1, high=5.0)
    speed: float = ry.parameter(0.3, unit="m/s", low=0.0, high=1.0)
    turn_rate: float = ry.parameter(0.8, unit="rad/s", low=0.1, high=3.0)


class Rambler(ry.Node[RamblerConfig]):
    """Drives about and touches nothing.  in: scan   out: cmd_vel"""

    def setup(self) -> None:
        self.turning = 0.0  # to the left; the side is kept until the way is free
        self.cmd = self.publisher("cmd_vel", ry.msg.Twist)
        self.subscribe("scan", ry.msg.LaserScan, self.on_scan)

    def on_scan(self, scan: ry.msg.LaserScan) -> None:
        bearing = scan.angle_min + scan.angle_increment * np.arange(len(scan.ranges))
        ranges = np.where(np.isfinite(scan.ranges), scan.ranges, scan.range_max)
        twist = ry.msg.Twist()
        if np.min(ranges[np.abs(bearing) < 0.6]) > self.config.distance:
            self.turning = 0.0
            twist.linear.x = self.config.speed
        else:
            if not self.turning:
                left, right = (ranges[(side * bearing > 0.0) & (np.abs(bearing) < 1.6)] for side in (1, -1))
                self.turning = self.config.turn_rate if np.mean(left) >= np.mean(right) else -self.config.turn_rate
            twist.angular.z = self.turning
        self.cmd.publish(twist)
