"""Write docs/acceptance.md: what came of a suite of scenarios, with many seeds each.

``tools/acceptance.py FOLDER`` takes the folder that `roboyard batch NAME… --runs N` or `roboyard batch all` left, and
with ``--commit`` what the runs were made of, where that is no longer what lies here.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench import commit, machine

from roboyard.scenarios.batch.suite import SUMMARY

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "acceptance.md"
INTRODUCTION = """# Acceptance

Scenarios with many seeds each, judged by their own criteria against ground truth. Made by
`python tools/acceptance.py FOLDER` from what `roboyard batch` left; nothing here is written by hand. Intervals are
Wilson's.
"""


def page(suite: Mapping[str, Any], first: Mapping[str, int], where: Mapping[str, Any], source: str) -> str:
    """The whole page.

    Args:
        suite: What `SuiteResult.to_dict` gives.
        first: Each scenario's first seed.
        where: The machine, as tools/bench.py describes it.
        source: The commit that the runs were made of.
    """
    rows = [
        "| scenario | seeds | succeeded | 95 % interval | × real time | why not |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, one in suite["scenarios"].items():
        begin, total = first[name], one["runs"]
        reasons = Counter(str(failure["reason"]).splitlines()[0] for failure in one["failures"] if failure["reason"])
        why = "; ".join(f"{count} × {reason}" for reason, count in reasons.most_common()).replace("|", "\\|")
        interval = f"{one['success_low']:.0%} to {one['success_high']:.0%}"
        seeds = f"{begin} to {begin + total - 1}"
        pace = one["metrics"].get("real_time_factor", {}).get("median")
        rows.append(
            f"| `{name}` | {seeds} | {one['successes']} of {total} | {interval} | "
            f"{'' if pace is None else f'{pace:.1f}'} | {why} |"
        )
    rows += [f"| `{name}` | | | | | {reason} |" for name, reason in suite["start_errors"].items()]
    count = max(one["runs"] for one in suite["scenarios"].values())
    begins = {first[name] for name in suite["scenarios"]}
    seed = f" --seed {begins.pop()}" if len(begins) == 1 else ""  # else each began at its own
    smoke = all(one["metrics"].get("smoke", {}).get("maximum") for one in suite["scenarios"].values())
    again = f"roboyard batch {' '.join(suite['scenarios'])} --runs {count}{seed}{' --smoke' * smoke}"
    what = f"{suite['successes']} of {suite['runs']} runs succeeded. Commit {source}; {where['processor']}, "
    what += f"{where['cores']} cores, {where['system']}. The pace is the median's, with recording.\n"
    if smoke:
        what = f"Only the first seconds of each scenario (`--smoke`). {what}"
    return "\n".join([INTRODUCTION, f"<!-- no-run: takes long -->\n```console\n$ {again}\n```\n", what, *rows, ""])


def first_seed(batch: Path) -> int:
    """The least seed that was run."""
    lines = (batch / "results.jsonl").read_text("utf-8").splitlines()
    return min((int(json.loads(line)["seed"]) for line in lines), default=0)


def main() -> int:
    """Make the page."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder", type=Path, metavar="FOLDER")
    words.add_argument("--commit", metavar="HASH", help="what the runs were made of (default: what lies here)")
    given = words.parse_args()
    folder: Path = given.folder
    if not (folder / SUMMARY).is_file():
        print(f"{folder} is no suite: give the folder of a `roboyard batch all`", file=sys.stderr)
        return 2
    suite = json.loads((folder / SUMMARY).read_text("utf-8"))
    first = {name: first_seed(folder / name) for name in suite["scenarios"]}
    PAGE.write_text(page(suite, first, machine(), given.commit or commit()), "utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
