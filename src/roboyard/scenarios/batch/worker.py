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
from roboyard.scenarios.provenance import installed_versions_hash
from roboyard.scenarios.result import RunResult, flatten_metrics
from roboyard.scenarios.run_folder import RunFolder, make_write_error
from roboyard.scenarios.run_options import RunOptions


@dataclass(frozen=True, slots=True)
class TrialJob:
    """Job of a worker: plain data, so that it can be sent to any kind of worker.

    Attributes:
        scenario: Name of the scenario, or path of its file.
        seed: Seed of the run.
        overrides: Overrides of the scenario.
        smoke: Whether to run the smoke variant.
        stored_runs: Runs whose folders stay on disk: "all", "failed" or "none".
        folder: Folder of the run; nothing is written or removed there if ``stored_runs`` is "none".
        video: Whether to make a video of a failed run.
        varied_values: Values that vary between runs, by key.
        lock: Hash of the batch's package versions (`installed_versions_hash`): workers on other machines must have the
            same.
    """

    scenario: str
    seed: int
    overrides: tuple[str, ...]
    smoke: bool
    folder: str
    stored_runs: str
    video: bool = False
    varied_values: dict[str, ScalarValue] = field(default_factory=dict)
    lock: str = ""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Result of a trial.

    Attributes:
        seed: Seed of the run.
        state: "done", "failed", "interrupted", or "lost" when the worker died.
        success: Whether all criteria passed.
        reason: Why it was no success.
        metrics: Metrics by the names that criteria use.
        folder: Folder of the run; "" if it was not kept.
        varied_values: Values that vary between runs, by key.
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
        """Whether the run came to its own end: a batch that is continued does not repeat it."""
        return self.state not in ("lost", "interrupted")

    def metric(self, name: str) -> float | None:
        """Return a metric of the whole run.

        None if it is no number or the run did not reach its end, since it could not be compared with that of complete
        runs.
        """
        value = self.metrics.get(name)
        return float(value) if self.state == "done" and isinstance(value, int | float) else None

    @property
    def key(self) -> str:
        """Key of the run, the same in every batch."""
        return trial_key(self.seed, self.varied_values)

    @property
    def label(self) -> str:
        """Label of the run: "seed 3, height_range=0.1"."""
        return ", ".join((f"seed {self.seed}", *(f"{key}={value}" for key, value in self.varied_values.items())))


def trial_key(seed: int, varied_values: Mapping[str, ScalarValue]) -> str:
    """Return the key that a run has in every batch: its seed and varied values."""
    return json.dumps([seed, dict(varied_values)], sort_keys=True)


@lru_cache(maxsize=8)
def _load_scenario(scenario: str, overrides: tuple[str, ...], smoke: bool) -> LoadedScenario:
    return load_scenario(scenario, overrides=overrides, smoke=smoke)


def run_trial(job: TrialJob) -> TrialResult:
    """Run one seed; camera images are not recorded in batches.

    A run that cannot start gives a result with its reason instead of an exception, so that the other runs are executed.
    """
    folder = Path(job.folder) if job.stored_runs != "none" else None
    try:
        spec = _load_scenario(job.scenario, (*job.overrides, "record.camera_rate=0"), job.smoke).with_seed(job.seed)
        options = RunOptions(
            out=folder,
            write_files=folder is not None,
            write_report=job.stored_runs == "all",
            video="on_failure" if job.video else "never",
            serve=False,
        )
        outcome = run_scenario(spec, options)
    except RoboyardError as error:
        _delete_folder(folder)
        return TrialResult(job.seed, "failed", False, str(error), varied_values=job.varied_values)
    return _to_result(job, outcome)


def run_trial_remote(job: TrialJob) -> tuple[TrialResult, bytes]:
    """Run one seed on a machine without the batch's file system; return the result and a tar archive of the folder.

    Raises:
        RunError: This machine has other package versions than the batch.
    """
    if job.lock and job.lock != installed_versions_hash():
        raise RunError("a machine of the cluster has other versions of packages", valid="the same on all machines")
    with tempfile.TemporaryDirectory(prefix="roboyard-") as folder:
        result = run_trial(replace(job, folder=str(Path(folder) / "run") if job.folder else ""))
        return result, _pack_folder(Path(result.folder)) if result.folder else b""


def unpack_archive(job: TrialJob, result: TrialResult, archive: bytes) -> TrialResult:
    """Unpack the folder of a run on another machine into the folder of the batch, and return the result with its path.

    Raises:
        RunError: The folder cannot be written.
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
    """Return the result of a run that ended without a reply to the batch; None if it did not end.

    Metrics are written before the video is rendered, so a worker that dies then only loses the video.
    """
    folder = RunFolder(Path(job.folder))
    if job.stored_runs == "none" or not folder.metrics.is_file():
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
    """Return the result of a run, and remove its folder unless the batch keeps it."""
    is_stored = job.stored_runs == "all" or (job.stored_runs == "failed" and not outcome.success)
    if not is_stored:
        _delete_folder(Path(job.folder) if job.stored_runs != "none" else None)
    elif outcome.folder is not None and outcome.state != "interrupted":  # that one is made again, and somebody waits
        _ensure_report(outcome.folder)
    return TrialResult(
        job.seed,
        outcome.state,
        outcome.success,
        outcome.failure_reason,
        flatten_metrics(outcome.metrics),
        job.folder if is_stored else "",
        job.varied_values,
    )


def _delete_folder(folder: Path | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _ensure_report(folder: Path) -> None:
    """Write the report of a run if there is none."""
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
