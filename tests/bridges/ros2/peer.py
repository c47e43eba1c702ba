"""A foreign participant in a process of its own, driven over its standard input: one JSON object a line."""

from __future__ import annotations

import json
import sys
import time
from threading import Lock

from roboyard.bridges.ros2 import discovery
from roboyard.bridges.ros2.dds import Participant, Quality, Reader
from roboyard.bridges.ros2.discovery import NodeEnds


def main(domain: int, size: int) -> None:
    """Do as told, and tell what comes."""
    participant = Participant(domain, local=True)
    kept: list[object] = []
    writers = {}
    node = NodeEnds()

    telling = Lock()  # the thread that hears tells too

    def tell(**said: object) -> None:
        with telling:
            print(json.dumps(said), flush=True)

    def read(topic: str, kind: str, quality: Quality) -> None:
        def came(reader: Reader) -> None:
            for sample in reader.take():
                tell(topic=topic, data=sample.data.hex())

        kept.append(participant.reader(topic, kind, quality, came))

    read(discovery.TOPIC, discovery.TYPE, Quality(latched=True, depth=1))
    graph = participant.writer(discovery.TOPIC, discovery.TYPE, Quality(latched=True, depth=1))
    for line in sys.stdin:
        said = json.loads(line)
        if said["op"] == "read":
            read(said["topic"], said["type"], Quality(latched=said.get("latched", False)))
        elif said["op"] == "writers":
            found = [[item.topic, item.type, item.latched] for item in participant.foreign_writers()]
            tell(writers=found)
        else:
            topic = said["topic"]
            if topic not in writers:
                quality = Quality(reliable=said.get("reliable", True), latched=said.get("latched", False))
                writers[topic] = participant.writer(topic, said["type"], quality)
                node.writers.append(writers[topic].guid)
                graph.write(discovery.encode(participant.guid, {said.get("node", "/teleop"): node}, size))
                for _ in range(round(said.get("patience", 5.0) / 0.05)):
                    if writers[topic].matched:
                        break
                    time.sleep(0.05)
                time.sleep(said.get("pause", 0.3))
            data, end = bytes.fromhex(said["data"]), time.monotonic() + said.get("seconds", 0.0)
            for _ in range(said.get("times", 1)):
                writers[topic].write(data)
            while time.monotonic() < end:  # as fast as it goes
                for _ in range(100):
                    writers[topic].write(data)
    participant.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
