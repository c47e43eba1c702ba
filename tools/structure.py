"""Measure the package's structure and hold it against a baseline that may only fall.

``tools/structure.py`` checks, and lists what is new where a count rose; ``--table`` prints the counts of each room;
``--list CHECK`` lists a check's violations, of one room with ``--room``; ``--update`` lowers the baseline to what the
tree holds; ``--json`` prints counts and violations for programs.  Ends with 0 if no count rose, 1 if one did, and 2 if
the call or a file is wrong.  Reads syntax trees; nothing of the package is imported.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from structure_guard import baseline
from structure_guard.checks import CHECK_NAMES, CHECKS, Exceptions, Survey, Violation, count_violations
from structure_guard.tree import SourceError, SourceTree, last_change_of
from structure_guard.vocabulary import Vocabulary, VocabularyError

ROOT = Path(__file__).resolve().parent.parent
GUARD = Path("tools", "structure_guard")
MAX_LISTED = 60
"""New violations that are listed of each check; `--list` gives all."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check with the given command line; gives the exit code."""
    options = _parse(arguments)
    try:
        return _run(options)
    except (SourceError, VocabularyError, baseline.BaselineError) as error:
        print(f"structure: {error}", file=sys.stderr)
        return 2


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="structure", description=__doc__.partition("\n")[0])
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--table", action="store_true", help="print the counts of each room")
    action.add_argument("--list", metavar="CHECK", choices=(*CHECK_NAMES, "all"), help="list a check's violations")
    action.add_argument("--against", metavar="REVISION", help="list what is new since a git revision")
    action.add_argument("--update", action="store_true", help="lower the baseline to what the tree holds")
    action.add_argument("--json", action="store_true", help="print counts and violations as JSON")
    parser.add_argument("--strict", action="store_true", help="fail also where the baseline can be lowered")
    parser.add_argument("--room", help="only this room")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout (default: this one)")
    return parser.parse_args(arguments)


def _run(options: argparse.Namespace) -> int:
    root: Path = options.root.resolve()
    survey = _make_survey(SourceTree.from_disk(root), root)
    violations = survey.violations()
    rooms = {*survey.sizes(), *(item.room for item in violations)}
    if options.room is not None and options.room not in rooms:
        raise SourceError(f"unknown room {options.room!r} (one of {', '.join(sorted(rooms))})")
    shown = [item for item in violations if options.room in (None, item.room)]
    if options.table:
        print("\n".join(format_table(survey, shown, options.room)))
        return 0
    if options.list:
        _print_list([item for item in shown if options.list in ("all", item.check)])
        return 0
    if options.json:
        print(json.dumps(_document(survey, shown), indent=1))
        return 0
    if options.against is not None:
        new = baseline.find_new(_violations_at(root, options.against), violations)
        _print_list([item for item in new if options.room in (None, item.room)])
        return 0
    path = root / GUARD / "baseline.json"
    counts = count_violations(violations)
    if options.update:
        for change in baseline.update_baseline(path, counts).fallen:
            print(f"lowered: {change}")
        return 0
    return _check(root, path, violations, counts, strict=options.strict)


def _check(root: Path, path: Path, violations: Sequence[Violation], counts: baseline.Counts, *, strict: bool) -> int:
    comparison = baseline.compare(baseline.load_baseline(path), counts)
    for change in comparison.moved:
        print(f"structure: note: {change} (the sum of all rooms did not rise: taken for moved code)")
    for change in comparison.fallen:
        print(f"structure: note: {change}; `python tools/structure.py --update` lowers the baseline")
    if comparison.risen:
        _explain(root, path, violations, comparison.risen)
        return 1
    total = sum(sum(rooms.values()) for rooms in counts.values())
    print(f"structure: {len(CHECK_NAMES)} checks, {total} known violations, none new")
    if strict and not comparison.is_recorded:
        print("structure: the baseline is not up to date (python tools/structure.py --update)", file=sys.stderr)
        return 1
    return 0


