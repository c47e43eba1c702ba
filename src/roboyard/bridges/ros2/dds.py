"""DDS as this bridge needs it: ready-made CDR in and out.

The only place that knows ``cyclonedds``. What writes ready-made bytes is in a private module of it, which another
version may lack: then the bridge says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from ctypes import c_bool, c_int32
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from threading import Lock, Thread
from types import new_class
from typing import Any, Final

from roboyard.bridges.bridge import BridgeError
from roboyard.errors import MissingExtraError

try:
    from cyclonedds._clayer import ddspy_take, ddspy_write
    from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
    from cyclonedds.core import (
        DDSException,
        GuardCondition,
        InstanceState,
        Policy,
        Qos,
        ReadCondition,
        SampleState,
        ViewState,
        WaitSet,
    )
    from cyclonedds.domain import Domain, DomainParticipant
    from cyclonedds.idl import IdlStruct
    from cyclonedds.internal import load_cyclonedds
    from cyclonedds.pub import DataWriter
    from cyclonedds.sub import DataReader
    from cyclonedds.topic import Topic
except ImportError as error:
    if isinstance(error, ModuleNotFoundError) and error.name == "cyclonedds":
        raise MissingExtraError("ROS 2", "ros2") from error
    raise BridgeError(
        f"cyclonedds {version('cyclonedds')} lacks what the bridge to ROS 2 needs: {error}",
        valid="pip install 'cyclonedds>=11.0.1,<12'",
    ) from error

_LOCAL: Final = (
    '<CycloneDDS><Domain><General><Interfaces><NetworkInterface address="127.0.0.1" multicast="true"/></Interfaces>'
    "<AllowMulticast>spdp</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>"
    '<MaxAutoParticipantIndex>60</MaxAutoParticipantIndex><Peers><Peer address="127.0.0.1"/></Peers>'
    "<SPDPInterval>1s</SPDPInterval></Discovery>"
    "<Internal><Watermarks><WhcHigh>32MB</WhcHigh></Watermarks></Internal></Domain></CycloneDDS>"
)
"""As ROS 2 does with ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST; peers that begin later are found within a second."""
_BLOCKED_NS: Final = 10_000_000
_TAKEN: Final = 64
_WAIT_NS: Final = 200_000_000
_MAKING: Final = Lock()


@dataclass(frozen=True, slots=True)
class Quality:
    """Quality of service, as far as peers compare it.

    Attributes:
        reliable: Lost messages are sent again.
        latched: Late readers get what was said last.
        depth: How many messages are kept.
    """

    reliable: bool = True
    latched: bool = False
    depth: int = 10


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A writer of anybody's: its GUID, topic and quality."""

    guid: bytes
    participant: bytes
    topic: str
    type: str
    reliable: bool
    latched: bool


@dataclass(frozen=True, slots=True)
class Sample:
    """What was received: CDR with its header, a handle by which its writer is known, and when it was written [ns]."""

    data: bytes
    writer: int
    written_ns: int


class Writer:
    """Sends ready-made CDR: at once, or, given a ``batch`` to be in, when that is flushed."""

    def __init__(self, entity: Any, batch: set[Writer] | None = None) -> None:
        self._entity = entity
        self._reference = entity._ref
        self._batch = batch
        self.guid: bytes = entity.guid.bytes

    def write(self, data: bytes) -> None:
        """Send ``data``, CDR with its header. Raises BridgeError."""
        if self._batch is not None:
            self._batch.add(self)
        padding = -len(data) % 4
        code = ddspy_write(self._reference, data + bytes(padding) if padding else data)
        if code < 0:
            raise BridgeError(f"DDS does not take {len(data)} bytes (code {code})")

    def flush(self) -> None:
        """Send what waits in a batch."""
        _library().dds_write_flush(self._reference)

    @property
    def matched(self) -> bool:
        """Whether anybody reads."""
        return bool(self._entity._get_matched_subscriptions(self._reference, None, 0) > 0)  # their number, no list

    @property
    def readers(self) -> frozenset[int]:
        """Handles of those who read."""
        with suppress(DDSException):
            return frozenset(self._entity.get_matched_subscriptions())
        return frozenset()

    def close(self) -> None:
        """Withdraw it."""
        _close(self._entity)


