"""The folder of a batch: one line per result while it runs, and batch.json with all results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TextIO

from roboyard.errors import InputError
from roboyard.scenarios.batch.worker import TrialResult
from roboyard.scenarios.provenance import collect_provenance
from roboyard.scenarios.run_folder import RunFolder, create_numbered_folder, make_write_error

RESULTS: Final = "results.jsonl"
SUMMARY: Final = "batch.json"
REPORT: Final = "report.html"
FORMAT: Final = 2
"""Format of batch.json. Format 1 had no results in it; they are in results.jsonl."""


class BatchFolder:
    """Folder of a batch.

    Args:
        path: Path from `open_batch_folder`.
        header: Options that identify the batch.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path = path
        self._header = header

    def results(self) -> list[TrialResult]:
        """Return the stored results in the order in which the runs ended."""
        return list(read_results(self.path / RESULTS))

    def log(self) -> TextIO:
        """Open the file to which results are appended, one per line; an incomplete line is completed."""
        path = self.path / RESULTS
        try:
            torn = path.is_file() and not path.read_bytes().endswith(b"\n")
            file = path.open("a", encoding="utf-8")
            if torn and path.stat().st_size:
                file.write("\n")
            return file
        except OSError as error:
            raise make_write_error(path, error) from error

    def write(self, results: list[TrialResult], summary: Mapping[str, Any]) -> None:
        """Write batch.json with all results, which can be the baseline of later batches."""
        document = {
            **self._header,
            "made": collect_provenance().metadata(),
            "summary": summary,
            "results": [asdict(result) for result in results],
        }
        RunFolder(self.path).write_json(self.path / SUMMARY, {"format": FORMAT, **document})


def open_batch_folder(name: str, out: str | Path | None, base: str | Path, header: Mapping[str, Any]) -> BatchFolder:
    """Open the folder of a batch: a new one, or one that holds the same batch.

    Raises:
        InputError: The folder is not empty and holds no batch, or holds another batch.
        RunError: The folder cannot be created.
    """
    folder = Path(out) if out is not None else create_numbered_folder(f"{name}-batch", base).path
    if folder.is_dir() and any(folder.iterdir()):
        summary = folder / SUMMARY
        if not summary.is_file():
            raise InputError(f"{folder} is not empty and holds no batch", valid="a new folder, or that of the batch")
        stored_header = read_header(summary)
        for key in dict.fromkeys((*header, *_OPTIONAL_HEADER_KEYS)):
            if stored_header.get(key) != header.get(key):
                raise InputError(
                    f"the batch in {folder} ran with {key} {stored_header.get(key)!r}, not {header.get(key)!r}",
                    valid="another folder",
                )
        return BatchFolder(folder, header)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise make_write_error(folder, error) from error
    RunFolder(folder).write_json(folder / SUMMARY, {"format": FORMAT, **header})
    return BatchFolder(folder, header)


_OPTIONAL_HEADER_KEYS: Final = ("vary", "design", "points")
"""Keys that only some batches have, and that are the same for all runs of a batch."""


def read_header(path: Path) -> dict[str, Any]:
    """Return the content of batch.json.

    Raises:
        InputError: The file cannot be read, is not the summary of a batch, or has a newer format.
    """
    try:
        header = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", location=str(path), valid=f"the {SUMMARY} of a batch") from error
    if not isinstance(header, dict) or not isinstance(header.get("scenario"), str):
        raise InputError("is not the summary of a batch", location=str(path), valid=f"the {SUMMARY} of a batch")
    version = header.get("format", 1)
    if version not in (1, FORMAT):
        raise InputError(
            f"is of format {version!r}, which this version of Roboyard does not know", location=str(path),
            valid=f"formats 1 to {FORMAT}",
        )  # fmt: skip
    return header


def read_results(path: Path) -> Iterator[TrialResult]:
    """Iterate over the results, one per line; an incomplete line is skipped."""
    if not path.is_file():
        return
    for line in path.read_text("utf-8").splitlines():
        try:
            yield TrialResult(**json.loads(line))
        except (ValueError, TypeError):
            continue
