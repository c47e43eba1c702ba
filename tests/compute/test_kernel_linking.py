"""Linked kernels are called by symbol from code without a copy of them, in this and in later processes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from roboyard.compute import kernel
from roboyard.compute.kernel_linking import MIN_LINKED_SIZE, is_linked

SCRIPT = """
import json, sys
import numpy as np
from roboyard.compute import kernel, kernel_linking
from roboyard.compute.kernel_linking import find_linked_code

kernel_linking.MIN_LINKED_SIZE = int(sys.argv[1])

@kernel
def sum_roots(values):
    total = 0.0
    for value in values:
        if value < 0.0:
            raise ValueError("negative")
        total += np.sqrt(value)
    return total

@kernel
def double(values):
    return 2.0 * sum_roots(values)

@kernel
def add(values):
    copy = values.copy()
    copy[0] = 9.0
    return double(copy) + sum_roots(values), copy

values = np.array([4.0, 16.0, 25.0])
result, copy = add(values)
try:
    add(-values)
    error = ""
except ValueError as caught:
    error = str(caught)
code = next(iter(add.overloads.values()))  # linked kernels are declared in it, but not defined
print(json.dumps({
    "result": result, "copy": copy.tolist(), "error": error,
    "misses": [sum(k.stats.cache_misses.values()) for k in (sum_roots, double, add)],
    "linked": sorted(found.kernel for found in find_linked_code(code)),
}))
"""


def run_script(cache: Path, *, min_size: int = 0) -> dict:
    """Run the script in a separate process and return its results."""
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(min_size)],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    result = json.loads(process.stdout)
    assert result["result"] == 2.0 * (3.0 + 4.0 + 5.0) + (2.0 + 4.0 + 5.0)
    assert (result["copy"], result["error"]) == ([9.0, 16.0, 25.0], "negative")
    return result


@pytest.mark.slow
def test_linked_kernels_run_without_a_copy_and_from_the_cache(tmp_path: Path) -> None:
    compiled = run_script(tmp_path / "linked")
    assert compiled["linked"] == ["__main__.double", "__main__.sum_roots"]
    copied = run_script(
        tmp_path / "copied", min_size=MIN_LINKED_SIZE
    )  # the control: numba copies small kernels into callers
    assert copied["linked"] == []
    for folder in ("linked", "copied"):
        assert run_script(tmp_path / folder, min_size=0 if folder == "linked" else MIN_LINKED_SIZE)["misses"] == [
            0,
            0,
            0,
        ]


@pytest.mark.slow
def test_caller_is_recompiled_after_its_linked_kernel(tmp_path: Path) -> None:
    run_script(tmp_path)
    for folder in tmp_path.glob("__main__.sum_roots-*"):
        shutil.rmtree(folder)
    assert (
        run_script(tmp_path)["misses"][0] == 1
    )  # its symbol may have changed; cached callers of the old symbol are not used
    assert run_script(tmp_path)["misses"] == [0, 0, 0]


@pytest.mark.slow
def test_caller_of_another_symbol_is_not_used(tmp_path: Path) -> None:
    run_script(tmp_path)
    other = tmp_path / "other"
    # Numba numbers functions in order of compilation, and symbols contain that number.
    shifted = SCRIPT.replace(
        "@kernel\ndef sum_roots", "@kernel\ndef early(x):\n    return x\n\nearly(1.0)\n\n@kernel\ndef sum_roots"
    )
    process = subprocess.run(
        [sys.executable, "-c", shifted, "0"], env=os.environ | {"NUMBA_CACHE_DIR": str(other)}, check=True,
        capture_output=True,
    )  # fmt: skip
    assert process.stdout
    (old,) = tmp_path.glob("__main__.sum_roots-*")
    (new,) = other.glob("__main__.sum_roots-*")
    assert old.name == new.name
    shutil.rmtree(old)
    shutil.copytree(new, old)
    assert run_script(tmp_path)["misses"] == [0, 1, 1]
    assert run_script(tmp_path)["misses"] == [0, 0, 0]


def test_inlined_kernels_are_not_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roboyard.compute.kernel_linking.MIN_LINKED_SIZE", 0)
    assert is_linked(kernel(lambda x: x))
    assert not is_linked(kernel(forceinline=True)(lambda x: x))
