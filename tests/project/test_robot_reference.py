"""The reference page of robot files has every key as the declaration states it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from roboyard.bringup.robot_config import RobotConfig, RobotNodeConfig
from roboyard.config import schema_rows
from roboyard.config.loading import load
from roboyard.config.yaml_tree import parse_yaml
from roboyard.control.drive_config import (
    AckermannDriveConfig,
    DifferentialDriveConfig,
    DriveLimits,
    FreeBaseConfig,
    MecanumDriveConfig,
    PlanarBaseConfig,
)

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "robots.md"
SECTIONS = {
    "Keys": RobotConfig,
    "Limits": DriveLimits,
    "`differential`": DifferentialDriveConfig,
    "`mecanum`": MecanumDriveConfig,
    "`ackermann`": AckermannDriveConfig,
    "Nodes": RobotNodeConfig,
}


def table_rows(cls: type) -> list[str]:
    """Rows of the page's table of a configuration, nested keys left out."""
    rows = []
    for row in schema_rows(cls):
        if "." in row.key or (row.key == "type" and cls is not RobotNodeConfig):
            continue
        default = (
            "required" if row.default == "required" else f"`{row.default}`" if row.default not in ("", "null") else ""
        )
        expected = row.expected.replace(" or nothing (null)", "")
        rows.append(f"| `{row.key}` | {default} | {expected} | {row.doc} |".replace("|  |", "| |"))
    return rows


def page_sections() -> Iterator[tuple[str, str]]:
    """Headings of the page and the texts below them."""
    parts = re.split(r"^#{2,3} (.+)$", PAGE.read_text(), flags=re.MULTILINE)
    yield from zip(parts[1::2], parts[2::2], strict=True)


@pytest.mark.parametrize("heading", SECTIONS)
def test_tables_are_those_of_the_declaration(heading: str) -> None:
    text = dict(page_sections())[heading]
    found = [line for line in text.splitlines() if line.startswith("| `")]
    assert found == table_rows(SECTIONS[heading])


def test_every_type_of_drive_is_described() -> None:
    text = PAGE.read_text()
    for cls in (DifferentialDriveConfig, MecanumDriveConfig, AckermannDriveConfig, PlanarBaseConfig, FreeBaseConfig):
        expected = next(row.expected for row in schema_rows(cls) if row.key == "type").removeprefix("one of: ")
        assert f"`{expected}`" in text


def test_example_is_a_valid_robot_file() -> None:
    example = re.search(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert example is not None
    config = load(RobotConfig, parse_yaml(example[1], str(PAGE)))
    assert isinstance(config.drive, DifferentialDriveConfig)
