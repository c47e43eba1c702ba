"""Keep the bytecode of all modules of others that the package imports, where Python itself would not.

Installing compiles nothing: Python compiles a module when it is first imported, and keeps the result. Where
PYTHONDONTWRITEBYTECODE is set, as in many containers, it keeps nothing, and every process would compile again, which
takes a run two seconds. There this imports everything once, in a process that may write. Elsewhere it does nothing.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "roboyard"
SWITCH = "PYTHONDONTWRITEBYTECODE"


def imported(tree: ast.AST) -> Iterator[str]:
    """Full names of modules of others that a module imports anywhere; some may be names in a module instead."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        own = {"roboyard", "__future__", *sys.stdlib_module_names}
        yield from (name for name in names if name.partition(".")[0] not in own)


def import_all(source: Path) -> None:
    """Import what the modules in a folder import, as far as it is installed and works on this machine."""
    names = {name for file in source.rglob("*.py") for name in imported(ast.parse(file.read_text("utf-8")))}
    for name in sorted(names):
        with suppress(Exception):  # an extra that is not installed, a class, a library without its display
            import_module(name)


def main(source: Path = SOURCE) -> int:
    """Import everything in a process that keeps bytecode, if this one does not. Returns the exit status."""
    if not sys.dont_write_bytecode:
        return 0
    environment = {name: value for name, value in os.environ.items() if name != SWITCH}
    command = [sys.executable, str(Path(__file__).resolve()), str(source)]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) > 1:
        import_all(Path(sys.argv[1]))
    else:
        sys.exit(main())
