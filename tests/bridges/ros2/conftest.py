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
from tests.harness.live_run import poll

from roboyard.bridges.ros2 import names
from roboyard.messages import serialize

ROOT = Path(__file__).resolve().parents[3]


class Peer:
    """A participant in a process of its own, which reads and writes as it is asked to.

    Attributes:
        received: The messages that came, by topic.
    """

    def __init__(self, domain: int, size: int = 16) -> None:
        words = [sys.executable, str(Path(__file__).with_name("peer.py")), str(domain), str(size)]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, bufsize=1
        )
        self.received: dict[str, list[bytes]] = {}
        self._answers: Queue[Any] = Queue()
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            report = json.loads(line)
            if "answer" in report:
                self._answers.put(report["answer"])
            else:
                self.received.setdefault(report["topic"], []).append(bytes.fromhex(report["data"]))

    def send(self, **order: Any) -> None:
        """Let the peer do something."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def ask(self, **order: Any) -> Any:
        """Let the peer answer something."""
        self.send(**order)
        try:
            return self._answers.get(timeout=10.0)
        except Empty:
            pytest.fail("the peer does not answer")

    def read(self, topic: str, type_: str, **options: Any) -> None:
        """Read a topic of DDS from now on, once its writer is found."""
        self.received.setdefault(topic, [])
        self.send(op="read", topic=topic, type=type_, **options)
        poll(lambda: self.ask(op="matched", topic=topic), expected=f"a writer of {topic}")

    def publish(self, topic: str, message: Any, **more: Any) -> None:
        data = serialize(message)
        self.send(op="write", topic=topic, type=names.dds_type(message.__msgtype__), data=data.hex(), **more)

    def writers(self) -> list[list[Any]]:
        """Topic, type, and whether it is latched, of each foreign writer."""
        found: list[list[Any]] = self.ask(op="writers")
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
