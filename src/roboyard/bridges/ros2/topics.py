"""Topics of the bus on DDS: what nodes of ours write, and what they read of foreign writers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from roboyard.bridges.gateway import Gateway
from roboyard.bridges.ros2 import names
from roboyard.bridges.ros2.dds import Endpoint, Participant, Quality, Reader, Sample, Writer
from roboyard.errors import InputError, MessageError, RoboyardError
from roboyard.messages import deserialize, serialize

_READ_DEPTH: Final = 64
"""A busy run lets its reader wait for some 10 ms, and peers send up to 1000 messages a second."""

_BREATH: Final = 0.004
"""Between two looks at what a flood has brought [wall s]; its reader keeps the newest."""


class Written:
    """A topic that nodes of ours publish, each with a writer of its own.

    Args:
        name: The topic.
        kind: Its type's full name.
        latched: Whether late readers get what was said last.
        participant: Where.
        gateway: The bus.

    Attributes:
        writers: By node.
    """

    def __init__(self, name: str, kind: str, *, latched: bool, participant: Participant, gateway: Gateway) -> None:
        self.kind = kind
        self.latched = latched
        self.writers: dict[str, Writer] = {}
        self._name = name
        self._participant = participant
        self._gateway = gateway
        self._read: frozenset[str] = frozenset()
        gateway.ask(lambda: gateway.listen(name, self._heard))

    def update(self, nodes: Iterable[str]) -> bool:
        """Write for these nodes; gives whether any has come or gone."""
        nodes = set(nodes)
        before = set(self.writers)
        for node in before - nodes:
            self.writers.pop(node).close()
        for node in sorted(nodes - before):
            quality = Quality(latched=self.latched, depth=1 if self.latched else 10)
            topic, kind = names.topic(self._name), names.dds_type(self.kind)
            self.writers[node] = self._participant.writer(
                topic, kind, quality, names.hash_of(self.kind), batched=not self.latched
            )
            if self.latched:
                self._gateway.ask(lambda node=node: self._again(node))  # type: ignore[misc]
        return before != nodes

    def look(self) -> None:
        """See whose writers are read by anybody; nothing is serialised for nobody."""
        if not self.latched:
            self._read = frozenset(node for node, writer in self.writers.items() if writer.matched)

    def _again(self, node: str) -> None:
        for message, source, _ in self._gateway.latched(self._name):
            if source == node:
                self._write(self.writers.get(node), message, serialize)

    def _heard(self, message: Any, node: str, time_ns: int) -> None:
        if self.latched or node in self._read:
            self._write(self.writers.get(node), message, self._encode)

    def _encode(self, message: Any) -> bytes:
        return self._gateway.encode(self._name, message)

    def _write(self, writer: Writer | None, message: Any, encode: Callable[[Any], bytes]) -> None:
        if writer is None:
            return
        try:
            writer.write(encode(message))
        except RoboyardError as error:
            self._gateway.complain("not sent", f"{self._name}: {error}")
        else:
            self._gateway.count("sent")

    def close(self) -> None:
        """Write no more."""
        self._gateway.ask(lambda: self._gateway.forget(self._name, self._heard))
        self.update(())


class Read:
    """A topic that nodes of ours hear: one reader, with the best quality that all foreign writers offer.

    Args:
        name: The topic.
        kind: Its type's full name.
        participant: Where.
        gateway: The bus.
        source: Gives the name of the node that has the writer of this GUID.
    """

    def __init__(
        self, name: str, kind: str, participant: Participant, gateway: Gateway, source: Callable[[bytes], str]
    ) -> None:
        self.kind = kind
        self._name = name
        self._participant = participant
        self._gateway = gateway
        self._source = source
        self._outgoing: Reader | None = None
        self._newest: dict[bytes, int] = {}  # what a writer's was that came while two readers heard it [its ns]
        self.reader = self._make(Quality(reliable=False, depth=_READ_DEPTH))

    def _make(self, quality: Quality) -> Reader:
        topic, kind = names.topic(self._name), names.dds_type(self.kind)
        return self._participant.reader(topic, kind, quality, self._came, names.hash_of(self.kind))

    def update(self, writers: Iterable[Endpoint]) -> bool:
        """Ask for what the writers offer; gives whether that has changed.

        A reader that is replaced goes on until the next update, so that nothing is lost until its successor is known
        to the writers.  What both bring is taken once, and in the writer's order, however late the second brings it.
        """
        if self._outgoing is not None:
            self._participant.forget(self._outgoing)
            self._outgoing = None
        offered = [writer for writer in writers if writer.topic == names.topic(self._name)]
        wrong = next((writer for writer in offered if writer.type != names.dds_type(self.kind)), None)
        if wrong is not None:
            self._gateway.complain("another type", f"somebody writes {self._name} as {wrong.type}, not {self.kind}")
        if not offered:
            return False
        quality = Quality(
            reliable=all(writer.reliable for writer in offered),
            latched=all(writer.latched for writer in offered),
            depth=_READ_DEPTH,
        )
        if quality == self.reader.quality:
            return False
        self._outgoing = self.reader
        self.reader = self._make(quality)
        return True

    def _came(self, reader: Reader) -> None:
        """Messages have come; on DDS's thread."""
        outgoing = self._outgoing
        both = (reader,) if outgoing is None or outgoing is reader else (outgoing, reader)
        came = [(sample, each) for each in both for sample in each.take()]
        if len(both) > 1:
            came.sort(key=lambda item: item[0].written_ns)
        flooded = [self._take(sample, each) for sample, each in came]
        if any(flooded):
            time.sleep(_BREATH)  # or this thread would take the run's time for what is dropped

    def _take(self, sample: Sample, reader: Reader) -> bool:
        """Hand a message in; whether its node floods the run, so that it is dropped."""
        guid = reader.writer_of(sample)
        if self._outgoing is not None or guid in self._newest:
            if sample.written_ns <= self._newest.get(guid, -1):
                return False
            if self._outgoing is not None:
                self._newest[guid] = sample.written_ns
            else:
                del self._newest[guid]  # the one reader that is left is past what both brought
        source = self._source(guid)
        if self._gateway.flooded_by(source):
            self._gateway.count("dropped")
            return True
        try:
            deserialize(sample.data, self.kind)
            self._gateway.publish(self._name, self.kind, source, sample.data, latched=reader.quality.latched)
        except MessageError as error:
            self._gateway.complain("malformed", f"{self._name} from {source}: {error}")
        except InputError as error:
            self._gateway.complain("refused", f"{self._name} from {source}: {error}")
        return False

    def close(self) -> None:
        """Read no more."""
        for reader in (self._outgoing, self.reader):
            if reader is not None:
                self._participant.forget(reader)
