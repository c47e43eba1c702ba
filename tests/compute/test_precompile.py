"""Precompilation compiles kernels once, in other processes, and leaves a valid cache when a process is ended."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from roboyard.compute import (
    CompilationInterrupted,
    expect_kernels,
    expected_kernels,
    kernel,
    monitor_compilation,
)
from roboyard.compute.jit import FirstCall, listen_to_first_calls
from roboyard.compute.kernel_folders import is_locked
from roboyard.compute.precompile import CompilationProgress

EXPECT_SCRIPT = """
    import json, sys
    from roboyard.compute import expect_kernels, wait_for_kernels
    from roboyard.grids.distance_field import squared_distance_transform
    from roboyard.grids.ray_casting import cast_rays

    reports = []
    expect_kernels(squared_distance_transform, cast_rays)
    wait_for_kernels(report=lambda progress: reports.append(str(progress)))
    import numpy as np
    squared_distance_transform(np.zeros((2, 2), np.bool_))
    misses = sum(squared_distance_transform.stats.cache_misses.values())
    hits = sum(squared_distance_transform.stats.cache_hits.values())
    print(json.dumps({"reports": reports, "misses": misses, "hits": hits}))
"""


def start_process(script: str, cache: Path, **options: object) -> subprocess.Popen[str]:
    settings = {"NUMBA_CACHE_DIR": str(cache), "PYTHONWARNINGS": "always::ResourceWarning"}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], env=os.environ | settings,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def read_result(process: subprocess.Popen[str]) -> dict:
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "ResourceWarning" not in errors, errors  # pytest reports an open file in an arbitrary later test
    return json.loads(out)


@pytest.mark.slow
def test_expected_kernels_are_compiled_by_other_processes(tmp_path: Path) -> None:
    first = read_result(start_process(EXPECT_SCRIPT, tmp_path))
    assert first["hits"] == 1
    assert first["misses"] == 0
    assert first["reports"]
    assert all(" of 2 (grids." in report for report in first["reports"])
    second = read_result(start_process(EXPECT_SCRIPT, tmp_path))
    assert second == {"reports": [], "misses": 0, "hits": 1}


@pytest.mark.slow
def test_kernel_is_compiled_once_by_simultaneous_processes(tmp_path: Path) -> None:
    """One of several processes that call the same kernel simultaneously compiles it; the others read its code."""
    call = """
        import json
        import numpy as np
        from roboyard.grids.distance_field import squared_distance_transform
        squared_distance_transform(np.zeros((2, 2), np.bool_))
        print(json.dumps({"misses": sum(squared_distance_transform.stats.cache_misses.values())}))
    """
    processes = [start_process(call, tmp_path) for _ in range(3)]
    assert sum(read_result(process)["misses"] for process in processes) == 1


SLOW_COMPILATION_SCRIPT = """
    import sys
    from roboyard.compute import kernel
    import numba.core.compiler as compiler

    @kernel
    def twice(x):
        return 2.0 * x

    inner = twice._compiler.compile
    def compile_slowly(*args):
        print("compiling", flush=True)
        sys.stdin.readline()
        return inner(*args)
    twice._compiler.compile = compile_slowly
    print(twice(2.0), flush=True)
"""
CALL_SCRIPT = """
    import json
    from roboyard.compute import kernel

    @kernel
    def twice(x):
        return 2.0 * x

    print(json.dumps([twice(2.0), sum(twice.stats.cache_hits.values())]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGKILL])
