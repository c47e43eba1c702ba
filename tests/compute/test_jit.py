"""Kernels are cached between processes, never stale, and usable without a cache folder."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from roboyard.compute import kernel, registered_kernels
from roboyard.errors import RunError


@kernel(examples=lambda: [(np.zeros(3),)])
def total(values: np.ndarray) -> float:
    """Return the sum of the values."""
    result = 0.0
    for value in values:
        result += value
    return result


def test_kernel_agrees_with_python_and_is_registered() -> None:
    values = np.linspace(0.0, 1.0, 7)
    assert total(values) == total.py_func(values)
    assert total.__doc__ == "Return the sum of the values."
    assert registered_kernels()[f"{__name__}.total"][0] is total


@pytest.mark.parametrize("option", ["fastmath", "parallel", "cache", "nogil"])
def test_kernel_refuses_options_that_break_determinism(option: str) -> None:
    with pytest.raises(ValueError, match=option):
        kernel(**{option: True})


@kernel
def increment_if(value: int, up: bool) -> int:
    """Return ``value``, plus 1 if ``up``; called with constants below."""
    return value + 1 if up else value


@kernel
def sum_of_increments(value: int) -> int:
    """Call `increment_if` with constants and with computed values."""
    return (
        increment_if(0, True) + increment_if(1, False) + increment_if(value, value > 2) + increment_if(value=7, up=True)
    )


def test_constant_arguments_compile_no_further_signature() -> None:
    assert sum_of_increments(5) == 1 + 1 + 6 + 8
    assert increment_if(5, True) == 6
    assert len(increment_if.signatures) == 1  # type: ignore[attr-defined]


PACKAGE = {
    "__init__.py": "",
    "helper.py": """
        import numba
        from roboyard.compute import kernel

        @kernel
        def step(x):
            return x + 1.0

        @numba.njit(cache=True)
        def plain_step(x):
            return x + 1.0
    """,
    "main.py": """
        import json, sys
        import numba
        from roboyard.compute import kernel
        from package.helper import plain_step, step

        @kernel
        def run(x):
            return 10.0 * step(x)

        @numba.njit(cache=True)
        def plain_run(x):
            return 10.0 * plain_step(x)

        result = {"kernel": run(1.0), "plain": plain_run(1.0)}
        result["hits"] = sum(run.stats.cache_hits.values())
        print(json.dumps(result))
    """,
}


@pytest.fixture
def run_package(tmp_path: Path):
    """Return a function that runs a package of two modules with its own caches in a new process."""
    for name, text in PACKAGE.items():
        (tmp_path / "package" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "package" / name).write_text(textwrap.dedent(text))

    def run(**environment: str) -> tuple[dict, str]:
        settings = {"PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")} | environment
        settings["PYTHONDONTWRITEBYTECODE"] = "1"  # Python would not notice edits of equal size within a second
        environment_without_cache = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
        process = subprocess.run(
            [sys.executable, "-m", "package.main"],
            env=environment_without_cache | settings,
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, process.stderr
        return json.loads(process.stdout), process.stderr

    run.folder = tmp_path / "package"
    return run


@pytest.mark.slow
def test_kernel_with_a_changed_helper_is_recompiled(run_package) -> None:
    assert run_package()[0] == {"kernel": 20.0, "plain": 20.0, "hits": 0}
    assert run_package()[0] == {"kernel": 20.0, "plain": 20.0, "hits": 1}  # unchanged: read from disk

    helper = run_package.folder / "helper.py"
    helper.write_text(helper.read_text().replace("x + 1.0", "x + 2.0"))
    changed, _ = run_package()
    assert changed["kernel"] == 30.0
    assert changed["hits"] == 0
    # The control: numba's own cache=True returns stale code after the same change. The keyed folders can be removed
    # when numba fixes this.
    assert changed["plain"] == 20.0


IS_CACHED_SCRIPT = """
    import json
    from roboyard.compute import kernel
    from roboyard.compute.jit import compile_examples, is_cached

    @kernel
    def thrice(x):
        return 3.0 * x

    examples = lambda: [(1.0,)]
    cached = is_cached(thrice, examples)
    loaded = len(thrice.signatures)
    result = thrice(2.0)
    compile_examples(thrice, examples)
    print(json.dumps([cached, loaded, result, sum(thrice.stats.cache_hits.values())]))
