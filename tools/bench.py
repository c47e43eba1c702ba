"""Run benchmarks and write docs/benchmarks.md: figures, targets, peers, medians and spread, machine, commands.

``tools/bench.py [NAME]… [--repeats N] [-- OPTION…]`` measures the named ones, all if none is named, and puts what
each gave into docs/benchmarks/NAME.json; the page is made from these files, so that it can be filled piece by piece.
``--page`` only makes the page.  Options after ``--`` are those of ``roboyard bench``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from bench_page import page

from roboyard.cli.benchmarks import find_benchmarks

ROOT = Path(__file__).resolve().parent.parent
PAGE, STORE = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "benchmarks"
LONG = 120.0
"""Who takes longer for a run [s] is not repeated."""
BUSY = 0.2
"""Cores above which others take a part of the time."""
PEERS = ("pybullet", "ir-sim", "pyastar2d", "scikit-fmm", "scipy", "ompl", "coal", "EAIK", "pin", "py-trees",
         "pyperplan", "toppra", "pyoctomap", "mujoco-core", "opencv-python-headless")  # fmt: skip
"""Packages that ours is measured beside, whose versions belong to the figures."""


def measure(name: str, options: Sequence[str], repeats: int) -> dict[str, Any] | None:
    """Run a benchmark in processes of its own; None, and a line that says why, if it gives nothing."""
    command = [str(Path(sys.executable).with_name("roboyard")), "bench", name, *options, "--json"]
    busy, runs, answer = busy_cores(), list[list[dict[str, Any]]](), dict[str, Any]()
    if busy > BUSY:
        print(f"{name}: others keep {busy:.1f} cores busy: times will be too long", file=sys.stderr)
    start = time.perf_counter()
    for _ in range(repeats):
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        lines = done.stdout.splitlines()
        answer = json.loads(lines[-1]) if lines else {"error": f"ended with {done.returncode} and said nothing"}
        if "figures" not in answer:
            print(f"{name}: {answer['error']}", file=sys.stderr)
            return None
        runs.append(answer["figures"][name])
        took = (time.perf_counter() - start) / len(runs)
        if took > LONG:
            break
    return {
        "command": " ".join(["roboyard bench", name, *map(placeholder, options)]),
        "commit": commit(),
        "machine": machine(),
        "busy": round(busy, 1),
        "seconds": round(took),
        "skipped": [f"{item['part']}: {item['reason']}" for item in answer["skipped"]],
        "details": [without_paths(line, options) for line in answer["details"][name]],
        "runs": runs,
    }


def busy_cores(seconds: float = 2.0) -> float:
    """How many cores this machine's processes keep busy now; its load would count what was measured just before."""

    def spent() -> int:
        user, nice, system, _, _, irq, soft = map(int, Path("/proc/stat").read_text("ascii").split()[1:8])
        return user + nice + system + irq + soft

    before = spent()
    time.sleep(seconds)
    return (spent() - before) / os.sysconf("SC_CLK_TCK") / seconds


def placeholder(option: str) -> str:
    """An option as others can repeat it: their folder is not ours."""
    return "DIR" if Path(option).is_dir() else "FILE" if Path(option).is_file() else option


def without_paths(line: str, options: Sequence[str]) -> str:
    """A line in which no path of this machine is told."""
    data = os.environ.get("ROBOYARD_DATA", "")
    for path, instead in [(one, placeholder(one)) for one in options] + [(data, "ROBOYARD_DATA"), (str(ROOT), ".")]:
        line = line.replace(path, instead) if path.startswith("/") else line
    return line


def commit() -> str:
    """Of the source that is measured."""
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run([*git, "status", "--porcelain", "src", "benchmarks"], capture_output=True, check=False)
    return (head.stdout.strip() or "unknown") + (" with changes" if changed.stdout else "")


def machine() -> dict[str, Any]:
    """What figures depend on beside the source."""
    from roboyard.compute import count_usable_cores
    from roboyard.scenarios.provenance import collect_provenance

    where = collect_provenance()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "system": platform.freedesktop_os_release()["PRETTY_NAME"],
        "processor": f"{where.cpu} ({where.cpu_class})",
        "cores": count_usable_cores(),
        "memory": f"{memory:.0f} GiB",
        "versions": {**where.versions, **{name: version(name) for name in PEERS}},
    }


def version(name: str) -> str:
    """Of an installed package."""
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return "not installed"


def main() -> int:
    """Measure, and write the page after each benchmark."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("names", nargs="*", metavar="NAME", help="autostart: all")
    words.add_argument("--repeats", type=int, default=3, metavar="N", help="runs of what takes less than two minutes")
    words.add_argument("--page", action="store_true", help="measure nothing")
    own, options = sys.argv[1:], list[str]()
    if "--" in own:
        own, options = own[: own.index("--")], own[own.index("--") + 1 :]
    given = words.parse_args(own)
    every, failed = find_benchmarks([]), []
    STORE.mkdir(exist_ok=True)
    for name in [] if given.page else find_benchmarks(given.names):
        print(f"measuring {name} …", flush=True)
        found = measure(name, options, given.repeats)
        if found is None:
            failed.append(name)
            continue
        (STORE / f"{name}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
        PAGE.write_text(page(STORE, list(every), ROOT / "benchmarks"), "utf-8")
    PAGE.write_text(page(STORE, list(every), ROOT / "benchmarks"), "utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written" + (f"; nothing came of {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
