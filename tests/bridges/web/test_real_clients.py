"""The WebSocket bridges with clients that others wrote, from npm: `make test-ros` installs them and runs this."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.bridges.web.conftest import WebRun

PEERS = Path(__file__).with_name("peers")
MODULES = Path(os.environ.get("ROBOYARD_PEERS", Path.home() / ".cache" / "roboyard-peers"))

pytestmark = [
    pytest.mark.ros,
    pytest.mark.skipif(
        shutil.which("node") is None or not (MODULES / "node_modules" / "roslib").is_dir(),
        reason="roslib and @foxglove/ws-protocol are not installed: `make test-ros` says why",
    ),
]


def run_client(script: str, url: str, folder: Path) -> dict[str, Any]:
    """What a client saw, by what it is."""
    shutil.copy(PEERS / script, folder / script)
    (folder / "node_modules").symlink_to(MODULES / "node_modules")
    done = subprocess.run(
        ["node", str(folder / script), url], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {item["what"]: item["value"] for item in found}


def test_foxglove_client_uses_every_feature(live: WebRun, tmp_path: Path) -> None:
    found = run_client("foxglove.mjs", live.foxglove.where, tmp_path)
    assert "error" not in found
    assert "clientPublish" in found["capabilities"]
    assert found["schema"] == "std_msgs/msg/Float64"
    assert found["speed"] > 0.0
    assert found["time"] > 0
    assert found["parameters"] == [{"name": "/wheels.gain", "value": 1.0, "type": "float64"}]
    assert "ding" in found["ring"]
    assert [speed for _, speed in live.robot.commands] == [0.5]


def test_roslib_client_uses_every_feature(live: WebRun, tmp_path: Path) -> None:
    found = run_client("roslib.mjs", live.rosbridge.where, tmp_path)
    assert "error" not in found
    assert {"/scan", "/speed", "/cmd_vel"} <= set(found["topics"])
    assert "/wheels" in found["nodes"]
    assert found["plan"] == "straight on"
    assert found["ring"] == {"success": True, "message": "ding"}
    assert (found["gain"], found["gain after"]) == (1.0, 4.0)
    assert found["result"]["sequence"] == [0, 1, 2]
    assert len(found["feedback"]) == 3
    assert [speed for _, speed in live.robot.commands] == [0.7]
