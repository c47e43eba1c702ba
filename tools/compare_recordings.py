"""Compare all scenarios' smoke variants at two revisions, message by message.

``tools/compare_recordings.py OLD [NEW]`` runs each scenario's smoke variant at both (NEW is the working tree if not
given), and compares recordings, metrics and verdicts under the table of renames.  Runs are kept, so that a later
comparison with the same revision costs half.

Exit code 0: all that was compared is equal; 1: something differs, a scenario of OLD is missing at NEW, or a run failed;
2: the input was wrong; 130: Ctrl-C, which leaves what is done.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from metrics_diff import MetricDifference, compare_metrics
from recording_diff import Difference, TopicCount, compare_recordings
from recording_renames import EXCLUDED, Renames, read_renames
from smoke_runs import Job, SmokeRun, SmokeRunner, default_store, home_of, list_scenarios, read_metrics, scratch_folder

from roboyard.cli.exit_codes import report_error
from roboyard.cli.revisions import Revision, find_repository, open_revision, open_working_tree
from roboyard.cli.terminal import print_json, print_line, print_note
from roboyard.compute import count_usable_cores
from roboyard.errors import InputError, RecordingError, RoboyardError

ROOT = Path(__file__).resolve().parent.parent
RENAMES = Path(__file__).resolve().parent / "renames.toml"
EQUAL, DIFFERENT, FAILED = "equal", "different", "failed"
SHOWN = 6
"""Topics and metrics that are told of a scenario that differs; --json tells all."""


@dataclass(slots=True)
class ScenarioResult:
    """What came of one scenario.

    Attributes:
        verdict: `EQUAL`, `DIFFERENT`, or `FAILED` where a run came to no end.
        differences: The first on each topic, in order of time.
        topics: Messages by topic.
        metrics: What differs in metrics.json, verdicts first.
        notes: What is to be known beside.
        errors: Why a run failed, by side.
    """

    verdict: str = EQUAL
    differences: list[Difference] = field(default_factory=list)
    topics: dict[str, TopicCount] = field(default_factory=dict)
    metrics: list[MetricDifference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        differences = [one.to_dict() for one in self.differences]
        return {
            "verdict": self.verdict,
            "first": differences[0] if differences else None,
            "differences": differences,
            "topics": {topic: asdict(count) for topic, count in sorted(self.topics.items())},
            "metrics": [one._asdict() for one in self.metrics],
            "notes": self.notes,
            "errors": self.errors,
        }


def compare_runs(old: SmokeRun, new: SmokeRun, renames: Renames, tolerance: float) -> ScenarioResult:
    """Compare what two runs of a scenario left."""
    result = ScenarioResult(errors={side: run.error for side, run in (("old", old), ("new", new)) if run.error})
    recordings = [run.folder / "recording.mcap" for run in (old, new)]
    if all(path.is_file() for path in recordings):
        try:
            found = compare_recordings(recordings[0], recordings[1], renames, tolerance)
        except RecordingError as error:
            result.errors["comparison"] = str(error)
        else:
            result.differences, result.topics, result.notes = found.differences, found.topics, found.notes
    metrics = [read_metrics(run.folder) for run in (old, new)]
    if all(metrics):
        result.metrics = compare_metrics(metrics[0], metrics[1], renames)
    if result.errors:
        result.verdict = FAILED
    elif result.differences or result.metrics:
        result.verdict = DIFFERENT
    return result


@dataclass(frozen=True, slots=True)
class Plan:
    """Which scenarios are compared.

    Attributes:
        pairs: Old name to new name.
        only_old: Names at the old revision whose counterpart is missing.
        only_new: Names at the new one, likewise.
        excluded: Old names that the table leaves out.
    """

    pairs: dict[str, str]
    only_old: list[str]
    only_new: list[str]
    excluded: list[str]


def plan_scenarios(old: Sequence[str], new: Sequence[str], wanted: Sequence[str], renames: Renames) -> Plan:
    """Pair the scenarios of both revisions.

    Args:
        old: Names at the old revision.
        new: Names at the new one.
        wanted: The old or new names of those that are compared; all if empty.
        renames: What is called otherwise.

    Raises:
        InputError: nobody knows a wanted name.
    """
    names = {name: renames.new_name("scenarios", name) for name in old}
    for name in wanted:
        if name not in names and name not in new:
            raise InputError(f"no scenario {name!r} at either revision", valid=", ".join(sorted({*old, *new})))
    chosen = {a: b for a, b in names.items() if not wanted or a in wanted or b in wanted}
    excluded = [a for a in chosen if renames.excludes("scenarios", a)]
    chosen = {a: b for a, b in chosen.items() if a not in excluded}
    only_new = [b for b in new if b not in names.values() and (not wanted or b in wanted)]
    pairs = {a: b for a, b in chosen.items() if b in new}
    return Plan(pairs, [a for a in chosen if a not in pairs], only_new, excluded)


def show(name: str, new_name: str, result: ScenarioResult) -> None:
    """Tell one scenario's result."""
    title = name if name == new_name else f"{name} → {new_name}"
    total = sum(count.new for count in result.topics.values())
    print_line(f"{result.verdict:<10} {title}  ({total:,} messages on {len(result.topics)} topics)")
    for side, error in result.errors.items():
        print_line(f"    {side}: {error}")
    if result.differences:
        print_line(f"    first: {result.differences[0]}")
    counts = [(topic, count) for topic, count in result.topics.items() if count.different]
    for topic, count in sorted(counts, key=lambda item: -item[1].different)[:SHOWN]:
        print_line(f"    {topic}: {count.different:,} differ of {count.old:,} old and {count.new:,} new messages")
    if len(counts) > SHOWN:
        print_line(f"    and {len(counts) - SHOWN} more topics")
    for one in result.metrics[:SHOWN]:
        print_line(f"    metrics.json {one}")
    if len(result.metrics) > SHOWN:
        print_line(f"    metrics.json differs in {len(result.metrics) - SHOWN} more values")
    for line in result.notes:
        print_line(f"    note: {line}")


