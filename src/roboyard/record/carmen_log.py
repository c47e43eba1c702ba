"""Parses CARMEN logs, the format of most public 2D lidar data sets, into arrays; independent of messages.

Lines read (source: CARMEN's logger, ``param_daemon``/``log`` documentation, as the logs' own headers state it)::

    ODOM x y theta tv rv accel  t host t_logger
    FLASER n [range…] x y theta  odom_x odom_y odom_theta  t host t_logger       (RLASER: the rear laser)
    ROBOTLASER1 type start fov resolution max accuracy remission  n [range…]  m [remission…]
        laser_x laser_y laser_theta  robot_x robot_y robot_theta  tv rv  forward side turn  t host t_logger
    PARAM name value…

FLASER lines do not state angles.  180 beams start at -90° with 180°/180 between them, 181 with 180°/180 as well: with
gmapping's poses, the maps of five public logs are sharpest so, and worse by a quarter of a degree to either side.

"Corrected" logs are a SLAM program's output: their FLASER poses are its estimate, their ODOM lines go on from the last
of these; an ODOM line right behind the scan, with its pose and a stamp never set (0 or any number), marks where.  Where
all stamps are alike, NEFF lines, gmapping's numbers of particles that count, tell that a log is one.
Chaining the increments between the marks gives back the raw odometry.  Where none was logged between two scans, the
estimate is all there is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import RecordingError
from roboyard.geometry import SE2
from roboyard.record.recording import brief

MAX_BEAMS = 100_000
MAX_ENTRIES = 2_000_000
"""Scans and odometry lines of a log: at 20 a second more than a day."""
_MAX_LINE = 4 << 20
_MAX_KINDS = 1000
_MAX_PARAMETERS = 100_000
_ROUNDED_NS = 100_000_000
"""Between the lines of a log whose stamps were rounded away, at least [ns]."""
_FARTHEST = 10.0
"""Between two lines no robot is believed to have come farther [m]."""
_LASERS = {"FLASER": "scan", "ROBOTLASER1": "scan", "RLASER": "rear_scan", "ROBOTLASER2": "rear_scan"}
_SICK_MAX = 80.0
"""Range that counts as "nothing seen" when the log does not say [m]; SICK LMS give 81.91 then."""

Pose = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class LaserLine:
    """One scan.

    Attributes:
        time_ns: Stamp [ns].
        name: "scan" or "rear_scan".
        ranges: Distances [m].
        angle_min: Of the first beam [rad], in the laser's frame.
        angle_increment: Between beams [rad].
        range_max: Beyond it nothing was seen [m].
        pose: Of the laser as the line gives it (x [m], y [m], theta [rad]): the estimate in a corrected log.
        odometry: Of the robot at the scan.
        laser: Pose of the laser in the robot's frame.
    """

    time_ns: int
    name: str
    ranges: NDArray[np.float32]
    angle_min: float
    angle_increment: float
    range_max: float
    pose: Pose
    odometry: Pose
    laser: Pose


@dataclass(frozen=True, slots=True)
class OdometryLine:
    """Odometry: stamp [ns], pose (x [m], y [m], theta [rad]), forward speed [m/s] and turning speed [rad/s]."""

    time_ns: int
    pose: Pose
    speed: float
    turning: float


@dataclass(slots=True)
class CarmenLog:
    """A parsed log.

    Attributes:
        entries: Scans and odometry in the order of the file, stamps never decreasing.
        parameters: PARAM lines, name to value.
        corrected: Whether it is a SLAM program's output.
        warnings: What was found amiss.
    """

    entries: list[LaserLine | OdometryLine] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)
    corrected: bool = False
    warnings: list[str] = field(default_factory=list)


def parse(lines: Iterable[str], where: str = "log") -> CarmenLog:
    """Parse the lines of a log.

    Args:
        lines: Text lines.
        where: Name of the log for errors, which add the line's number.

    Raises:
        RecordingError: a line is malformed, or there is neither scan nor odometry.
    """
    return _Parser(where).run(lines)


class _Parser:
    def __init__(self, where: str) -> None:
        self.where = where
        self.log = CarmenLog()
        self.last_ns = 0
        self.late = 0
        self.repeated = 0
        self.skipped: dict[str, int] = {}
        self.logged: Pose | None = None  # the last ODOM line's pose as the file gives it
        self.raw: Pose = (0.0, 0.0, 0.0)  # odometry chained over the marks
        self.behind: LaserLine | None = None  # the scan on the line before
        self.marked: Pose | None = None  # pose of a SLAM program's mark that no odometry has followed yet
        self.estimated = 0
        self.kinds: dict[int, str] = {}  # kind of line by the number of the scan's entry
        self.raw_at: dict[int, Pose] = {}  # that, by the number of the scan's entry

    def run(self, lines: Iterable[str]) -> CarmenLog:
        log = self.log
        for number, line in enumerate(lines, 1):
            try:
                self.line(line)
            except (ValueError, OverflowError) as error:
                shown = "".join(c if c.isprintable() else " " for c in line.strip()[:60])
                problem = f"{brief(error)}: '{shown}'"
                if line.endswith("\n") or not log.entries:
                    raise RecordingError(problem, where=f"{self.where}:{number}", valid="a CARMEN log") from error
                log.warnings.append(f"the last line is torn and was left out ({problem})")
        if not log.entries:
            raise RecordingError("holds no scan and no odometry", where=self.where, valid="a CARMEN log")
        for index, raw in self.raw_at.items() if log.corrected else ():
            entry = log.entries[index]
            if isinstance(entry, LaserLine):
                log.entries[index] = replace(entry, odometry=raw)
        self.leave_out_doubles()
        self.warn()
        self.spread()
        return log

    def spread(self) -> None:
        """Some public logs went through a program that wrote stamps with six digits; only the order is left of them."""
        entries = self.log.entries
        instants = len({entry.time_ns for entry in entries})
        if instants * 4 >= len(entries):
            return
        self.log.warnings.append(
            f"{len(entries)} lines have only {instants} different stamps: they were rounded, and the lines are taken "
            f"to be {_ROUNDED_NS * 1e-9:g} s apart, or as long as the robot needs at 1 m/s and 1 rad/s"
        )
        time_ns, last = entries[0].time_ns, _place(entries[0])
        for index, entry in enumerate(entries[1:], 1):
            x, y, turn = _between(last, _place(entry))
            last = _place(entry)
            time_ns += max(_ROUNDED_NS, round(max(min(math.hypot(x, y), _FARTHEST), abs(turn)) * 1e9))
            entries[index] = replace(entry, time_ns=time_ns)

    def leave_out_doubles(self) -> None:
        """Loggers may write a scan twice, as FLASER and as ROBOTLASER1; the latter, which states its angles, stays."""
        double = {
            f"{plain}LASER" for plain, full in (("F", "1"), ("R", "2")) if f"ROBOTLASER{full}" in self.kinds.values()
        }
        kept = [entry for index, entry in enumerate(self.log.entries) if self.kinds.get(index) not in double]
        if len(kept) < len(self.log.entries):
            self.log.warnings.append(
                f"{len(self.log.entries) - len(kept)} scans without angles are there with them too"
            )
        self.log.entries = kept

    def warn(self) -> None:
        log = self.log
        if self.skipped:
            kinds = ", ".join(f"{count} {word}" for word, count in list(self.skipped.items())[:8])
            log.warnings.append(f"lines passed over: {kinds}")
        if self.estimated:
            log.warnings.append(
                f"{self.estimated} scans have no odometry of their own: how far the robot came is what the log's own "
                "SLAM program says"
            )
        if self.late:
            log.warnings.append(f"{self.late} stamps went back, or lay before 0, and were taken as of the line before")

    def line(self, line: str) -> None:
        if len(line) >= _MAX_LINE:
            raise ValueError(f"{len(line)} characters in a line, or more")
        if len(self.log.entries) > MAX_ENTRIES:
            raise ValueError(f"more than {MAX_ENTRIES} scans and odometry lines")
        words = line.split()
        if not words or words[0][0] in '#"':
            return
        kind = words[0]
        if kind == "ODOM":
            self.odometry(words)
        elif kind in ("FLASER", "RLASER"):
            self.plain_laser(words)
        elif kind in ("ROBOTLASER1", "ROBOTLASER2"):
            self.robot_laser(words)
        elif kind == "PARAM":
            if len(words) < 3:
                raise ValueError("PARAM needs a name and a value")
            self.log.parameters[words[1]] = words[2]
            if len(self.log.parameters) > _MAX_PARAMETERS:
                raise ValueError(f"more than {_MAX_PARAMETERS} parameters")
        elif kind.isascii() and kind.isidentifier() and kind.isupper():  # NEFF, SYNC, RAWLASER1, …
            self.log.corrected |= kind == "NEFF"
            self.skipped[kind] = self.skipped.get(kind, 0) + 1
            if len(self.skipped) > _MAX_KINDS:
                raise ValueError("too many kinds of lines")
        else:
            raise ValueError("no known kind of line")

    def odometry(self, words: list[str]) -> None:
        if len(words) < 8:
            raise ValueError(f"ODOM needs 9 fields and has {len(words) - 1}")
        pose, speed, turning = _pose(words[1:4]), _number(words[4]), _number(words[5])
        scan, self.behind = self.behind, None
        if scan is not None and scan.pose == pose:
            self.log.corrected |= _number(words[7]) * 1e9 < scan.time_ns
            if self.log.corrected:
                self.logged = self.marked = pose
                return
        self.marked = None
        self.raw = pose if self.logged is None else _compose(self.raw, _between(self.logged, pose))
        self.logged = pose
        self.log.entries.append(OdometryLine(self.stamp(nanoseconds(words[7])), self.raw, speed, turning))

    def plain_laser(self, words: list[str]) -> None:
        front = words[0] == "FLASER"
        ranges, rest = _readings(words, 1)
        if len(rest) < 8:
            raise ValueError(f"after its readings {words[0]} needs 9 fields and has {len(rest)}")
        name = "front" if front else "rear"
        parameters = self.log.parameters
        offset = _number(parameters.get(f"robot_{name}laser_offset", "0"))
        range_max = _number(parameters.get(f"robot_{name}_laser_max", str(_SICK_MAX)))
        laser = (offset, 0.0, 0.0) if front else (offset, 0.0, math.pi)
        gaps = len(ranges) - len(ranges) % 2
        increment = math.pi / gaps if gaps else 0.0
        poses = _pose(rest[0:3]), _pose(rest[3:6])
        self.scan(words[0], rest[6], ranges, -math.pi / 2, increment, range_max, *poses, laser)

    def robot_laser(self, words: list[str]) -> None:
        if len(words) < 9:
            raise ValueError(f"{words[0]} needs 8 fields before its readings and has {len(words) - 1}")
        start, increment, range_max = _number(words[2]), _number(words[4]), _number(words[5])
        ranges, rest = _readings(words, 8)
        _, rest = _readings(rest, 0)  # remission
        if len(rest) < 12:
            raise ValueError(f"after its readings {words[0]} needs 14 fields and has {len(rest)}")
        laser_pose, robot_pose = _pose(rest[0:3]), _pose(rest[3:6])
        self.scan(
            words[0],
            rest[11],
            ranges,
            start,
            increment,
            range_max,
            laser_pose,
            robot_pose,
            _between(robot_pose, laser_pose),
        )

    def scan(
        self,
        kind: str,
        stamp: str,
        ranges: NDArray[np.float32],
        angle_min: float,
        increment: float,
        range_max: float,
        pose: Pose,
        odometry: Pose,
        laser: Pose,
    ) -> None:
        if self.marked is not None and pose != self.marked:
            self.raw = _compose(self.raw, _between(self.marked, pose))
            self.logged = self.marked = pose
            self.estimated += 1
        self.raw_at[len(self.log.entries)] = self.raw
        self.kinds[len(self.log.entries)] = kind
        time_ns = self.stamp(nanoseconds(stamp))
        name = _LASERS[kind]
        self.behind = LaserLine(time_ns, name, ranges, angle_min, increment, range_max, pose, odometry, laser)
        self.log.entries.append(self.behind)

    def stamp(self, time_ns: int) -> int:
        """The line's time; one that goes back, or is negative, is taken as of the line before: lines are in order."""
        if time_ns < self.last_ns:
            self.late += 1
            return self.last_ns
        self.last_ns = time_ns
        return time_ns


