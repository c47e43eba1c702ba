"""A foreign participant of ROS 2's graph, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

import pytest

from roboyard.bridges.ros2 import names
from roboyard.messages import serialize

ROOT = Path(__file__).resolve().parents[3]


class Peer:
    def __init__(self, domain: int, size: int = 16) -> None:
        words = [sys.executable, str(Path(__file__).with_name("peer.py")), str(domain), str(size)]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, bufsize=1
        )
        self.heard: dict[str, list[bytes]] = {}
        self._lists: Queue[Any] = Queue()
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            if "writers" in said:
                self._lists.put(said["writers"])
            else:
                self.heard.setdefault(said["topic"], []).append(bytes.fromhex(said["data"]))

    def say(self, **said: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(said) + "\n")
        self._process.stdin.flush()

    def publish(self, topic: str, message: Any, **more: Any) -> None:
        data = serialize(message)
        self.say(op="write", topic=topic, type=names.dds_type(message.__msgtype__), data=data.hex(), **more)

    def writers(self) -> list[list[Any]]:
        self.say(op="writers")
        try:
            found: list[list[Any]] = self._lists.get(timeout=10.0)
        except Empty:
            pytest.fail("the peer does not answer")
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.join()
        self._process.stdout.close()
