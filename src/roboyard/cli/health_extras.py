"""Looks at what is optional: extras of the package, a browser, Ray and the machines of its cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from roboyard.cli.health_finding import Finding

if TYPE_CHECKING:
    from roboyard.compute import RayPool

CHROMIUM: Final = Path("/usr/bin/chromium")
_EXTRA = re.compile(r"""([A-Za-z0-9._-]+)[^;]*;.*\bextra\s*==\s*["']([^"']+)["']""")
PURPOSES: Final[Mapping[str, str]] = {
    "batch": "clusters, Parquet",
    "bench": "peers of benchmarks",
    "dev": "style and types",
    "docs": "these pages",
    "e2e": "tests in a browser",
    "groot": "Groot2",
    "gym": "reinforcement learning",
    "hardware": "real servos",
    "mesh": "convex pieces and cuts of meshes",
    "planning": "planners of others for tasks",
    "ros2": "--ros2",
    "test": "the tests",
    "video": "videos of runs",
}
"""What each extra is for."""


def extras() -> Finding:
    """Which optional parts are there."""
    from packaging.requirements import Requirement

    package = distribution("roboyard")
    missing: dict[str, list[str]] = {name: [] for name in package.metadata.get_all("Provides-Extra") or ()}
    included: dict[str, set[str]] = {}
    for text in package.requires or ():
        match = _EXTRA.match(text)
        if match is None or match[2] not in missing:
            continue
        if match[1] == "roboyard":  # an extra that includes others
            included[match[2]] = Requirement(text).extras
            continue
        try:
            distribution(match[1])
        except PackageNotFoundError:
            missing[match[2]].append(match[1])
    for name, others in included.items():
        missing[name] += [lack for other in others for lack in missing[other]]
    there = ", ".join(name for name, lacks in missing.items() if not lacks) or "none"
    absent = {name: PURPOSES.get(name, "") for name, lacks in missing.items() if lacks}
    if not absent:
        return Finding("extras", True, there)
    listed = ", ".join(f"{name} ({purpose})" if purpose else name for name, purpose in absent.items())
    advice = f"who wants one: `pip install 'roboyard[{next(iter(absent))}]'`"
    return Finding("extras", None, f"{there}; not installed: {listed}", advice)


def chromium() -> Finding:
    """The browser in which pages are tested and the gallery is made."""
    if CHROMIUM.is_file():
        return Finding("chromium", True, str(CHROMIUM))
    text = f"no {CHROMIUM}: `make gallery` and tests of the view need it; --view opens in any browser"
    return Finding("chromium", None, text, "on Debian: `apt install chromium`")


def cluster() -> Finding:
    """Ray, if it is there; which other machines have is asked by ``--cluster``."""
    try:
        version = distribution("ray").version
    except PackageNotFoundError:
        return Finding("cluster", None, "no Ray: batches run on this machine", "`pip install 'roboyard[batch]'`")
    advice = "`roboyard doctor --cluster HOST:PORT` compares the machines of one"
    return Finding("cluster", None, f"Ray {version}; all machines of a cluster need this one", advice)


def compare(here: Mapping[str, Any], there: Mapping[str, Mapping[str, Any] | Exception]) -> list[Finding]:
    """Whether machines of a cluster give the results that this one gives.

    Args:
        here: What `installed` says on this machine.
        there: What it says on others, by their names; or why it could not be asked.
    """
    return [_machine(name, here, said) for name, said in there.items()]


def _machine(name: str, here: Mapping[str, Any], there: Mapping[str, Any] | Exception) -> Finding:
    versions = here["versions"]
    same = (
        f"there: Python {versions['python']} and `pip install -c requirements.lock 'roboyard[batch]'` of this version"
    )
    if isinstance(there, Exception):
        return Finding(name, False, f"Roboyard does not answer there: {there}", same)
    other = [
        f"{package} {found}, here {versions.get(package)}"
        for package, found in there["versions"].items()
        if found != versions.get(package)
    ]
    if other:
        return Finding(name, False, f"other versions: {', '.join(other)}", same)
    if there["lock"] != here["lock"]:
        text = f"lock {there['lock'][:12]}, here {here['lock'][:12]}: results need not be the same"
        return Finding(name, False, text, same)
    if there["cpu_class"] != here["cpu_class"]:
        text = f"{there['cpu_class']}, here {here['cpu_class']}: results differ in their last digits"
        return Finding(name, None, text, "leave it out where every byte counts")
    return Finding(name, True, f"as here, {there['cpu_class']}")


def installed() -> dict[str, Any]:
    """What results depend on, on the machine where it is called."""
    from roboyard.scenarios.provenance import provenance

    return provenance().to_dict()


def machines(pool: RayPool) -> list[Finding]:
    """Each machine of a cluster, beside this one."""
    return compare(installed(), pool.run_on_each_machine(installed))
