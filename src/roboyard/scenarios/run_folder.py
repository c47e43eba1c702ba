"""The folder that a run leaves: recording, metrics, report and the scenario as it was run."""

from __future__ import annotations

import errno
import io
import json
import re
import zipfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from roboyard.config import write_atomic
from roboyard.errors import InputError, RunError
from roboyard.grids.floor_plan import TopDownMap

RECORDING, METRICS, REPORT, SCENARIO, VIDEO, ERROR, TOP_DOWN_MAP = (
    "recording.mcap",
    "metrics.json",
    "report.html",
    "scenario.yaml",
    "video.mp4",
    "error.txt",
    "top_down_map.npz",
)


class RunFolder:
    """One run's folder.  It is made new and never overwrites anything.

    Args:
        path: From ``create_numbered_folder`` or ``prepare_folder``.
        is_new: Whether it was made for this run.
    """

    def __init__(self, path: Path, *, is_new: bool = False) -> None:
        self.path = path
        self._is_new = is_new

    @property
    def recording(self) -> Path:
        """The messages."""
        return self.path / RECORDING

    @property
    def metrics(self) -> Path:
        """The numbers."""
        return self.path / METRICS

    @property
    def report(self) -> Path:
        """The page."""
        return self.path / REPORT

    @property
    def scenario(self) -> Path:
        """The scenario as run."""
        return self.path / SCENARIO

    @property
    def error(self) -> Path:
        """The traceback of what stopped the run; not there if nothing did."""
        return self.path / ERROR

    @property
    def video(self) -> Path:
        """The video; missing if none was requested."""
        return self.path / VIDEO

    @property
    def top_down_map(self) -> Path:
        """The world from above at the end of the run, for reports that are written again; missing without a report."""
        return self.path / TOP_DOWN_MAP

    def files(self) -> dict[str, Path]:
        """What lies there for its reader, by kind."""
        file_names = {
            "report": REPORT,
            "video": VIDEO,
            "recording": RECORDING,
            "metrics": METRICS,
            "scenario": SCENARIO,
            "error": ERROR,
        }
        return {kind: self.path / name for kind, name in file_names.items() if (self.path / name).is_file()}

    def discard(self) -> None:
        """Remove what a run that could not start has left, and the folder if it was made for it."""
        for path in (*self.files().values(), self.top_down_map):
            path.unlink(missing_ok=True)
        if self._is_new:
            with suppress(OSError):
                self.path.rmdir()

    def write_text(self, path: Path, text: str | bytes) -> None:
        """Write a file whole or not at all: readers never see half of it, even when the process is killed.

        Raises:
            RunError: the disk is full or the folder cannot be written.
        """
        try:
            write_atomic(path, text)
        except OSError as error:
            raise make_write_error(path, error) from error

    def write_json(self, path: Path, data: Any) -> None:
        """Write data as JSON; see ``write_text``."""
        self.write_text(path, json.dumps(data, indent=2, allow_nan=False) + "\n")

    def write_top_down_map(self, top_down_map: TopDownMap) -> None:
        """Write the world from above; see ``write_text``."""
        content = io.BytesIO()
        arrays = {name: value for name, value in asdict(top_down_map).items() if value is not None}
        np.savez_compressed(content, **arrays)
        self.write_text(self.top_down_map, content.getvalue())

    def read_top_down_map(self) -> TopDownMap | None:
        """Return the world from above at the end of the run; None if the run left none.

        Raises:
            InputError: The file is damaged.
        """
        if not self.top_down_map.is_file():
            return None
        try:
            with np.load(io.BytesIO(self.top_down_map.read_bytes()), allow_pickle=False) as arrays:
                x, y = arrays["origin"].tolist()
                return TopDownMap(
                    arrays["low_obstacles"], arrays["tall_obstacles"], (x, y), float(arrays["resolution"]),
                    arrays.get("movable_obstacles"),
                )  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(f"cannot be read: {error}", location=str(self.top_down_map)) from error

    def read_metrics(self) -> dict[str, Any]:
        """What metrics.json says.

        Raises:
            InputError: this is not the folder of a run, or the file is damaged.
        """
        try:
            data = json.loads(self.metrics.read_text("utf-8"))
        except FileNotFoundError as error:
            raise InputError(
                f"{self.path} holds no {METRICS}", valid="the folder of a run, e.g. runs/rover-drive-001"
            ) from error
        except (OSError, ValueError) as error:
            raise InputError(f"cannot be read: {error}", location=str(self.metrics)) from error
        if not isinstance(data, dict):
            raise InputError("holds no metrics", location=str(self.metrics))
        return data


def create_numbered_folder(name: str, parent: Path | str = "runs") -> RunFolder:
    """A new folder ``<base>/<name>-<NNN>``, numbered after those that exist.

    Raises:
        RunError: it cannot be made.
    """
    safe_name = re.sub(r"[^A-Za-z0-9._-]+", "_", name) or "run"
    folder = Path(parent)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        pattern = re.compile(re.escape(safe_name) + r"-(\d{3,9})")
        numbers = [int(match[1]) for path in folder.iterdir() if (match := pattern.fullmatch(path.name))]
        number = max(numbers, default=0)
        while True:
            number += 1
            path = folder / f"{safe_name}-{number:03d}"
            try:
                path.mkdir()
            except FileExistsError:
                continue  # another run took the number at this moment
            return RunFolder(path, is_new=True)
    except OSError as error:
        raise make_write_error(folder, error) from error


def prepare_folder(path: Path | str) -> RunFolder:
    """The folder the user asked for: made if it is not there, taken if it is empty.

    Raises:
        InputError: it holds something already, or is no folder.
        RunError: it cannot be made.
    """
    folder = Path(path)
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InputError(f"{folder} is not empty", valid="a new or empty folder: runs are never overwritten")
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(f"{folder} is no folder", valid="a new or empty folder") from error
    except OSError as error:
        raise make_write_error(folder, error) from error
    return RunFolder(folder, is_new=is_new)


def make_write_error(path: Path, error: OSError) -> RunError:
    """The one error for files that cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RunError("the disk is full", location=str(path), valid="free some space, or choose another --out")
    return RunError(f"cannot be written: {error.strerror or error}", location=str(path))
