"""Write requirements.lock: versions that satisfy pyproject.toml with all its extras, resolved together.

Each line names one distribution, its version, and what needs it: ``base``, extras of the package, or ``build``, which
is what builds the package itself. `tools/install.py` reads this, so that nothing has to be resolved again.

pip resolves without installing; what is installed here does not matter.
"""

import argparse
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
HEADER = """# Versions that were tested together, and what needs each: base install, extras, or build of the package.
# Made by `make lock`; the other make commands install these versions, and pip takes this file as constraints.
"""
BASE, BUILD = "base", "build"
EDITABLE = "editables"
"""What hatchling asks for besides itself when the package is installed in place."""


def resolve(extras: Sequence[str], build: Sequence[str], kept: Path | None) -> dict[str, dict[str, object]]:
    """Metadata of every distribution that the package with these extras needs, by normalised name.

    Args:
        extras: Of the package.
        build: Requirements of the build.
        kept: Constraints; None: the newest versions are taken.
    """
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet",
               "--disable-pip-version-check", "--report", "-", *(["--constraint", str(kept)] if kept else []),
               f"{ROOT}[{','.join(extras)}]", *build]  # fmt: skip
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return {canonicalize_name(item["metadata"]["name"]): item["metadata"] for item in report["install"]}


def closure(roots: Iterable[Requirement], found: Mapping[str, Mapping[str, object]]) -> set[str]:
    """Names of all that ``roots`` need on this machine, among what was found."""
    waiting = [(canonicalize_name(root.name), extra) for root in roots for extra in ("", *root.extras)]
    seen = set(waiting)
    while waiting:
        name, extra = waiting.pop()
        for text in found[name].get("requires_dist", ()):  # type: ignore[attr-defined]
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                new = {(canonicalize_name(needed.name), one) for one in ("", *needed.extras)} - seen
                seen |= new
                waiting += sorted(new)
    return {name for name, _ in seen}


def who_needs(
    package: str, extras: Sequence[str], build: Sequence[str], found: Mapping[str, Mapping[str, object]]
) -> dict[str, list[str]]:
    """For each distribution ``base``, or else the extras, or else ``build``."""
    base = closure([Requirement(package)], found)
    needs: dict[str, list[str]] = {name: [BASE] for name in base}
    for extra in extras:
        for name in closure([Requirement(f"{package}[{extra}]")], found) - base:
            needs.setdefault(name, []).append(extra)
    for name in closure([Requirement(text) for text in build], found) - base:
        needs.setdefault(name, []).append(BUILD)
    return needs


def main() -> None:
    """Resolve and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="only add and remove; versions that are locked stay")
    options = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    package, extras = project["project"]["name"], sorted(project["project"]["optional-dependencies"])
    build = [*project["build-system"]["requires"], EDITABLE]
    found = resolve(extras, build, LOCK if options.keep else None)
    needs = who_needs(package, extras, build, found)
    lines = [
        f"{str(metadata['name']).lower()}=={metadata['version']}  # {', '.join(needs[name])}\n"
        for name, metadata in sorted(found.items())
        if name != package
    ]
    LOCK.write_text(HEADER + "".join(lines), encoding="utf-8")
    print(f"{len(lines)} versions in {LOCK.name}")


if __name__ == "__main__":
    main()