class Reader:
    """Receives ready-made CDR."""

    def __init__(self, entity: Any, condition: Any, quality: Quality) -> None:
        self._entity = entity
        self.condition = condition
        self.quality = quality
        self.guid: bytes = entity.guid.bytes
        self._writers: dict[int, bytes] = {}

    def take(self) -> list[Sample]:
        """What has come; what was disposed is left out."""
        mask = SampleState.Any | ViewState.Any | InstanceState.Any
        found = ddspy_take(self._entity._ref, mask, _TAKEN)
        if isinstance(found, int):
            return []
        return [Sample(data, info.publication_handle, info.source_timestamp) for data, info in found if info.valid_data]

    def writer_of(self, sample: Sample) -> bytes:
        """GUID of the writer of a sample; empty if it is gone."""
        guid = self._writers.get(sample.writer, b"")
        if not guid:
            with suppress(DDSException):
                found = self._entity.get_matched_publication_data(sample.writer)
                guid = found.key.bytes if found is not None else b""
            self._writers[sample.writer] = guid
        return guid

    @property
    def matched(self) -> bool:
        """Whether anybody writes."""
        with suppress(DDSException):
            return bool(self._entity.get_matched_publications())
        return False

    def close(self) -> None:
        """Withdraw it."""
        _close(self._entity)


