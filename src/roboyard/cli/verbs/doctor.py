"""``roboyard doctor``: what this machine offers, what is missing, and what to do about it."""

from __future__ import annotations

from typing import Annotated

import typer

from roboyard.cli.grammar import JsonOption


def doctor(
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="HOST:PORT", help="Also the machines of a Ray cluster."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Look at this machine: what is amiss, and what to do.

    Exit code 1 if something is broken.
    """
    from roboyard.cli.health import examine
    from roboyard.cli.health_extras import machines
    from roboyard.cli.terminal import columns, emit

    findings = examine()
    if cluster is not None:
        from roboyard.compute import RayPool

        with RayPool(cluster) as pool:
            findings += machines(pool)
    if json:
        emit({"findings": findings, "ok": all(finding.good is not False for finding in findings)})
    else:
        marks = {True: "✓", False: "✗", None: "·"}
        rows = []
        for finding in findings:
            rows.append((marks[finding.good], finding.what, finding.text))
            if finding.advice:
                rows.append(("", "", f"→ {finding.advice}"))
        columns(rows)
    if any(finding.good is False for finding in findings):
        raise typer.Exit(1)
