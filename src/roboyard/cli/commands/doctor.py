"""``roboyard doctor``: checks of the installation, with advice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from roboyard.cli.options import CLUSTER, JsonOption

if TYPE_CHECKING:
    from roboyard.cli.health_checks import HealthCheck


def doctor(
    cluster: Annotated[str | None, CLUSTER("; also check its machines")] = None,
    json: JsonOption = False,
) -> None:
    """Check the installation and suggest fixes.

    Exit code 1: something is broken.
    """
    from roboyard.cli.exit_codes import ExitCode, exit_unless_success
    from roboyard.cli.health_checks import run_checks
    from roboyard.cli.terminal import print_result

    checks = run_checks(cluster)
    is_healthy = all(check.is_ok is not False for check in checks)
    print_result({"ok": is_healthy, "checks": checks}, json, _print_checks)
    exit_unless_success(ExitCode.SUCCESS if is_healthy else ExitCode.FAILURE)


def _print_checks(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_columns

    marks = {True: "✓", False: "✗", None: "·"}
    checks: list[HealthCheck] = result["checks"]
    rows = []
    for check in checks:
        rows.append((marks[check.is_ok], check.subject, check.text))
        if check.advice:
            rows.append(("", "", f"→ {check.advice}"))
    print_columns(rows)
