"""Exports the results of batches: tables as CSV and Parquet, tests as JUnit XML."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from roboyard.config import atomic_path
from roboyard.errors import InputError, MissingExtraError
from roboyard.scenarios.run_folder import RunFolder, make_write_error

if TYPE_CHECKING:
    from roboyard.scenarios.batch.runner import BatchResult
    from roboyard.scenarios.batch.worker import TrialResult

_RUN_COLUMNS: Final = ("smoke", "success", "error", "state", "seed")
"""Metrics of a run that have their own columns."""
_INVALID_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow."""


def validate_export_path(path: str | Path) -> None:
    """Check before a batch whether its table can be written to a file.

    Raises:
        InputError: The suffix names no format, the folder does not exist, or pyarrow is not installed.
    """
    path = Path(path)
    if path.suffix not in _WRITERS:
        raise InputError(f"cannot export to {path}", location="--export", valid="a name in .csv or .parquet")
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise MissingExtraError("Parquet", "batch", location="--export", alternative="a name in .csv")
    ensure_writable(path, "--export")


def ensure_writable(path: str | Path, location: str) -> None:
    """Check whether a file can be created at a path. Raises InputError."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder", location=location, valid="a file")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}", location=location, valid="a folder that exists")


def export_results(results: Sequence[TrialResult], path: str | Path) -> Path:
    """Write a table with one row per run: seed, varied values (``vary.KEY``), state, and each metric.

    Args:
        results: Results of a batch.
        path: File in `.csv` (missing values are empty) or `.parquet` (missing values are null).

    Raises:
        InputError: As of `validate_export_path`.
        RunError: The file cannot be written.
    """
    path = Path(path)
    validate_export_path(path)
    try:
        _WRITERS[path.suffix](results_table(results), path)
    except OSError as error:
        raise make_write_error(path, error) from error
    return path


def results_table(results: Sequence[TrialResult]) -> dict[str, list[Any]]:
    """Return columns by name, each of one type: bool, int, float or str; None where there is no value."""
    varied = dict.fromkeys(key for result in results for key in result.varied_values)
    metrics = dict.fromkeys(name for result in results for name in result.metrics if name not in _RUN_COLUMNS)
    columns: dict[str, list[Any]] = {"seed": [result.seed for result in results]}
    for key in varied:
        columns[f"vary.{key}"] = [result.varied_values.get(key) for result in results]
    for name in ("state", "success", "reason", "folder"):
        columns[name] = [getattr(result, name) for result in results]
    for name in metrics:
        columns[name] = [result.metrics.get(name) for result in results]
    return {name: _same_type(values) for name, values in columns.items()}


def _same_type(values: list[Any]) -> list[Any]:
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) < 2:
        return values
    kind: type = float if kinds <= {bool, int, float} else str
    return [None if value is None else kind(value) for value in values]


def _write_csv(columns: dict[str, list[Any]], path: Path) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(map(_cell, values) for values in columns.values()), strict=True))
    RunFolder(path.parent).write_text(path, out.getvalue())


def _cell(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _write_parquet(columns: dict[str, list[Any]], path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    with atomic_path(path) as temporary:
        parquet.write_table(pa.table(columns), temporary)


_WRITERS: Final[dict[str, Callable[[dict[str, list[Any]], Path], None]]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}


def write_junit(batches: Sequence[BatchResult], path: str | Path) -> Path:
    """Write batches as JUnit XML for CI systems: one suite per batch, one test per run.

    A run with a failed criterion is a failure; one that was stopped by an error or lost is an error.  A batch with a
    baseline has one more test, which fails if something is worse.

    Raises:
        RunError: The file cannot be written.
    """
    root = Element("testsuites", name="roboyard")
    for batch in batches:
        suite = SubElement(root, "testsuite", name=batch.scenario)
        for result in batch.results:
            _add_test_case(suite, batch.scenario, result)
        if batch.baseline_comparison is not None:
            test = SubElement(suite, "testcase", classname=batch.scenario, name="not worse than the baseline", time="0")
            if batch.baseline_comparison.regressions:
                SubElement(
                    test,
                    "failure",
                    message=_valid_xml_text("worse: " + ", ".join(batch.baseline_comparison.regressions)),
                )
        _add_totals(suite)
    _add_totals(root)
    indent(root)
    path = Path(path)
    text = '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"
    RunFolder(path.parent).write_text(path, text)
    return path


def _add_test_case(suite: Element, scenario: str, result: TrialResult) -> None:
    wall = result.metrics.get("wall_time")
    seconds = f"{wall:.3f}" if isinstance(wall, int | float) else "0"
    test = SubElement(
        suite, "testcase", classname=_valid_xml_text(scenario), name=_valid_xml_text(result.label), time=seconds
    )
    if not result.success:
        kind = "failure" if result.state == "done" else "error"
        problem = SubElement(test, kind, message=_valid_xml_text(result.reason or result.state), type=result.state)
        if result.folder:
            problem.text = _valid_xml_text(result.folder)


def _add_totals(suite: Element) -> None:
    tests = list(suite.iter("testcase"))
    suite.set("tests", str(len(tests)))
    suite.set("failures", str(sum(test.find("failure") is not None for test in tests)))
    suite.set("errors", str(sum(test.find("error") is not None for test in tests)))
    suite.set("skipped", "0")
    suite.set("time", f"{sum(float(test.get('time', '0')) for test in tests):.3f}")


def _valid_xml_text(text: str) -> str:
    return _INVALID_XML.sub("\ufffd", text)