"""


@pytest.mark.slow
def test_is_cached_loads_no_code(tmp_path: Path) -> None:
    script = tmp_path / "examples.py"
    script.write_text(textwrap.dedent(IS_CACHED_SCRIPT))

    def run(folder: Path) -> list[object]:
        process = subprocess.run(
            [sys.executable, str(script)], env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return json.loads(process.stdout)

    assert run(tmp_path) == [False, 0, 6.0, 0]
    assert run(tmp_path) == [True, 0, 6.0, 1]
    for code in tmp_path.rglob("*.nbc"):
        code.unlink()
    assert run(tmp_path) == [False, 0, 6.0, 0]
    assert run(script) == [None, 0, 6.0, 0]  # without a cache folder no code is stored


IMPORTED_PACKAGES = {
    "package/main.py": """
        import json
        from roboyard.compute import kernel
        import constants, library
        from constants import Shade
        from library.inner import through
        from named import named

        def make_shift(offset):
            @kernel
            def shift(x):
                return through(x) + offset
            return shift

        shift = make_shift(float(open("offset.txt").read()))

        @kernel
        def run(x):
            read = constants.TABLE[1] + constants.LEVEL + 1.0 * (Shade.DARK.value)
            return shift(x) + library.direct(x) + read + named(x)

        result = {"kernel": run(1.0)}
        result["hits"] = sum(run.stats.cache_hits.values())
        print(json.dumps(result))
    """,
    "library/__init__.py": """
        from roboyard.compute import kernel

        @kernel
        def direct(x):
            return x * 0.0
    """,
    "library/inner.py": """
        from roboyard.compute import kernel
        from deep import deepest

        @kernel
        def through(x):
            return deepest(x)
    """,
    "deep.py": """
        import numba

        @numba.njit
        def deepest(x):
            return x
    """,
    "constants.py": """
        import enum

        import numpy as np

        TABLE = np.array([0.0, 0.0])
        LEVEL = 0.0

        class Shade(enum.IntEnum):
            DARK = 0
    """,
    "compiled.py": """
        import numba

        fast = numba.njit
    """,
    "named.py": """
        from compiled import fast

        @fast
        def named(x):
            return x - x
    """,
}
SOURCE_CHANGES = [
    ("library/__init__.py", "x * 0.0", "x * 2.0", 3.0),
    ("library/inner.py", "deepest(x)", "deepest(x) + 3.0", 4.0),
    ("deep.py", "return x", "return x + 5.0", 6.0),
    ("constants.py", "[0.0, 0.0]", "[0.0, 7.0]", 8.0),
    ("constants.py", "LEVEL = 0.0", "LEVEL = 9.0", 10.0),
    ("constants.py", "DARK = 0", "DARK = 14", 15.0),
    ("named.py", "x - x", "x + x - x + x + 13.0", 16.0),
    ("offset.txt", "0.0", "11.0", 12.0),
]


@pytest.mark.slow
def test_kernel_with_changes_in_other_packages_is_recompiled(run_package, monkeypatch) -> None:
    """The key depends on all kernels that a kernel calls, directly or indirectly, and on constants in its code."""
    root = run_package.folder.parent
    monkeypatch.chdir(root)
    for name, text in IMPORTED_PACKAGES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(textwrap.dedent(text))
    (root / "offset.txt").write_text("0.0")
    assert run_package()[0] == {"kernel": 1.0, "hits": 0}
    assert run_package()[0] == {"kernel": 1.0, "hits": 1}
    for name, old, new, expected in SOURCE_CHANGES:
        before = (root / name).read_text()
        (root / name).write_text(before.replace(old, new))
        assert run_package()[0]["kernel"] == expected, name
        (root / name).write_text(before)


@pytest.mark.slow
def test_cached_code_is_stored_under_the_source_that_was_compiled(run_package) -> None:
    """A process whose source is edited while it runs stores its code under the key of the source it has compiled."""
    helper = run_package.folder / "helper.py"
    original = helper.read_text()
    main = run_package.folder / "main.py"
    text = main.read_text()
    change = "p.write_text(p.read_text().replace('x + 1.0', 'x + 5.0'))"
    edit = f"import pathlib, package.helper as h; p = pathlib.Path(h.__file__); {change}"
    main.write_text(text.replace("result =", f"{edit}\nresult =", 1))
    assert run_package()[0]["kernel"] == 20.0
    main.write_text(text)
    assert run_package()[0]["kernel"] == 60.0
    helper.write_text("# Moved by a line.\n" + original)
    assert (run_package()[0]["kernel"], run_package()[0]["hits"]) == (20.0, 1)


def test_copied_package_uses_the_same_cached_code(run_package, tmp_path) -> None:
    assert run_package()[0]["hits"] == 0
    shutil.copytree(run_package.folder, tmp_path / "copy" / "package")
    assert run_package(PYTHONPATH=str(tmp_path / "copy"))[0]["hits"] == 1


def test_unrelated_kernels_do_not_change_the_key(run_package) -> None:
    helper = run_package.folder / "helper.py"
    run_package()
    helper.write_text(helper.read_text() + "\n\n@kernel\ndef another(x):\n    return x\n")
    assert run_package()[0]["hits"] == 1


KERNEL_CHANGES = [
    ("@kernel\ndef run", '@kernel(error_model="numpy")\ndef run', 4.0),
    ("@kernel\ndef scaled", '@kernel(error_model="numpy")\ndef scaled', 4.0),
    ("(x, y=2.0)", "(x, y=3.0)", 6.0),
]


@pytest.mark.slow
def test_kernel_key_includes_options_defaults_and_fields(run_package) -> None:
    pair = run_package.folder / "pair.py"
    pair.write_text("from collections import namedtuple\nPair = namedtuple('Pair', 'a b')\n")
    main = run_package.folder / "main.py"
    text = textwrap.dedent("""
        import json
        from package.pair import Pair
        from roboyard.compute import kernel

        @kernel
        def scaled(x, y=2.0):
            return x * y

        @kernel
        def run(pair):
            return scaled(pair.a) / pair.b if pair.b else 0.0

        print(json.dumps({"kernel": run(Pair(6.0, 3.0)), "hits": sum(run.stats.cache_hits.values())}))
    """)
    main.write_text(text)
    assert run_package()[0] == {"kernel": 4.0, "hits": 0}
    assert run_package()[0] == {"kernel": 4.0, "hits": 1}
    for old, new, expected in KERNEL_CHANGES:
        main.write_text(text.replace(old, new))
        assert main.read_text() != text
        assert run_package()[0] == {"kernel": expected, "hits": 0}
    main.write_text(text)
    pair.write_text(pair.read_text().replace("a b", "b a"))
    assert run_package()[0] == {"kernel": 1.0, "hits": 0}


def test_kernel_without_cache_folder_warns_once(run_package) -> None:
    blocked = run_package.folder.parent / "blocked"
    blocked.write_text("a file where a folder should be")
    result, errors = run_package(XDG_CACHE_HOME=str(blocked))
    assert result["kernel"] == 20.0
    assert errors.count("compiled kernels cannot be cached") == 1


@pytest.mark.slow
def test_damaged_kernel_cache_is_compiled_again(run_package) -> None:
    run_package()
    files = list((run_package.folder.parent / "cache").rglob("*.nb[ic]"))
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[:20])
    assert run_package()[0]["kernel"] == 20.0
    assert run_package()[0] == {"kernel": 20.0, "plain": 20.0, "hits": 1}


def test_kernel_with_jit_disabled_is_the_function(run_package) -> None:
    main = run_package.folder / "main.py"
    main.write_text(main.read_text().replace("sum(run.stats.cache_hits.values())", "hasattr(run, 'stats')"))
    assert run_package(NUMBA_DISABLE_JIT="1")[0] == {"kernel": 20.0, "plain": 20.0, "hits": False}


def test_error_names_missing_internals_of_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    from roboyard.compute.jit import _find_internals

    monkeypatch.delattr("numba.core.caching.IndexDataCacheFile._load_index")
    monkeypatch.delattr("numba.core.compiler.CompileResult")
    with pytest.raises(RunError, match=r"numba 0.* lacks .*_load_index, compiler.CompileResult._rebuild.*'numba>="):
        _find_internals()


READ_SCRIPT = """
    import sys
    import numpy as np
    from roboyard.compute import kernel

    @kernel
    def total(values):
        return values.sum() + np.array([0.5, 1.5]).max() + len({1, 2})

    @kernel
    def total_of_halves(values):
        return total(0.5 * values)

    @kernel
    def project(values):
        return np.dot(values, np.ones(4))

    values = np.arange(4.0)
    result = total(values)
    print(result, [module for module in ("scipy.linalg", "numba.np.npyimpl") if module in sys.modules])
    print(total_of_halves(values), project(values))  # compiled after other code was loaded
    print(sum(total.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_reading_of_cached_code_imports_neither_scipy_nor_the_compiler(tmp_path: Path) -> None:
    def run(script: str, folder: Path) -> list[str]:
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(script))
        process = subprocess.run(
            [sys.executable, str(path)], env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return process.stdout.splitlines()

    assert run(READ_SCRIPT, tmp_path / "cache")[1:] == ["6.5 6.0", "0"]
    first, second, hits = run(READ_SCRIPT, tmp_path / "cache")
    assert first == "9.5 []"
    assert second == "6.5 6.0"
    assert int(hits) >= 1
    changed = READ_SCRIPT.replace("0.5 * values", "1.5 * values").replace("np.ones(4)", "values")
    assert run(changed, tmp_path / "cache")[:2] == ["9.5 []", "12.5 14.0"]
