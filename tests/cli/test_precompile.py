"""`roboyard precompile`: kernels compiled ahead, of scenarios or of the whole package."""

import json

import pytest
from tests.harness.live_bus import run_cli


@pytest.fixture
def small_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's kernels are those of one module."""
    monkeypatch.setattr("roboyard.compute.precompile.kernel_modules", lambda: iter(["roboyard.grids.voxel_filter"]))


def test_all_kernels_are_counted_with_the_folder_that_holds_them(small_package: None) -> None:
    result = run_cli("precompile", "--all")
    assert result.code == 0, result.err
    assert "kernels ready in " in result.out


def test_all_kernels_as_json_name_those_without_examples(small_package: None) -> None:
    result = run_cli("precompile", "--all", "--json")
    assert result.code == 0, result.err
    response = json.loads(result.out)
    assert response["kernels"] >= 1
    assert all(name.startswith("roboyard.grids.voxel_filter.") for name in response["without_examples"])


def test_kernels_of_a_scenario_are_expected(small_package: None) -> None:
    result = run_cli("precompile", "rover-drive", "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["kernels"] > 1


@pytest.mark.parametrize("words", [["precompile"], ["precompile", "--all", "rover-drive"]])
def test_neither_or_both_are_refused(words: list[str]) -> None:
    result = run_cli(*words)
    assert result.code == 2
    assert "names of scenarios, or --all alone" in result.err


def test_unknown_scenario_is_named() -> None:
    result = run_cli("precompile", "no-such-scenario")
    assert result.code == 2
    assert "no-such-scenario" in result.err
