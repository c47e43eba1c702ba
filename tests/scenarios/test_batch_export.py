"""Tables and JUnit files of batches hold the results, whatever their texts contain."""

import csv
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.errors import InputError, RunError
from roboyard.scenarios.batch import export
from roboyard.scenarios.batch.export import (
    ensure_writable,
    export_results,
    results_table,
    validate_export_path,
    write_junit,
)
from roboyard.scenarios.batch.runner import summarize_batch
from roboyard.scenarios.batch.worker import TrialResult

RESULTS = [
    TrialResult(
        0, "done", True, "", {"seed": 0, "path": 1.5, "hits": 0, "held": True, "smoke": False}, "", {"relief": 0.1}
    ),
    TrialResult(1, "done", False, 'not held: "a", b\nc', {"path": 2, "hits": 3, "held": None}, "b/1", {"relief": 0.2}),
    TrialResult(2, "lost", False, "killed", {}, "", {"relief": 0.3}),
]
METRICS = st.dictionaries(st.sampled_from("abc"), st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9))


def test_csv_has_a_row_for_each_run(tmp_path: Path) -> None:
    with export_results(RESULTS, tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["seed", "vary.relief", "state", "success", "reason", "folder", "path", "hits", "held"]
    assert [row["seed"] for row in rows] == ["0", "1", "2"]
    assert rows[1]["reason"] == 'not held: "a", b\nc'
    assert [row["path"] for row in rows] == ["1.5", "2.0", ""]
    assert [row["held"] for row in rows] == ["true", "", ""]


@given(st.lists(METRICS, max_size=6))
def test_columns_have_one_type_and_equal_length(metrics: list[dict[str, float | None]]) -> None:
    columns = results_table([TrialResult(k, "done", True, "", one) for k, one in enumerate(metrics)])
    for name, values in columns.items():
        assert len(values) == len(metrics)
        assert len({type(value) for value in values if value is not None}) <= 1
        if name in "abc":
            for value, one in zip(values, metrics, strict=True):
                assert value == one.get(name)


def test_parquet_equals_the_table(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    read = parquet.read_table(export_results(RESULTS, tmp_path / "t.parquet"))
    assert read.to_pydict() == results_table(RESULTS)
    assert [str(kind) for kind in read.schema.types] == [
        "int64", "double", "string", "bool", "string", "string", "double", "int64", "bool",
    ]  # fmt: skip


def test_invalid_export_paths_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"\.csv or \.parquet"):
        validate_export_path(tmp_path / "t.xlsx")
    with pytest.raises(InputError, match="no folder"):
        validate_export_path(tmp_path / "no" / "t.csv")
    with pytest.raises(InputError, match="--junit.*a folder"):
        ensure_writable(tmp_path, "--junit")
    monkeypatch.setattr(export, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"Parquet.*pip install 'roboyard\[batch\]'"):
        validate_export_path(tmp_path / "t.parquet")


def test_full_disk_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "t.csv").symlink_to("/dev/full")
    with pytest.raises(RunError, match=r"t\.csv: the disk is full"):
        export_results(RESULTS, tmp_path / "t.csv")


def test_junit_has_a_test_for_each_run(tmp_path: Path) -> None:
    batch = summarize_batch("yard", tmp_path, RESULTS)
    root = ElementTree.parse(write_junit([batch, batch], tmp_path / "j.xml")).getroot()
    assert root.attrib | {"time": ""} == {
        "name": "roboyard", "tests": "6", "failures": "2", "errors": "2", "skipped": "0", "time": "",
    }  # fmt: skip
    suite = root[0]
    assert (suite.get("name"), suite.get("tests"), suite.get("errors")) == ("yard", "3", "1")
    assert suite[0].get("name") == "seed 0, relief=0.1"
    failure = suite[1].find("failure")
    assert failure is not None
    assert failure.text == "b/1"
    assert suite[2].find("error") is not None


@given(reason=st.text(min_size=1), wall=st.none() | st.floats(0, 1e6))
def test_junit_is_valid_xml_for_any_reason(
    tmp_path_factory: pytest.TempPathFactory, reason: str, wall: float | None
) -> None:
    batch = summarize_batch("s", Path(), [TrialResult(0, "done", False, reason, {"wall_time": wall})])
    path = tmp_path_factory.mktemp("junit") / "j.xml"
    root = ElementTree.parse(write_junit([batch], path)).getroot()
    assert float(root.get("time", "")) == pytest.approx(wall or 0.0, abs=1e-3)
    assert root[0][0][0].get("message")
    assert math.isfinite(float(root[0][0].get("time", "")))
