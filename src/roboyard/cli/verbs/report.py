"""``roboyard report``: the page about a run, made again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roboyard.cli.grammar import JsonOption


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run's folder; also one whose run was killed.")],
    json: JsonOption = False,
) -> None:
    """Write a run's report anew.

    For a run whose process was killed the metrics are computed from its recording.
    """
    from roboyard.cli.summary import show_verdict
    from roboyard.cli.terminal import emit, note, say
    from roboyard.scenarios import rewrite_report
    from roboyard.scenarios.provenance import compare_with_here, compare_with_lock, document_metadata
    from roboyard.scenarios.run_folder import RunFolder

    page = rewrite_report(folder)
    document = RunFolder(folder).read_metrics()
    made = document.get("provenance", {})
    notes = [compare_with_here(document_metadata(made)), compare_with_lock(made.get("versions", {}))]
    notes = list(filter(None, notes))
    if json:
        emit({**document, "report": page, "notes": notes})
        return
    show_verdict(document)
    for line in notes:
        note(line)
    say(f"report  {page}")
