"""Recordings as ROS's own tools take them: rosbag1, and rosbag2 in SQLite or MCAP."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, Protocol, get_args

from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2

from roboyard.bridges.ros1.types import ros1_type
from roboyard.errors import InputError, MessageError, RecordingError
from roboyard.messages import schema, serialize, type_hash
from roboyard.record import RecordedChannel, Recording, open_recording
from roboyard.record.conversion import ConversionResult

BagKind = Literal["rosbag1", "rosbag2", "rosbag2-mcap"]
"""rosbag2 alone is SQLite, which every distribution of ROS 2 plays."""

_VERSION: Final = 9
_FOREVER: Final = QosTime(9223372036, 854775807)


class _Bag(Protocol):
    """A bag that is written."""

    def write(self, connection: RecordedChannel, time_ns: int, message: Any) -> None:
        """Add a message. Raises MessageError."""

    def close(self) -> None:
        """Finish it."""


def export(source: Path | str, out: Path | str, kind: BagKind, *, overwrite: bool = False) -> ConversionResult:
    """Write any recording as a bag of ROS 1 (a file) or ROS 2 (a folder).

    Topics that cannot be told there are left out, with a warning.

    Args:
        source: A recording of any kind, or a run's folder.
        out: The new file or folder.
        kind: Which.
        overwrite: Replace what is there, if that is a bag; it stays until the new one is whole.

    Raises:
        RecordingError: ``source`` cannot be read, or ``out`` exists or cannot be written.
    """
    if kind not in get_args(BagKind):
        raise InputError(f"'{kind}' is no kind of bag", valid=", ".join(get_args(BagKind)))
    out = Path(out)
    with open_recording(source) as recording:
        _check_place(out, recording.path, overwrite=overwrite)
        try:
            with TemporaryDirectory(dir=out.parent, prefix=".roboyard-bag-") as folder:
                new = Path(folder) / out.name  # rosbag2 names the files in a bag after its folder
                bag: _Bag = _Bag1(new) if kind == "rosbag1" else _Bag2(new, mcap=kind == "rosbag2-mcap")
                try:
                    copied = _copy(recording, bag)
                finally:
                    bag.close()
                _replace(out, new, Path(folder) / "old")
                return copied
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise RecordingError(f"cannot be written: {reason}", location=str(out)) from error


def _copy(recording: Recording, bag: _Bag) -> ConversionResult:
    count, start_ns, end_ns = 0, 0, 0
    bad: set[RecordedChannel] = set()
    for connection in recording.channels:
        if connection.encoding not in ("cdr", "ros1"):
            bad.add(connection)
            recording.warnings.append(f"{connection.topic} is encoded as '{connection.encoding}' and was left out")
    chosen = [connection for connection in recording.channels if connection not in bad]
    for time_ns, connection, data in recording.raw_messages_of_channels(chosen):
        if connection in bad:
            continue
        try:
            bag.write(connection, time_ns, recording.decoder(connection)(data))
        except MessageError as error:
            bad.add(connection)
            recording.warnings.append(f"{connection.topic} was left out: {error}")
            continue
        start_ns = start_ns if count else time_ns
        end_ns = time_ns
        count += 1
    return ConversionResult(count, start_ns, end_ns, tuple(recording.warnings))


def _replace(out: Path, new: Path, old: Path) -> None:
    """Put ``new`` in the place of ``out``, and what was there at ``old``; raises OSError, and all is as before."""
    if out.exists():
        out.rename(old)
    try:
        new.rename(out)
    except OSError:
        if old.exists():
            old.rename(out)
        raise


def _check_place(out: Path, source: Path, *, overwrite: bool) -> None:
    """Refuse a place where something is that is not to be replaced; what is no bag never is."""
    if not out.exists():
        return
    if source.exists() and (out.samefile(source) or out in source.resolve().parents):
        raise RecordingError("is the recording itself", location=str(out), valid="another place")
    bag = (out / "metadata.yaml").is_file() if out.is_dir() else out.suffix == ".bag"
    if not overwrite or not bag:
        raise RecordingError("exists already", location=str(out), valid="a new name, or --overwrite of a bag")


class _Bag1:
    def __init__(self, out: Path) -> None:
        self._writer = Writer1(out)
        self._writer.open()
        self._connections: dict[tuple[str, str], Any] = {}

    def write(self, connection: RecordedChannel, time_ns: int, message: Any) -> None:
        kind = ros1_type(connection.type)
        data = kind.encode(message)
        key = (connection.topic, connection.publisher)
        if key not in self._connections:
            self._connections[key] = self._writer.add_connection(
                connection.topic, kind.name.replace("/", "/msg/"), msgdef=kind.definition, md5sum=kind.md5,
                callerid=connection.publisher or "/unknown", latching=int(connection.latched),
            )  # fmt: skip
        self._writer.write(self._connections[key], time_ns, data)

    def close(self) -> None:
        self._writer.close()


class _Bag2:
    def __init__(self, out: Path, *, mcap: bool) -> None:
        plugin = StoragePlugin.MCAP if mcap else StoragePlugin.SQLITE3
        self._writer = Writer2(out, version=_VERSION, storage_plugin=plugin)
        self._writer.open()
        self._connections: dict[tuple[str, bool], Any] = {}

    def write(self, connection: RecordedChannel, time_ns: int, message: Any) -> None:
        data = serialize(message)
        key = (connection.topic, connection.latched)  # rosbag2 does not keep who published
        if key not in self._connections:
            self._connections[key] = self._writer.add_connection(
                connection.topic, connection.type, msgdef=schema(connection.type), rihs01=type_hash(connection.type),
                offered_qos_profiles=[_quality(latched=connection.latched)],
            )  # fmt: skip
        self._writer.write(self._connections[key], time_ns, data)

    def close(self) -> None:
        self._writer.close()


def _quality(*, latched: bool) -> Qos:
    return Qos(
        QosHistory.KEEP_LAST, 1 if latched else 10, QosReliability.RELIABLE,
        QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE,
        _FOREVER, _FOREVER, QosLiveliness.AUTOMATIC, _FOREVER, False,
    )  # fmt: skip
