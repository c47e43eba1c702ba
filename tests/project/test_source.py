"""What the whole source keeps to: read from the syntax tree, so that nothing has to run."""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "roboyard"
FILES = sorted(SOURCE.rglob("*.py"))
MAX_LINES = 800
CLOCKS = {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
          "process_time_ns", "thread_time", "thread_time_ns", "localtime", "gmtime", "ctime"}  # fmt: skip
DATES = {"now", "utcnow", "today"}
# Explicit generators, and what they are made from.
GENERATORS = {"Generator", "default_rng", "SeedSequence", "BitGenerator", "PCG64", "PCG64DXSM", "Philox", "SFC64"}


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def breaches(
    tree: ast.Module, *, clock_allowed: bool = False, secrets_allowed: bool = False
) -> Iterator[tuple[int, str]]:
    """Line and description of everything that must not stand in the package."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Assert):
            yield line, "assert (raise an error that says what would be right)"
        elif isinstance(node, ast.ExceptHandler) and node.type is None:
            yield line, "bare except"
        elif isinstance(node, ast.Import):
            forbidden = ("random",) if secrets_allowed else ("random", "secrets")
            yield from ((line, f"import {a.name}") for a in node.names if a.name in forbidden)
        elif isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            if node.module in ("random", "secrets"):
                yield line, f"from {node.module} import"
            if node.module == "time" and names & CLOCKS and not clock_allowed:
                yield line, f"from time import {', '.join(sorted(names & CLOCKS))}"
            if node.module == "numpy.random" and names - GENERATORS:
                yield line, f"from numpy.random import {', '.join(sorted(names - GENERATORS))}"
        elif isinstance(node, ast.Attribute):
            parts = dotted(node).split(".")
            if parts[0] == "time" and parts[-1] in CLOCKS and len(parts) == 2 and not clock_allowed:
                yield line, f"wall clock {'.'.join(parts)}"
            if parts[-1] in DATES and parts[-2] in ("datetime", "date"):
                yield line, f"wall clock {'.'.join(parts)}"
            if parts[:2] in (["np", "random"], ["numpy", "random"]) and parts[2:] and parts[2] not in GENERATORS:
                yield line, f"global randomness {'.'.join(parts)}"
            if parts in (["uuid", "uuid4"], ["uuid", "uuid1"], ["os", "urandom"]):
                yield line, f"randomness without a seed {'.'.join(parts)}"
        elif isinstance(node, ast.Call) and dotted(node.func).endswith("default_rng") and not node.args + node.keywords:
            yield line, "default_rng() without a seed"


def violations(name: str, text: str) -> list[str]:
    """Everything that a module of the package must not hold, one line each; `name` is its path in the package."""
    tree = ast.parse(text)
    # Two modules know the wall clock: the one that names it, and that of the executor that paces a run to it.  One
    # module of the view makes tokens that nobody can guess; nothing of a run depends on them.
    is_clock = name in ("bus/pacing.py", "compute/wall_clock.py")
    found = breaches(tree, clock_allowed=is_clock, secrets_allowed=name == "view/access.py")
    lines = [f"{name}:{line}: {breach}" for line, breach in found]
    if not ast.get_docstring(tree):
        lines.append(f"{name}:1: no docstring (a sentence that says what the module is for)")
    n_lines = len(text.splitlines())
    if n_lines > MAX_LINES:
        lines.append(f"{name}:{n_lines}: {n_lines} lines (at most {MAX_LINES}: one concept a module)")
    return lines


def test_package_has_no_violations() -> None:
    assert len(FILES) > 1
    found = [
        line for path in FILES for line in violations(path.relative_to(SOURCE).as_posix(), path.read_text("utf-8"))
    ]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    "code",
    [
        "assert x",
        "try: pass\nexcept: pass",
        "import time\ntime.time()",
        "from time import perf_counter",
        "import datetime\ndatetime.datetime.now()",
        "from datetime import date\ndate.today()",
        "import random",
        "import secrets",
        "import numpy as np\nnp.random.seed(0)",
        "import numpy as np\nnp.random.default_rng()",
        "from numpy.random import rand",
        "import uuid\nuuid.uuid4()",
    ],
)
def test_forbidden_code_is_found(code: str) -> None:
    assert list(breaches(ast.parse(code)))
    assert len(violations("bus/node.py", f'"""Nodes."""\n{code}\n')) == 1


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("bus/node.py", "x = 1\n", ["bus/node.py:1: no docstring"]),
        ("bus/node.py", '"""Nodes."""\n' + "x = 1\n" * 799, []),
        ("bus/node.py", '"""Nodes."""\n' + "x = 1\n" * 800, ["bus/node.py:801: 801 lines"]),
        ("bus/pacing.py", '"""Pacing."""\nimport time\ntime.time()\n', []),
        ("view/access.py", '"""Tokens."""\nimport secrets\n', []),
        ("view/access.py", '"""Tokens."""\nimport time\ntime.time()\n', ["view/access.py:3: wall clock"]),
        ("bus/pacing.py", '"""Pacing."""\nimport secrets\n', ["bus/pacing.py:2: import secrets"]),
        ("view/access.py", '"""Tokens."""\nimport random\n', ["view/access.py:2: import random"]),
        ("bus/node.py", "assert x\nimport random\n", ["bus/node.py:1: assert", "bus/node.py:2: import random",
                                                      "bus/node.py:1: no docstring"]),
    ],
)  # fmt: skip
def test_violations_of_a_module(name: str, text: str, expected: list[str]) -> None:
    found = violations(name, text)
    assert len(found) == len(expected)
    assert all(line.startswith(start) for line, start in zip(found, expected, strict=True)), found


@pytest.mark.parametrize(
    "code",
    [
        "import numpy as np\nnp.random.default_rng(7).normal()",
        "from numpy.random import Generator",
        "import time\ntime.sleep(1)",
        "message.time.now",
    ],
)
def test_allowed_code_is_not_found(code: str) -> None:
    assert not list(breaches(ast.parse(code)))


def test_no_registry_host_is_named() -> None:
    result = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.skip("not a git clone")
    hosts = ("pypi" + ".org", "pythonhosted" + ".org", "registry." + "npmjs", "deb." + "debian.org")
    for name in result.stdout.splitlines():
        path = ROOT / name
        if path.suffix in (".png", ".mp4", ".gz", ".mcap", ".stl", ".dae") or not path.is_file():
            continue
        text = path.read_text("utf-8", errors="replace")
        assert not [host for host in hosts if host in text], name
