"""``roboyard doctor``: what this machine offers, and what is missing."""

from __future__ import annotations

import typer

from roboyard.cli.grammar import JsonOption


def doctor(json: JsonOption = False) -> None:
    """Look at this machine and installation.

    Exit code 1 if something is broken.
    """
    from roboyard.cli.health import examine
    from roboyard.cli.terminal import columns, emit

    findings = examine()
    if json:
        emit({"findings": findings, "ok": all(finding.good is not False for finding in findings)})
    else:
        marks = {True: "✓", False: "✗", None: "·"}
        columns([(marks[finding.good], finding.what, finding.text) for finding in findings])
    if any(finding.good is False for finding in findings):
        raise typer.Exit(1)