def test_cache_is_valid_after_a_process_ends_during_compilation(tmp_path: Path, signal_number: signal.Signals) -> None:
    process = start_process(SLOW_COMPILATION_SCRIPT, tmp_path, stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "compiling\n"
    (folder,) = tmp_path.glob("__main__.twice-*")
    assert is_locked(folder)
    process.send_signal(signal_number)
    process.communicate()
    assert process.returncode != 0
    assert not is_locked(folder)
    assert read_result(start_process(CALL_SCRIPT, tmp_path)) == [4.0, 0]
    assert read_result(start_process(CALL_SCRIPT, tmp_path)) == [4.0, 1]


@pytest.mark.slow
def test_code_is_read_from_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root has write permission for every folder")
    assert read_result(start_process(CALL_SCRIPT, tmp_path)) == [4.0, 0]
    for path in [tmp_path, *tmp_path.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert read_result(start_process(CALL_SCRIPT, tmp_path)) == [4.0, 1]


@kernel(examples=lambda: [(1.0,)])
def halve(x: float) -> float:
    """Return half of ``x``."""
    return 0.5 * x


@kernel
def identity(x: float) -> float:
    """Return ``x``; this kernel has no examples."""
    return x


def test_first_calls_are_reported_once_with_their_types() -> None:
    calls: list[FirstCall] = []

    @kernel
    def multiply(x: float) -> float:
        return 3.0 * halve(x)

    with listen_to_first_calls(calls.append):
        assert [multiply(2.0), multiply(4.0), multiply(2)] == [3.0, 6.0, 3.0]
    assert multiply(np.float32(2.0)) == 3.0
    assert [call.name.rpartition(".")[2] for call in calls] == ["multiply", "multiply"]  # float64, int64
    assert all(call.seconds > 0.0 for call in calls)


def test_kernel_without_examples_cannot_be_expected() -> None:
    with pytest.raises(ValueError, match="identity has no examples"):
        expect_kernels(identity)


INTERRUPTED_WAIT_SCRIPT = """
    import json, threading
    from roboyard.compute import expect_kernels, wait_for_kernels
    from roboyard.grids.distance_field import squared_distance_transform
    from roboyard.grids.distance_field import sum_scores
    from roboyard.grids.ray_casting import cast_rays
    from roboyard.compute.precompile import _compilers

    expect_kernels(squared_distance_transform)
    threads = [thread for thread in threading.enumerate() if thread.name == "roboyard-compile"]
    wait_for_kernels(is_stopped=lambda: bool(_compilers._latest))
    for thread in threads:
        thread.join()  # its job was canceled while it was compiled
    reports = []
    expect_kernels(cast_rays, sum_scores)
    wait_for_kernels(report=lambda progress: reports.append(str(progress)))
    print(json.dumps(reports))
"""


@pytest.mark.slow
def test_other_kernels_are_compiled_after_an_interrupted_wait(tmp_path: Path) -> None:
    reports = read_result(start_process(INTERRUPTED_WAIT_SCRIPT, tmp_path))
    assert any("sum_scores" in report or "cast_rays" in report for report in reports)


ON_DEMAND_SCRIPT = """
    import json
    from roboyard.compute import compile_on_demand, expect_kernels
    from roboyard.compute.precompile import _compilers
    from roboyard.grids.ray_casting import cast_rays
    with compile_on_demand():
        expect_kernels(cast_rays)
    print(json.dumps(len(_compilers._processes)))
"""


def test_compile_on_demand_starts_no_background_compilation(tmp_path: Path) -> None:
    assert read_result(start_process(ON_DEMAND_SCRIPT, tmp_path)) == 0


def test_expected_kernels_are_remembered() -> None:
    expect_kernels(halve, halve)
    assert f"{__name__}.halve" in expected_kernels()


def test_progress_text_states_count_kernel_and_remaining_time() -> None:
    first = CompilationProgress(0, 3, "roboyard.grids.ray_casting.cast_rays", None)
    assert str(first) == "1 of 3 (grids.ray_casting.cast_rays)"
    text = str(CompilationProgress(2, 3, "mine.kernel", 0.2))
    assert text == "3 of 3 (mine.kernel), about 1 s left"


def test_compilation_in_this_process_is_interrupted_and_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))  # the cache of an earlier session may contain the kernel

    @kernel
    def add_three(x: float) -> float:
        return x + 3.0

    with pytest.raises(CompilationInterrupted), monitor_compilation(is_stopped=lambda: True):
        add_three(2.0)
    assert add_three(2.0) == 5.0


FIRST_CALL_SCRIPT = """
    import json
    import numpy as np
    from roboyard.compute import expect_kernels, monitor_compilation
    from roboyard.grids.distance_field import squared_distance_transform

    reports = []
    with monitor_compilation(report=lambda progress: reports.append(str(progress))):
        expect_kernels(squared_distance_transform)
        squared_distance_transform(np.zeros((2, 2), np.bool_))
    print(json.dumps([reports[0], sum(squared_distance_transform.stats.cache_misses.values())]))
"""


@pytest.mark.slow
def test_first_call_waits_for_background_compilation_and_reports_it(tmp_path: Path) -> None:
    report, misses = read_result(start_process(FIRST_CALL_SCRIPT, tmp_path))
    assert report.startswith("1 of 1 (grids.distance_field.squared_distance_transform)")
    assert misses == 0