def summary(results: Mapping[str, ScenarioResult], plan: Plan, renames: Renames, tolerance: float) -> list[str]:
    """Lines below all results: counts, what one side lacks, what was not compared."""
    counts = {
        verdict: sum(one.verdict == verdict for one in results.values()) for verdict in (EQUAL, DIFFERENT, FAILED)
    }
    lines = [f"{counts[EQUAL]} equal, {counts[DIFFERENT]} different, {counts[FAILED]} failed"]
    if plan.only_old:
        lines.append(f"missing at the new revision: {', '.join(plan.only_old)}")
    if plan.only_new:
        lines.append(f"only at the new revision, so not compared: {', '.join(plan.only_new)}")
    for kind, patterns in renames.excluded.items():
        if patterns:
            lines.append(f"not compared, {kind}: {', '.join(patterns)}")
    if tolerance:
        lines.append(f"floats that differ by no more than {tolerance:g} counted as equal")
    unmet = renames.unmet()
    if unmet:
        lines.append(f"renames that nothing was met for: {', '.join(unmet)}")
    return lines


def parser() -> argparse.ArgumentParser:
    """The command line."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("old", metavar="OLD", help="git revision")
    words.add_argument("new", nargs="?", metavar="NEW", help="git revision (default: the working tree)")
    words.add_argument("--scenarios", nargs="+", default=[], metavar="NAME", help="only these (default: all)")
    words.add_argument("--renames", type=Path, default=RENAMES, metavar="FILE", help="autostart: tools/renames.toml")
    words.add_argument(
        "--exclude", action="append", default=[], metavar="KIND:PATTERN",
        help=f"leave something out, and tell it; kinds: {', '.join(EXCLUDED)}; may be repeated",
    )  # fmt: skip
    words.add_argument("--tolerance", type=float, default=0.0, metavar="X", help="of floats (default: exact)")
    words.add_argument("--seed", type=int, default=0, metavar="N", help="autostart: 0")
    words.add_argument("--new-seed", type=int, metavar="N", help="another one for NEW, to see differences found")
    words.add_argument("--keep", type=Path, metavar="DIR", help="keeps runs (default: in the XDG cache)")
    words.add_argument("--record", action="store_true", help="only run OLD, so that it is kept; compare nothing")
    words.add_argument("--python", type=Path, metavar="PATH", help="runs both (default: this one)")
    words.add_argument("--old-python", type=Path, metavar="PATH", help="runs OLD, where that needs another environment")
    words.add_argument("--workers", type=int, default=count_usable_cores(), metavar="K", help="autostart: one a core")
    words.add_argument("--timeout", type=float, default=1800.0, metavar="S", help="of a run (default: 1800)")
    words.add_argument("--json", action="store_true", help="one JSON object")
    return words


def check(given: argparse.Namespace) -> Renames:
    """The table of renames, with what the command line leaves out besides. Raises InputError."""
    if not 0.0 <= given.tolerance < float("inf"):
        raise InputError(f"--tolerance {given.tolerance:g}", valid="0 or more")
    for name, least in (("workers", 1), ("seed", 0), ("new_seed", 0), ("timeout", 1)):
        if getattr(given, name) is not None and not getattr(given, name) >= least:
            raise InputError(f"--{name.replace('_', '-')} {getattr(given, name)}", valid=f"{least} or more")
    for path in (given.python, given.old_python):
        if path is not None and not path.is_file():
            raise InputError(f"there is no file {path}", valid="a Python of Roboyard's environment")
    renames = read_renames(given.renames)
    for text in given.exclude:
        kind, colon, pattern = text.partition(":")
        if kind not in EXCLUDED or not colon or not pattern:
            raise InputError(f"--exclude {text}", valid=f"KIND:PATTERN with one of {', '.join(EXCLUDED)}")
        renames.excluded[kind] = (*renames.excluded[kind], pattern)
    return renames


@contextmanager
def opened(name: str | None, python: Path | None) -> Iterator[Revision]:
    """A revision, or the working tree."""
    repository = find_repository(ROOT)
    context = open_working_tree(repository, python) if name is None else open_revision(repository, name, python)
    with context as revision:
        yield revision


def run(given: argparse.Namespace) -> int:
    """Compare, and give the exit code."""
    renames = check(given)
    store = (given.keep or default_store()).absolute()
    with ExitStack() as stack:
        scratch = stack.enter_context(scratch_folder(store))
        runner = SmokeRunner(scratch, given.workers, given.timeout, print_note)
        old = stack.enter_context(opened(given.old, given.old_python or given.python))
        old_home = home_of(old, renames.command("old", "environment"), given.seed, store, scratch)
        old_names = list_scenarios(old, renames.command("old", "list"))

        def old_job(name: str) -> Job:
            return Job(old, renames.command("old", "run"), name, given.seed, old_home)

        if given.record:
            return record(runner, [old_job(name) for name in given.scenarios or old_names], given.json)
        new = stack.enter_context(opened(given.new, given.python))
        new_seed = given.seed if given.new_seed is None else given.new_seed
        new_home = home_of(new, renames.command("new", "environment"), new_seed, store, scratch)
        new_names = list_scenarios(new, renames.command("new", "list"))
        plan = plan_scenarios(old_names, new_names, given.scenarios, renames)
        old_of = {b: a for a, b in plan.pairs.items()}
        jobs = [
            job
            for a, b in plan.pairs.items()
            for job in (old_job(a), Job(new, renames.command("new", "run"), b, new_seed, new_home))
        ]
        waiting: dict[str, dict[bool, SmokeRun]] = {name: {} for name in plan.pairs}
        results: dict[str, ScenarioResult] = {}

        def ready(job: Job, found: SmokeRun) -> None:
            is_old = job.revision is old
            name = job.scenario if is_old else old_of[job.scenario]
            waiting[name][is_old] = found
            if len(waiting[name]) == 2:
                results[name] = compare_runs(waiting[name][True], waiting[name][False], renames, given.tolerance)
                if not given.json:
                    show(name, plan.pairs[name], results[name])

        if not given.json:
            print_line(
                f"{old.label} against {new.label}, seed {given.seed}" + f" and {new_seed}" * (new_seed != given.seed)
            )
        interrupted = False
        try:
            runner.run(jobs, ready)
        except KeyboardInterrupt:
            interrupted = True
            print_note(f"stopped: {len(results)} of {len(plan.pairs)} scenarios are compared; what was run is kept")
    equal = all(one.verdict == EQUAL for one in results.values()) and not plan.only_old
    lines = summary(results, plan, renames, given.tolerance)
    if given.json:
        print_json(
            {
                "old": {"revision": given.old, "commit": old.commit, "seed": given.seed, "kept": old_home},
                "new": {"revision": new.name, "commit": new.commit, "clean": new.is_clean, "seed": new_seed},
                "equal": equal and not interrupted,
                "interrupted": interrupted,
                "scenarios": {name: result.to_dict() for name, result in sorted(results.items())},
                "only_old": plan.only_old,
                "only_new": plan.only_new,
                "not_compared": {**renames.excluded, "scenarios": plan.excluded},
                "tolerance": given.tolerance,
                "unmet_renames": renames.unmet(),
            }
        )
    else:
        for line in lines:
            print_line(line)
    return 130 if interrupted else 0 if equal else 1


def record(runner: SmokeRunner, jobs: Sequence[Job], as_json: bool) -> int:
    """Run scenarios at one revision, so that they are kept."""
    failed: dict[str, str] = {}
    kept: dict[str, Path] = {}

    def ready(job: Job, found: SmokeRun) -> None:
        if found.error is not None:
            failed[job.scenario] = found.error
        else:
            kept[job.scenario] = found.folder

    runner.run(jobs, ready)
    if as_json:
        print_json({"kept": dict(sorted(kept.items())), "failed": failed})
    else:
        print_line(f"{len(kept)} runs are kept in {jobs[0].home}" if kept else "no run is kept")
        for name, error in failed.items():
            print_line(f"failed     {name}: {error}")
    return 1 if failed else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; errors become one line."""
    given = parser().parse_args(arguments)
    try:
        return run(given)
    except (RoboyardError, KeyboardInterrupt, OSError) as error:
        return max(2, report_error(error, as_json=given.json))


if __name__ == "__main__":
    sys.exit(main())
