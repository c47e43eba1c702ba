"""Install the package in place with some of its extras, in the versions of requirements.lock.

``.venv/bin/python tools/install.py video test`` installs into the environment whose interpreter runs it. pip spends
most of its time on compiling each installed module to bytecode, on unpacking one wheel after the other, and on an
environment of its own for building the package. Here modules are compiled when they are first imported, or by
`tools/bytecode.py` where that would not be kept; two pips unpack what the lock file names, without resolving it again;
and the package is built with what the lock file names for it. At last pip looks once at the whole, and adds what
another Python version or an edited pyproject.toml needs besides.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
ALWAYS = {"base", "build"}
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-compile"]
AT_ONCE = 2
"""Disks, not processors, are what more of them would wait for."""
_LINE = re.compile(r"^([A-Za-z0-9._-]+==[^\s#]+)\s+# ([a-z0-9, -]+)$", re.MULTILINE)


def locked(text: str, extras: Collection[str]) -> list[str]:
    """Requirements ``name==version`` of a lock file that the package with some extras needs."""
    wanted = ALWAYS | set(extras)
    return [requirement for requirement, needs in _LINE.findall(text) if wanted & set(needs.split(", "))]


def deal(requirements: Sequence[str], hands: int) -> list[list[str]]:
    """The requirements in as many lists, one to each in turn."""
    return [list(requirements[k::hands]) for k in range(hands)]


def install_locked(requirements: Sequence[str], folder: Path) -> int:
    """Install requirements without looking at what they need. Returns the greatest exit status."""
    started = []
    for k, part in enumerate(deal(requirements, AT_ONCE)):
        file = folder / f"part-{k}.txt"
        file.write_text("\n".join(part) + "\n", encoding="utf-8")
        started.append(subprocess.Popen([*PIP, "--no-deps", "--requirement", str(file)]))
    return max(process.wait() for process in started)


def main(extras: Sequence[str]) -> int:
    """Install. Returns the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        status = install_locked(locked(LOCK.read_text("utf-8"), extras), Path(folder))
    if status:
        return status
    compiling = subprocess.Popen([sys.executable, str(ROOT / "tools" / "bytecode.py")])
    target = f"{ROOT}[{','.join(extras)}]" if extras else str(ROOT)
    command = [*PIP, "--no-build-isolation", "--constraint", str(LOCK), "--editable", target]
    status = subprocess.run(command, check=False).returncode
    return compiling.wait() or status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
