"""One trial of a batch, in a worker process; importing this module loads what a run needs."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from roboyard.errors import InputError, RoboyardError, RunError
from roboyard.evaluation.collector import MetricValue
from roboyard.scenarios.batch.sampling import ScalarValue
from roboyard.scenarios.execution import run_scenario
from roboyard.scenarios.loading import LoadedScenario, load_scenario
from roboyard.scenarios.provenance import lock_hash
from roboyard.scenarios.result import RunResult, flatten_metrics
from roboyard.scenarios.run_folder import RunFolder, make_write_error
from roboyard.scenarios.run_options import RunOptions


@dataclass(frozen=True, slots=True)
class TrialJob:
    """What a worker is told: plain data, so that it travels to any kind of worker.

    Attributes:
        scenario: A name, or a file.
        seed: Of the run.
        overrides: Further settings.
        smoke: The short variant.
        keep: Whose files stay: "all", "failed" or "none".
        folder: For them; nothing is written, or removed, where none are kept.
        video: Make one of a failed run.
        varied: What the overrides vary from run to run, by key.
        lock: Of the batch's packages (`lock_hash`): workers of other machines must have the same.
    """

    scenario: str
    seed: int
    overrides: tuple[str, ...]
    smoke: bool
    folder: str
    keep: str
    video: bool = False
    varied_values: dict[str, ScalarValue] = field(default_factory=dict)
    lock: str = ""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What a worker answers.

    Attributes:
        seed: Of the run.
        state: "done", "failed", "interrupted", or "lost" when the worker died.
        success: Whether the criteria held.
        reason: Why not.
        metrics: Numbers under the names that criteria use.
        folder: Where the run was kept; "" if it was not.
        varied: What was varied in it, by key.
    """

    seed: int
    state: str
    success: bool
    reason: str = ""
    metrics: dict[str, MetricValue] = field(default_factory=dict)
    folder: str = ""
    varied_values: dict[str, ScalarValue] = field(default_factory=dict)

    @property
    def is_finished(self) -> bool:
        """Whether it came to an end of its own: a batch that goes on does not repeat it."""
        return self.state not in ("lost", "interrupted")

    def metric(self, name: str) -> float | None:
        """A metric of the whole run; None where it is no number, or the run broke off: what was measured until then
        is no match for others."""
        value = self.metrics.get(name)
        return float(value) if self.state == "done" and isinstance(value, int | float) else None

    @property
    def key(self) -> str:
        """What makes it the same run in another batch."""
        return trial_key(self.seed, self.varied_values)

    @property
    def label(self) -> str:
        """How it is called: "seed 3, relief=0.1"."""
        return ", ".join((f"seed {self.seed}", *(f"{key}={value}" for key, value in self.varied_values.items())))


def trial_key(seed: int, varied_values: Mapping[str, ScalarValue]) -> str:
    """What makes a run the same in two batches."""
    return json.dumps([seed, dict(varied_values)], sort_keys=True)


@lru_cache(maxsize=8)
def _load_scenario(scenario: str, overrides: tuple[str, ...], smoke: bool) -> LoadedScenario:
    return load_scenario(scenario, overrides=overrides, smoke=smoke)


def run_trial(job: TrialJob) -> TrialResult:
    """Run one seed; cameras are not recorded in batches.

    A run that cannot start is a result with its reason, not an exception: the others shall go on.
    """
    folder = Path(job.folder) if job.keep != "none" else None
    try:
        spec = _load_scenario(job.scenario, (*job.overrides, "record.camera_rate=0"), job.smoke).with_seed(job.seed)
        options = RunOptions(
            out=folder,
            keep_files=folder is not None,
            write_report=job.keep == "all",
            video="on_failure" if job.video else "never",
            serve=False,
        )
        outcome = run_scenario(spec, options)
    except RoboyardError as error:
        _delete_folder(folder)
        return TrialResult(job.seed, "failed", False, str(error), varied_values=job.varied_values)
    return _to_result(job, outcome)


def run_trial_remote(job: TrialJob) -> tuple[TrialResult, bytes]:
    """Run one seed on a machine that shares no files with the batch's: what is kept comes back as a tar archive.

    Raises:
        RunError: this machine has other versions of packages than the batch's.
    """
    if job.lock and job.lock != lock_hash():
        raise RunError("a machine of the cluster has other versions of packages", valid="the same on all machines")
    with tempfile.TemporaryDirectory(prefix="roboyard-") as folder:
        result = run_trial(replace(job, folder=str(Path(folder) / "run") if job.folder else ""))
        return result, _pack_folder(Path(result.folder)) if result.folder else b""


def unpack_archive(job: TrialJob, result: TrialResult, archive: bytes) -> TrialResult:
    """Put what a run on another machine left into its folder here.

    Raises:
        RunError: it cannot be written.
    """
    if not result.folder:
        return result
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(job.folder, filter="data")
    except OSError as error:
        raise make_write_error(Path(job.folder), error) from error
    return replace(result, folder=job.folder)


def recover_result(job: TrialJob) -> TrialResult | None:
    """The result of a run that ended without the batch hearing of it; None if it did not end.

    Its numbers are written before its film is drawn: whatever ends the worker then costs the film alone.
    """
    folder = RunFolder(Path(job.folder))
    if job.keep == "none" or not folder.metrics.is_file():
        return None
    try:
        document = folder.read_metrics()
        is_same_run = document["state"] in ("done", "failed") and document["seed"] == job.seed
        if not is_same_run or bool(document["smoke"]) != job.smoke:
            return None
        outcome = RunResult(
            document["scenario"], job.seed, document["state"], document["success"], document["error"], document,
            folder.path,
        )  # fmt: skip
        if not folder.report.is_file():
            folder.video.unlink(missing_ok=True)  # the report is written after the film: that one is torn
        return _to_result(job, outcome)
    except (InputError, KeyError, TypeError):
        return None


def _to_result(job: TrialJob, outcome: RunResult) -> TrialResult:
    """The result of a run, of which stays what the batch keeps."""
    is_kept = job.keep == "all" or (job.keep == "failed" and not outcome.success)
    if not is_kept:
        _delete_folder(Path(job.folder) if job.keep != "none" else None)
    elif outcome.folder is not None and outcome.state != "interrupted":  # that one is made again, and somebody waits
        _ensure_report(outcome.folder)
    metrics = {name: value for name, value in flatten_metrics(outcome.metrics).items() if name != "seed"}
    return TrialResult(
        job.seed,
        outcome.state,
        outcome.success,
        outcome.failure_reason,
        metrics,
        job.folder if is_kept else "",
        job.varied_values,
    )


def _delete_folder(folder: Path | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _ensure_report(folder: Path) -> None:
    """Write its report if there is none."""
    if RunFolder(folder).report.is_file():
        return
    from roboyard.scenarios.report_regeneration import regenerate_report

    regenerate_report(folder)


def _pack_folder(folder: Path) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, arcname=path.name)
    return out.getvalue()
