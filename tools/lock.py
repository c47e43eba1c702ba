"""Write requirements.lock: the newest versions that satisfy pyproject.toml with all its extras, resolved together.

pip resolves without installing; what is installed here does not matter.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# Versions that were tested together. Made by `make lock`; used as constraints by the other make commands.\n"


def resolve(extras: list[str]) -> dict[str, str]:
    """Name and version of every distribution that the package with these extras needs."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet",
               "--disable-pip-version-check", "--report", "-", f"{ROOT}[{','.join(extras)}]"]  # fmt: skip
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    found = {item["metadata"]["name"].lower(): item["metadata"]["version"] for item in report["install"]}
    del found["roboyard"]
    return found


def main() -> None:
    """Resolve and write."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = resolve(sorted(project["optional-dependencies"]))
    lines = [f"{name}=={version}\n" for name, version in sorted(found.items())]
    (ROOT / "requirements.lock").write_text(HEADER + "".join(lines), encoding="utf-8")
    print(f"{len(lines)} versions in requirements.lock")


if __name__ == "__main__":
    main()