def _place(entry: LaserLine | OdometryLine) -> Pose:
    return entry.odometry if isinstance(entry, LaserLine) else entry.pose


def nanoseconds(text: str) -> int:
    """A stamp in seconds as exact nanoseconds: 1e9 s with microseconds do not fit a float's digits in nanoseconds."""
    whole, point, fraction = text.partition(".")
    if whole.isdecimal() and (not point or fraction.isdecimal()) and whole.isascii() and len(whole) < 18:
        return int(whole) * 10**9 + int(fraction[:9].ljust(9, "0") or "0")
    seconds = float(text)
    if not abs(seconds) < 9e9:
        raise ValueError(f"'{text}' is no stamp in seconds")
    return round(seconds * 1e9)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"'{text}' is not finite")
    return value


def _pose(words: list[str]) -> Pose:
    return _number(words[0]), _number(words[1]), _number(words[2])


def _readings(words: list[str], at: int) -> tuple[NDArray[np.float32], list[str]]:
    """The counted readings from word ``at`` on, and the words behind them."""
    if len(words) <= at:
        raise ValueError("the number of readings is missing")
    count = int(words[at])
    if not 0 <= count <= MAX_BEAMS or at + 1 + count > len(words):
        raise ValueError(f"{count} readings are announced and {len(words) - at - 1} fields follow")
    values = [float(word) for word in words[at + 1 : at + 1 + count]]
    return np.asarray(values, dtype=np.float32), words[at + 1 + count :]


def _compose(first: Pose, second: Pose) -> Pose:
    """Pose ``second``, given in the frame of ``first``."""
    pose = SE2(*first) @ SE2(*second)
    return pose.x, pose.y, pose.theta


def _between(first: Pose, second: Pose) -> Pose:
    """``second`` as seen from ``first``."""
    pose = SE2(*first).inverse() @ SE2(*second)
    return pose.x, pose.y, pose.theta