def _explain(root: Path, path: Path, violations: Sequence[Violation], risen: Sequence[baseline.Change]) -> None:
    """Print what is new since the commit that wrote the baseline; all violations where git cannot tell."""
    revision = last_change_of(root, path)
    new: list[Violation] = []
    if revision is not None:
        try:
            new = baseline.find_new(_violations_at(root, revision), violations)
        except SourceError as error:
            print(f"structure: {error}", file=sys.stderr)
    for change in risen:
        title = next(check.title for check in CHECKS if check.name == change.check)
        print(f"structure: {title}: {change.before} → {change.now}", file=sys.stderr)
        found = [item for item in new if item.check == change.check]
        if found:
            print(f"  new since {(revision or '')[:10]}, which wrote the baseline:", file=sys.stderr)
        else:
            print("  the history does not tell which are new; all of them:", file=sys.stderr)
            found = [item for item in violations if item.check == change.check]
        for item in found[:MAX_LISTED]:
            print(f"  {item}", file=sys.stderr)
        if len(found) > MAX_LISTED:
            print(f"  and {len(found) - MAX_LISTED} more (--list {change.check})", file=sys.stderr)


def _make_survey(tree: SourceTree, root: Path) -> Survey:
    """Survey a tree with the vocabulary and the exceptions of the checkout, whatever revision the tree is of."""
    guard = root / GUARD
    return Survey(tree, Vocabulary.load(guard / "vocabulary.toml"), Exceptions.load(guard / "exceptions.toml"))


def _violations_at(root: Path, revision: str) -> list[Violation]:
    return _make_survey(SourceTree.from_revision(root, revision), root).violations()


def _print_list(violations: Sequence[Violation]) -> None:
    for item in violations:
        print(item)
    counts = Counter(item.check for item in violations)
    print(f"{len(violations)} violations" + "".join(f", {name} {count}" for name, count in counts.items()))


def _document(survey: Survey, violations: Sequence[Violation]) -> dict[str, object]:
    sizes = survey.sizes()
    return {
        "counts": count_violations(list(violations)),
        "sizes": {room: {"files": files, "lines": lines} for room, (files, lines) in sizes.items()},
        "largest_cycles": survey.largest_cycles(),
        "violations": [asdict(item) for item in violations],
    }


def format_table(survey: Survey, violations: Sequence[Violation], room: str | None = None) -> list[str]:
    """Lines of the table of counts: a row for each room, the sums, and what the columns mean."""
    counts, sizes, largest = count_violations(list(violations)), survey.sizes(), survey.largest_cycles()
    rooms = sorted({*sizes, *(item.room for item in violations)}) if room is None else [room]
    columns = [counts.get(name, {}) for name in CHECK_NAMES]
    table = [["room", "files", "lines", "largest", *(check.column for check in CHECKS)]]
    for name in rooms:
        numbers = [*sizes.get(name, (0, 0)), largest.get(name, 0), *(column.get(name, 0) for column in columns)]
        table.append([name, *(str(number) if number else "·" for number in numbers)])
    n_files, n_lines = (sum(sizes.get(name, (0, 0))[index] for name in rooms) for index in (0, 1))
    sums = [n_files, n_lines, max(largest.get(name, 0) for name in rooms), *(sum(c.values()) for c in columns)]
    table.append(["all", *map(str, sums)])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    text = [
        "  ".join(
            cell.rjust(width) if index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in table
    ]
    text += [
        "",
        "largest  modules of the largest import cycle",
        *(f"{check.column:7}  {check.title}" for check in CHECKS),
    ]
    if n_files:
        share = 100 * sum(counts.get("single_importer", {}).values()) / n_files
        text.append(f"{share:.0f} % of the files should join their only importer.")
    return text


if __name__ == "__main__":
    sys.exit(main())
