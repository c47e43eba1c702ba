"""The page of acceptance says of each scenario how often it succeeded, and why not."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
MACHINE = {"processor": "P", "cores": 2, "system": "Debian"}


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """tools/acceptance.py, which is in no package."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import acceptance
    finally:
        sys.path.pop(0)
    return acceptance


def test_page_names_rates_seeds_and_reasons(tool: ModuleType) -> None:
    failures = [{"seed": seed, "reason": reason, "folder": ""} for seed, reason in ((8, "a | b"), (9, "c"), (10, "c"))]
    numbers = {"smoke": {"maximum": 0.0}, "real_time_factor": {"median": 7.84}}
    good = {"runs": 4, "successes": 4, "success_low": 0.51, "success_high": 1.0, "failures": [], "metrics": numbers}
    bad = {"runs": 5, "successes": 2, "success_low": 0.118, "success_high": 0.769, "failures": failures, "metrics": {}}
    suite = {
        "scenarios": {
            "good": good,
            "bad": bad,
        },
        "start_errors": {"odd": "no such world"},
        "runs": 9,
        "successes": 6,
    }
    page = tool.page(suite, {"good": 0, "bad": 7}, MACHINE, "abc")
    assert "| `good` | 0 to 3 | 4 of 4 | 51% to 100% | 7.8 |  |" in page
    assert "| `bad` | 7 to 11 | 2 of 5 | 12% to 77% |  | 2 × c; 1 × a \\| b |" in page
    assert "| `odd` | | | | | no such world |" in page
    assert "6 of 9 runs succeeded. Commit abc; P, 2 cores, Debian. " in page
    assert "smoke" not in page
    assert "$ roboyard batch good bad --runs 5\n" in page
    assert "$ roboyard batch good bad --runs 5 --seed 7\n" in tool.page(suite, {"good": 7, "bad": 7}, MACHINE, "abc")


def test_short_variants_differ_from_whole_scenarios(tool: ModuleType) -> None:
    one = {"runs": 2, "successes": 2, "success_low": 0.34, "success_high": 1.0, "failures": []}
    suite = {
        "scenarios": {"a": one | {"metrics": {"smoke": {"maximum": 1.0}}}},
        "start_errors": {},
        "runs": 2,
        "successes": 2,
    }
    page = tool.page(suite, {"a": 0}, MACHINE, "abc")
    assert "$ roboyard batch a --runs 2 --seed 0 --smoke\n" in page
    assert "Only the first seconds of each scenario" in page


def test_first_seed_equals_that_of_the_results(tool: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text('{"seed": 12}\n{"seed": 11}\n')
    assert tool.first_seed(tmp_path) == 11
