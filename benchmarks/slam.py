"""Graph SLAM on real logs: error against relations checked by hand, time, memory, and what a scan costs as maps grow.

Logs are looked for in ``--data``, else in ``slam`` of the folder that ROBOYARD_DATA names.  Relations of
``name.clf.gz``
are ``name.relations``, beside it or in ``relations``.  One set of parameters, the defaults, serves all logs.
Each log runs in a process of its own, so that its memory can be told.

Stamps of the Intel log are when messages were written down, in bursts and even out of order, while relations name
messages by them: a millisecond may be a message, thus 0.2 s and 6 cm of way.  The copy keeps every fifth.  Where
``intel-corrected`` lies beside it, whose odometry is that of all messages in their order, it tells between which scans
the message of a relation truly was; both figures are given for the same relations and the same trajectory.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

SUFFIXES = (".clf", ".log", ".clf.gz", ".log.gz", ".mcap", ".bag", ".db3")
GMAPPING = {"intel": (0.0863, 1.88)}
"""slam_gmapping with 30 particles on the same copy of the log: metres and degrees."""
BINS = 10


def stem_of(path: Path) -> str:
    return path.name.split(".")[0]


def logs_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIXES))


def relations_of(log: Path) -> Path | None:
    name = f"{stem_of(log)}.relations"
    return next((path for path in (log.parent / name, log.parent / "relations" / name) if path.is_file()), None)


def measure(log: Path) -> dict[str, Any]:
    """Map one log; what came of it."""
    from roboyard.compute import wait_for_kernels
    from roboyard.mapping import GraphSlam, read_log, read_relations, relation_errors

    scans = read_log(log)
    wait_for_kernels()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    slam, costs = GraphSlam(), []
    started = time.process_time()
    for scan in scans:
        begun = time.perf_counter()
        slam.process(scan)
        costs.append(time.perf_counter() - begun)
    slam.finish()
    seconds = time.process_time() - started
    found: dict[str, Any] = {
        "log": stem_of(log),
        "scans": len(scans),
        "trans_m": None,
        "trans_std": None,
        "rot_deg": None,
        "relations": 0,
        "seconds": seconds,
        "real_time_factor": scans.duration / seconds,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
        "memory_before_mb": before / 1024.0,
        "cost_ms": [float(np.mean(part)) * 1e3 for part in np.array_split(np.array(costs), BINS) if len(part)],
        "warnings": slam.warnings,
    }
    relations = relations_of(log)
    if relations is not None:
        errors = relation_errors(slam.trajectory(), read_relations(relations))
        found |= {
            "trans_m": errors.translational.mean,
            "trans_std": errors.translational.std,
            "rot_deg": errors.rotational_deg.mean,
            "relations": errors.n_used,
        }
        found["in_order"] = in_order(log, scans, slam.trajectory(), read_relations(relations))
    return found


def messages_of(log: Path) -> np.ndarray:
    """(n, 4) stamp and odometry of a corrected log's messages in their order, chained over gmapping's corrections."""
    from roboyard.geometry import SE2

    found, here, last = [], SE2(), None
    with gzip.open(log, "rt") as lines:
        for words in (line.split() for line in lines if line.startswith("ODOM")):
            pose, stamp = SE2(*map(float, words[1:4])), float(words[-3])
            if stamp > 0.0 and last is not None:  # stamp 0: set to the corrected pose
                here = here @ last.inverse() @ pose
            last = pose
            if stamp > 0.0:
                found.append((stamp, here.x, here.y, here.theta))
    return np.array(found)


def in_order(log: Path, scans: Any, trajectory: Any, relations: Any) -> dict[str, float] | None:
    """Errors when a relation's stamps name messages, beside those by the copy's stamps; None without the other log.

    Only of the log's first 1000 s: later stamps of the other log are rounded to more than lies between two messages.
    """
    from roboyard.geometry.se2_arrays import relative
    from roboyard.mapping import PoseTrajectory, Relations, relation_errors

    other = log.with_name(f"{stem_of(log)}-corrected.log.gz")
    if not other.is_file():
        return None
    messages = messages_of(other)
    start = scans.scans[0].time_ns
    poses = np.array([(s.odometry.x, s.odometry.y, s.odometry.theta) for s in scans.scans])
    steps, index = relative(poses[:-1], poses[1:]), [0]
    for step, scan in zip(steps, scans.scans[1:], strict=True):
        ahead = np.arange(index[-1] + 1, min(index[-1] + 120, len(messages)))
        if not len(ahead) or (scan.time_ns - start) * 1e-9 > 1010.0:
            break
        off = np.linalg.norm(relative(messages[index[-1], 1:], messages[ahead, 1:]) - step, axis=1)
        same = ahead[off < off.min() + 1e-3]  # while the robot stands, many: that nearest by its stamp
        index.append(int(same[np.argmin(np.abs(messages[same, 0] - (scan.time_ns - start) * 1e-9))]))
    number = np.arange(len(messages)) * 10**9  # a time that runs as the messages do
    ordered = PoseTrajectory(number[index], trajectory.poses[: len(index)])
    first, second = ((times - start) * 1e-9 for times in (relations.first_ns, relations.second_ns))
    early = np.maximum(first, second) < 1000.0
    named = [number[np.abs(messages[:, :1] - t[early]).argmin(axis=0)] for t in (first, second)]
    by_order = relation_errors(ordered, Relations(*named, relations.relative_poses[early]), 10**11)
    pick = Relations(relations.first_ns[early], relations.second_ns[early], relations.relative_poses[early])
    by_stamps = relation_errors(trajectory, pick, 10**10)
    return {
        "trans_m": by_order.translational.mean,
        "rot_deg": by_order.rotational_deg.mean,
        "relations": by_order.n_used,
        "trans_m_by_stamps": by_stamps.translational.mean,
        "rot_deg_by_stamps": by_stamps.rotational_deg.mean,
    }


def run(nightly: bool = False, folder: Path | None = None) -> dict[str, Any]:
    """Map all logs; errors of those with relations."""
    data = os.environ.get("ROBOYARD_DATA")
    where = folder or (Path(data) / "slam" if data else None)
    if where is None or not where.is_dir():
        raise ImportError("no logs: --data or ROBOYARD_DATA has to name a folder with logs")
    figures: list[dict[str, Any]] = []
    details = ["log: trans_m trans_std rot_deg relations seconds real_time_factor peak_memory_mb"]
    for log in logs_in(where):
        done = subprocess.run([sys.executable, __file__, str(log)], capture_output=True, text=True, check=False)
        if done.returncode:
            details.append(f"{stem_of(log)}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
            continue
        found = json.loads(done.stdout.splitlines()[-1])
        figures += figures_of(found)
        details += lines_of(found)
    return {"figures": figures, "details": details}


def figures_of(found: dict[str, Any]) -> list[dict[str, Any]]:
    name = found["log"]
    peer = GMAPPING.get(name)
    figures = []
    if found["trans_m"] is not None:
        for key, unit, target, k in (("trans_m", "m", "<= 0.055", 0), ("rot_deg", "°", "<= 1.5", 1)):
            figure = {"name": f"{name}: {key}", "value": found[key], "unit": unit, "target": target}
            if peer is not None:
                figure |= {"peer": "gmapping", "peer_value": peer[k]}
            figures.append(figure)
    if found.get("in_order"):
        for key, unit in (("trans_m", "m"), ("rot_deg", "°")):
            ordered = found["in_order"]
            figures.append({"name": f"{name}: {key}, by order of messages", "value": ordered[key], "unit": unit})
    early, late = found["cost_ms"][len(found["cost_ms"]) // 2 - 1], found["cost_ms"][-1]
    return [
        *figures,
        {"name": f"{name}: real_time_factor", "value": found["real_time_factor"], "target": ">= 20"},
        {"name": f"{name}: peak_memory", "value": found["peak_memory_mb"], "unit": "MB"},
        {"name": f"{name}: cost of a scan, last tenth over the middle", "value": late / early},
    ]


def lines_of(found: dict[str, Any]) -> list[str]:
    def number(key: str, digits: int) -> str:
        return "-" if found[key] is None else f"{found[key]:.{digits}f}"

    line = " ".join(
        [number("trans_m", 4), number("trans_std", 4), number("rot_deg", 2), str(found["relations"]),
         number("seconds", 1), number("real_time_factor", 0), number("peak_memory_mb", 0)]
    )  # fmt: skip
    costs = " ".join(f"{cost:.1f}" for cost in found["cost_ms"])
    lines = [f"{found['log']}: {line}"]
    if found.get("in_order"):
        ordered = found["in_order"]
        how = (("the order of messages", ""), ("stamps", "_by_stamps"))
        both = [f"by {name} {ordered[f'trans_m{k}']:.4f} m {ordered[f'rot_deg{k}']:.2f}°" for name, k in how]
        lines.append(f"  {ordered['relations']} relations of the first 1000 s: {', '.join(both)}")
    lines += [f"  ms a scan, by tenths of its {found['scans']} scans: {costs}"]
    return lines + [f"  {warning}" for warning in found["warnings"]]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(Path(sys.argv[1]))))
    else:
        for text in run()["details"]:
            print(text)
