"""Kernels that are compiled ahead: in other processes, once, and without harm to the cache whatever ends them."""

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
    read_only,
)
from roboyard.compute.array_kernels import assign
from roboyard.compute.jit import FirstCall, listen_to_first_calls
from roboyard.compute.kernel_folders import is_locked, lock_folder
from roboyard.compute.precompile import CompilationProgress

EXPECT = """
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


def start(script: str, cache: Path, **options: object) -> subprocess.Popen[str]:
    settings = {"NUMBA_CACHE_DIR": str(cache), "PYTHONWARNINGS": "always::ResourceWarning"}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], env=os.environ | settings,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def result_of(process: subprocess.Popen[str]) -> dict:
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "ResourceWarning" not in errors, errors  # pytest fails whichever test runs when a file is left open
    return json.loads(out)


@pytest.mark.slow
def test_expected_kernels_are_compiled_in_other_processes_and_read_here(tmp_path: Path) -> None:
    first = result_of(start(EXPECT, tmp_path))
    assert first["hits"] == 1
    assert first["misses"] == 0
    assert first["reports"]
    assert all(" of 2 (grids." in report for report in first["reports"])
    second = result_of(start(EXPECT, tmp_path))
    assert second == {"reports": [], "misses": 0, "hits": 1}


@pytest.mark.slow
def test_kernels_are_compiled_once_by_processes_that_start_together(tmp_path: Path) -> None:
    """Of two processes that call the same kernel at the same moment one compiles, and the other reads its code."""
    call = """
        import json
        import numpy as np
        from roboyard.grids.distance_field import squared_distance_transform
        squared_distance_transform(np.zeros((2, 2), np.bool_))
        print(json.dumps({"misses": sum(squared_distance_transform.stats.cache_misses.values())}))
    """
    processes = [start(call, tmp_path) for _ in range(3)]
    assert sum(result_of(process)["misses"] for process in processes) == 1


COMPILE_SLOWLY = """
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
CALL = """
    import json
    from roboyard.compute import kernel

    @kernel
    def twice(x):
        return 2.0 * x

    print(json.dumps([twice(2.0), sum(twice.stats.cache_hits.values())]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGKILL])
def test_cache_is_whole_after_a_process_ends_while_it_compiles(tmp_path: Path, ended_by: signal.Signals) -> None:
    process = start(COMPILE_SLOWLY, tmp_path, stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "compiling\n"
    (folder,) = tmp_path.glob("__main__.twice-*")
    assert is_locked(folder)
    process.send_signal(ended_by)
    process.communicate()
    assert process.returncode != 0
    assert not is_locked(folder)
    assert result_of(start(CALL, tmp_path)) == [4.0, 0]
    assert result_of(start(CALL, tmp_path)) == [4.0, 1]


def test_lock_excludes_other_processes_until_it_is_released(tmp_path: Path) -> None:
    look = "import sys; from pathlib import Path; from roboyard.compute.kernel_folders import is_locked; "
    look += f"print(is_locked(Path({str(tmp_path)!r})))"
    assert not is_locked(tmp_path)
    with lock_folder(tmp_path):
        assert (
            subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout == "True\n"
        )
    assert not is_locked(tmp_path)


@pytest.mark.slow
def test_code_is_read_from_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    assert result_of(start(CALL, tmp_path)) == [4.0, 0]
    for path in [tmp_path, *tmp_path.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert result_of(start(CALL, tmp_path)) == [4.0, 1]


@kernel(examples=lambda: [(1.0,)])
def halved(x: float) -> float:
    """For the tests below."""
    return 0.5 * x


@kernel
def without_examples(x: float) -> float:
    """For the tests below."""
    return x


def test_first_calls_are_reported_once_with_their_types() -> None:
    told: list[FirstCall] = []

    @kernel
    def tripled(x: float) -> float:
        return 3.0 * halved(x)

    with listen_to_first_calls(told.append):
        assert [tripled(2.0), tripled(4.0), tripled(2)] == [3.0, 6.0, 3.0]
    assert tripled(np.float32(2.0)) == 3.0
    assert [call.name.rpartition(".")[2] for call in told] == ["tripled", "tripled"]  # float64, int64
    assert all(call.seconds > 0.0 for call in told)


def test_kernel_without_examples_cannot_be_expected() -> None:
    with pytest.raises(ValueError, match="without_examples has no examples"):
        expect_kernels(without_examples)


STOPPED = """
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
        thread.join()  # its job was dropped while it was done
    reports = []
    expect_kernels(cast_rays, sum_scores)
    wait_for_kernels(report=lambda progress: reports.append(str(progress)))
    print(json.dumps(reports))
"""


@pytest.mark.slow
def test_other_kernels_are_compiled_after_an_interrupted_wait(tmp_path: Path) -> None:
    reports = result_of(start(STOPPED, tmp_path))
    assert any("sum_scores" in report or "cast_rays" in report for report in reports)


ON_DEMAND = """
    import json
    from roboyard.compute import compile_on_demand, expect_kernels
    from roboyard.compute.precompile import _compilers
    from roboyard.grids.ray_casting import cast_rays
    with compile_on_demand():
        expect_kernels(cast_rays)
    print(json.dumps(len(_compilers._processes)))
"""


def test_nothing_is_compiled_in_the_background_on_demand(tmp_path: Path) -> None:
    assert result_of(start(ON_DEMAND, tmp_path)) == 0


def test_expected_kernels_are_remembered() -> None:
    expect_kernels(halved, halved)
    assert f"{__name__}.halved" in expected_kernels()


def test_progress_counts_and_says_what_is_left() -> None:
    first = CompilationProgress(0, 3, "roboyard.grids.ray_casting.cast_rays", None)
    assert str(first) == "1 of 3 (grids.ray_casting.cast_rays)"
    told = str(CompilationProgress(2, 3, "mine.kernel", 0.2))
    assert told == "3 of 3 (mine.kernel), about 1 s left"


def test_assign_copies_as_numpy_does() -> None:
    for shape in (0, 1, 7):
        source, target = np.random.default_rng(shape).normal(size=shape), np.full(9, np.nan)
        assign(target, source)
        np.testing.assert_array_equal(target[:shape], source)
        assert np.isnan(target[shape:]).all()


def test_read_only_view_has_the_same_memory_and_cannot_be_written() -> None:
    array = np.zeros(3)
    view = read_only(array)
    array[0] = 1.0
    assert view[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 2.0
    array[1] = 2.0  # the array itself can still be written


def test_compilation_in_this_process_is_interrupted_and_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))  # an earlier session's cache may hold the kernel

    @kernel
    def add_three(x: float) -> float:
        return x + 3.0

    with pytest.raises(CompilationInterrupted), monitor_compilation(is_stopped=lambda: True):
        add_three(2.0)
    assert add_three(2.0) == 5.0


def test_wait_for_a_locked_folder_is_interrupted(tmp_path: Path) -> None:
    checks: list[None] = []

    def check() -> None:
        checks.append(None)
        if len(checks) == 3:
            raise CompilationInterrupted

    with lock_folder(tmp_path):
        with pytest.raises(CompilationInterrupted), lock_folder(tmp_path, check):
            pass
        assert is_locked(tmp_path)
    assert len(checks) == 3
    assert not is_locked(tmp_path)


FIRST_CALL = """
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
def test_first_call_waits_for_the_background_and_reports_it(tmp_path: Path) -> None:
    report, misses = result_of(start(FIRST_CALL, tmp_path))
    assert report.startswith("1 of 1 (grids.distance_field.squared_distance_transform)")
    assert misses == 0
