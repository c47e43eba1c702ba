"""``roboyard show gaits``: all gaits that a robot can walk, compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.options import ROBOT, JsonOption

if TYPE_CHECKING:
    from roboyard.walking import GaitComparison

StrideOption = Annotated[
    float, typer.Option("--stride", metavar="M", min=0.005, max=2.0, help="Largest displacement of a stance foot [m].")
]
LiftOption = Annotated[
    float, typer.Option("--lift", metavar="M", min=0.001, max=1.0, help="Height to which feet rise in a swing [m].")
]


def show_gaits(
    robot: Annotated[str, ROBOT("; it needs legs")] = "akrobat",
    stride: StrideOption = 0.08,
    lift: LiftOption = 0.015,
    json: JsonOption = False,
) -> None:
    """Compare the gaits that a robot can walk.

    The table shows the order in which legs lift off, the smallest duty factor, the stability margin over a cycle of
    walking forward, and the largest speeds with which feet stay in reach and joints within their speeds. Gaits of
    installed packages are included.
    """
    from roboyard.bringup.legged_robot import load_legged_robot
    from roboyard.cli.terminal import print_result
    from roboyard.walking import compare_gaits

    legs = load_legged_robot(robot)
    comparisons = compare_gaits(legs, stride=stride, lift=lift)
    result = {"robot": legs.name, "stride": stride, "lift": lift, "gaits": [_describe_gait(one) for one in comparisons]}
    print_result(result, json, _print_gaits)


def _describe_gait(comparison: GaitComparison) -> dict[str, Any]:
    return {
        "name": comparison.name, "order": [list(group) for group in comparison.order],
        "duty_factor": comparison.duty_factor, "min_stance_feet": comparison.min_stance_feet,
        "margin": comparison.margin, "forward_speed": comparison.forward_speed,
        "lateral_speed": comparison.lateral_speed, "yaw_rate": comparison.yaw_rate,
    }  # fmt: skip


def _print_gaits(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_fields, print_table

    print_fields([
        ("robot", result["robot"]), ("steps", f"stride {result['stride']:g} m, lift {result['lift']:g} m"),
    ])  # fmt: skip
    rows = [
        [
            gait["name"], " → ".join("+".join(group) for group in gait["order"]), f"{gait['duty_factor']:.3g}",
            f"{1e3 * gait['margin']:.0f}", f"{gait['forward_speed']:.3f}", f"{gait['lateral_speed']:.3f}",
            f"{gait['yaw_rate']:.2f}",
        ]
        for gait in result["gaits"]
    ]  # fmt: skip
    header = ["gait", "lift-offs", "duty factor", "margin [mm]", "forward [m/s]", "sideways [m/s]", "turning [rad/s]"]
    print_table(header, rows)
