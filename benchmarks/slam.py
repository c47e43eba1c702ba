"""Graph SLAM on real logs: error against relations checked by hand, time, memory, and what a scan costs as maps grow.

Logs are looked for in ``--dir``, else in ``slam`` of the folder that ROBOYARD_DATA names.  Relations of ``name.clf.gz``
are ``name.relations``, beside it or in ``relations``.  One set of parameters, the defaults, serves all logs.
Each log runs in a process of its own, so that its memory can be told.
"""

from __future__ import annotations

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
    from roboyard.mapping import GraphSlam, read_relations, relation_errors
    from roboyard.mapping.nodes import read_log
    from roboyard.scenarios.kernels import compile_kernels

    scans = read_log(log)
    compile_kernels()
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
            "relations": errors.used,
        }
    return found


def run(nightly: bool = False, folder: Path | None = None) -> dict[str, Any]:
    """Map all logs; errors of those with relations."""
    data = os.environ.get("ROBOYARD_DATA")
    where = folder or (Path(data) / "slam" if data else None)
    if where is None or not where.is_dir():
        raise ImportError("no logs: --dir or ROBOYARD_DATA has to name a folder with logs")
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
    lines = [f"{found['log']}: {line}", f"  ms a scan, by tenths of its {found['scans']} scans: {costs}"]
    return lines + [f"  {warning}" for warning in found["warnings"]]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(Path(sys.argv[1]))))
    else:
        for text in run()["details"]:
            print(text)
