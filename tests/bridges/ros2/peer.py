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
    """Carry out each line, and print what arrives."""
    participant = Participant(domain, local=True)
    readers: dict[str, Reader] = {}
    writers = {}
    node = NodeEnds()

    printing = Lock()  # the thread that reads samples prints too

    def report(**fields: object) -> None:
        with printing:
            print(json.dumps(fields), flush=True)

    def read(topic: str, kind: str, quality: Quality) -> None:
        def on_samples(reader: Reader) -> None:
            for sample in reader.take():
                report(topic=topic, data=sample.data.hex())

        readers[topic] = participant.reader(topic, kind, quality, on_samples)

    read(discovery.TOPIC, discovery.TYPE, Quality(latched=True, depth=1))
    graph = participant.writer(discovery.TOPIC, discovery.TYPE, Quality(latched=True, depth=1))
    for line in sys.stdin:
        order = json.loads(line)
        if order["op"] == "read":
            read(order["topic"], order["type"], Quality(latched=order.get("latched", False)))
        elif order["op"] == "writers":
            found = [[item.topic, item.type, item.latched] for item in participant.foreign_writers()]
            report(answer=found)
        elif order["op"] == "matched":
            report(answer=readers[order["topic"]].matched)
        else:
            topic = order["topic"]
            if topic not in writers:
                quality = Quality(reliable=order.get("reliable", True), latched=order.get("latched", False))
                writers[topic] = participant.writer(topic, order["type"], quality)
                node.writers.append(writers[topic].guid)
                graph.write(discovery.encode(participant.guid, {order.get("node", "/teleop"): node}, size))
                for _ in range(round(order.get("patience", 5.0) / 0.05)):
                    if writers[topic].matched:
                        break
                    time.sleep(0.05)
                time.sleep(order.get("pause", 0.3))
            data, end = bytes.fromhex(order["data"]), time.monotonic() + order.get("seconds", 0.0)
            for _ in range(order.get("times", 1)):
                writers[topic].write(data)
            while time.monotonic() < end:  # as fast as it goes
                for _ in range(100):
                    writers[topic].write(data)
    participant.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