class Participant:
    """One participant of a domain, and the thread that waits for what comes in.

    Args:
        domain: Number of the domain.
        local: Whether nobody on other machines is spoken to, unless CYCLONEDDS_URI says otherwise.

    Attributes:
        guid: Its GUID.

    Raises:
        BridgeError: it cannot be made.
    """

    def __init__(self, domain: int, *, local: bool) -> None:
        try:
            if local and not os.environ.get("CYCLONEDDS_URI"):
                _local_domain(domain)
            self._entity = DomainParticipant(domain, qos=Qos(Policy.Userdata(b"enclave=/;")))
            self._wait_set = WaitSet(self._entity)
            self._guard = GuardCondition(self._entity)
            self._wait_set.attach(self._guard)
            self._publications = BuiltinDataReader(self._entity, BuiltinTopicDcpsPublication)
        except DDSException as error:
            raise BridgeError(f"no DDS in domain {domain}: {error}", valid="another ROS_DOMAIN_ID") from error
        self.guid: bytes = self._entity.guid.bytes
        self._topics: dict[str, Any] = {}
        self._batch: set[Writer] = set()
        self._conditions: list[tuple[Any, Callable[[], None]]] = []
        self._news = ReadCondition(self._publications, SampleState.NotRead | ViewState.Any | InstanceState.Any)
        self._known: tuple[Endpoint, ...] = ()
        self._ended = False
        self._thread = Thread(target=self._listen, name="roboyard-dds", daemon=True)
        self._thread.start()

    def writer(self, topic: str, kind: str, quality: Quality, user_data: str = "", *, batched: bool = False) -> Writer:
        """A writer of ``topic``, of DDS's type ``kind``. Raises BridgeError.

        What a batched one writes is sent by `flush`, many messages in one packet: a packet costs 8 µs. All that it
        writes, and `flush`, is for one thread.
        """
        with _MAKING:  # for all writers of the process that are made meanwhile
            _library().dds_write_set_batch(batched)
            try:
                entity = DataWriter(self._entity, self._topic(topic, kind), qos=_qos(quality, user_data))
            except DDSException as error:
                raise BridgeError(f"{topic} cannot be written: {error}") from error
        return Writer(entity, self._batch if batched else None)

    def flush(self) -> None:
        """Send what batched writers have written."""
        while self._batch:
            self._batch.pop().flush()

    def reader(
        self, topic: str, kind: str, quality: Quality, came: Callable[[Reader], None], user_data: str = ""
    ) -> Reader:
        """A reader of ``topic``; ``came`` is called on the thread that waits. Raises BridgeError."""
        try:
            entity = DataReader(self._entity, self._topic(topic, kind), qos=_qos(quality, user_data))
            condition = ReadCondition(entity, SampleState.Any | ViewState.Any | InstanceState.Any)
            reader = Reader(entity, condition, quality)
            self._conditions.append((condition, lambda: came(reader)))
            self._wait_set.attach(condition)
            self._guard.set(True)
        except DDSException as error:
            raise BridgeError(f"{topic} cannot be read: {error}") from error
        return reader

    def forget(self, reader: Reader) -> None:
        """Read no more with ``reader``."""
        self._conditions = [item for item in self._conditions if item[0] is not reader.condition]
        with suppress(DDSException):
            self._wait_set.detach(reader.condition)
        reader.close()

    def foreign_writers(self) -> tuple[Endpoint, ...]:
        """Writers of other participants; read anew only when any has come or gone, since each costs 0.2 ms."""
        with suppress(DDSException):
            if self._news.triggered:
                self._known = tuple(self._read_writers())
        return self._known

    def _read_writers(self) -> Iterator[Endpoint]:
        for found in self._publications.read(10_000):
            key = getattr(found, "key", None)  # those that have gone are read without one
            if key is None or found.participant_key.bytes == self.guid or found.qos is None:
                continue
            yield Endpoint(
                key.bytes, found.participant_key.bytes, found.topic_name, found.type_name,
                Policy.Reliability.BestEffort not in found.qos, Policy.Durability.Volatile not in found.qos,
            )  # fmt: skip

    def _topic(self, name: str, kind: str) -> Any:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = Topic(self._entity, name, _raw(kind))
        return topic

    def _listen(self) -> None:
        while not self._ended:
            with suppress(DDSException):
                self._wait_set.wait(_WAIT_NS)
                self._guard.set(False)
            for condition, came in list(self._conditions):
                with suppress(DDSException):
                    if condition.triggered:
                        came()

    def close(self) -> None:
        """Leave the domain."""
        self._ended = True
        with suppress(DDSException):
            self._guard.set(True)
        self._thread.join(2.0)
        self._conditions.clear()
        self._topics.clear()
        _close(self._entity)


@cache
def _library() -> Any:
    """The library itself, for what its binding leaves out."""
    library = load_cyclonedds()
    library.dds_write_set_batch.argtypes, library.dds_write_set_batch.restype = [c_bool], None
    library.dds_write_flush.argtypes = [c_int32]
    return library


@cache
def _local_domain(domain: int) -> Any:
    """The domain, of this machine only; a process can set it up but once."""
    return Domain(domain, _LOCAL)


def _close(entity: Any) -> None:
    """Withdraw an entity now, not when nobody holds it any more."""
    with suppress(DDSException):
        entity.__del__()


def _qos(quality: Quality, user_data: str) -> Any:
    return Qos(
        Policy.Reliability.Reliable(_BLOCKED_NS) if quality.reliable else Policy.Reliability.BestEffort,
        Policy.Durability.TransientLocal if quality.latched else Policy.Durability.Volatile,
        Policy.History.KeepLast(quality.depth),
        Policy.DataRepresentation(use_cdrv0_representation=True),
        Policy.IgnoreLocal.Participant,
        Policy.Userdata(user_data.encode()),
    )


@cache
def _raw(kind: str) -> Any:
    """A type of that name without fields: what is sent is ready-made."""
    made: Any = new_class("Raw", (IdlStruct,), {"typename": kind.replace("::", ".")})
    made.__idl__.populate()
    return made
