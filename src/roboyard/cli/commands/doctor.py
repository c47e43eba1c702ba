"""``roboyard doctor``: what this machine offers, what is missing, and what to do about it."""

from __future__ import annotations

from typing import Annotated

import typer

from roboyard.cli.app import JsonOption


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
    from roboyard.cli.health_checks import check_machines, run_checks
    from roboyard.cli.terminal import print_columns, print_json

    findings = run_checks()
    if cluster is not None:
        from roboyard.compute import RayPool

        with RayPool(cluster) as pool:
            findings += check_machines(pool)
    if json:
        print_json({"findings": findings, "ok": all(finding.is_ok is not False for finding in findings)})
    else:
        marks = {True: "✓", False: "✗", None: "·"}
        rows = []
        for finding in findings:
            rows.append((marks[finding.is_ok], finding.subject, finding.text))
            if finding.advice:
                rows.append(("", "", f"→ {finding.advice}"))
        print_columns(rows)
    if any(finding.is_ok is False for finding in findings):
        raise typer.Exit(1)
