"""Each profile tries as many examples of each kind of law as it shall, and no fewer laws."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from tests.harness.profiles import sample_count, scaled

LAWS = """
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from tests.harness.profiles import pytest_collection_modifyitems, register_profiles

count = dict.fromkeys(("written", "unset", "few", "one", "two", "method"), 0)
machines = []
numbers = st.integers(0, 10**12)

@settings(max_examples=30)
@given(numbers)
def test_written(x): count["written"] += 1

@given(numbers)
def test_unset(x): count["unset"] += 1

@settings(max_examples=3)
@given(numbers)
def test_few(x): count["few"] += 1

@pytest.mark.parametrize("name", ["one", "two"])
@settings(max_examples=30)
@given(numbers)
def test_parametrized(name, x): count[name] += 1

class TestMethod:
    @settings(max_examples=30)
    @given(numbers)
    def test_it(self, x): count["method"] += 1

class Machine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        machines.append(self)

    @rule(x=numbers)
    def step(self, x): pass

Machine.TestCase.settings = settings(max_examples=30, stateful_step_count=5, deadline=None)
TestMachine = Machine.TestCase

def test_zz_print():
    print("COUNTS", count | {"machines": len(machines)})
"""

CONFTEST = """
from tests.harness.profiles import pytest_collection_modifyitems, register_profiles
register_profiles()
"""


@pytest.mark.parametrize(
    ("profile", "written", "unset", "few"), [("quick", 20, 20, 3), ("ci", 30, 100, 3), ("nightly", 300, 1000, 30)]
)
def test_profile_scales_every_kind_of_law(profile: str, written: int, unset: int, few: int, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_laws.py").write_text(LAWS)
    words = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", f"--rootdir={tmp_path}"]
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [*words, "-o", f"pythonpath={root}", "--hypothesis-profile", profile, str(tmp_path)],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert "8 passed" in done.stdout, done.stdout + done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "COUNTS" in line]
    counts = eval(line[line.index("{") :])
    machines = counts.pop("machines")
    assert counts == {
        "written": written,
        "unset": unset,
        "few": few,
        **dict.fromkeys(("one", "two", "method"), written),
    }
    assert written <= machines <= 1.2 * written + 1  # some that Hypothesis made were not taken as examples


def test_no_profile_leaves_a_law_out() -> None:
    assert all(scaled(examples, profile) >= 1 for examples in (1, 7, 10_000) for profile in ("quick", "ci", "nightly"))


def test_only_the_nightly_profile_takes_all_samples_of_a_test() -> None:
    loaded, counts = settings.get_current_profile_name(), {}
    try:
        for profile in ("quick", "ci", "nightly"):
            settings.load_profile(profile)
            counts[profile] = [sample_count(full, 0.25) for full in (1, 40, 150)]
    finally:
        settings.load_profile(loaded)
    assert counts == {"quick": [1, 10, 38], "ci": [1, 10, 38], "nightly": [1, 40, 150]}
