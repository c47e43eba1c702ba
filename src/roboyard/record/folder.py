"""A folder of files as one recording: what ``ros2 bag record`` makes, also when it was killed."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

from roboyard.errors import RecordingError
from roboyard.record.recording import Connection, Decode, Raw, Recording


class FolderRecording(Recording):
    """Several files read as one.

    A file that cannot be opened is left out with a warning, as the last one of a killed recorder may be.

    Args:
        path: The folder.
        files: Its files, in the order of their time.
        open_part: What opens one of them.

    Raises:
        RecordingError: none of them can be read.
    """

    format = "rosbag2"

    def __init__(self, path: Path, files: Sequence[Path], open_part: Callable[[Path], Recording]) -> None:
        super().__init__(path)
        self._parts: list[Recording] = []
        try:
            for file in files:
                self._open(file, open_part)
            if not self._parts:
                raise RecordingError("; ".join(self.warnings), where=str(path))
        except BaseException:
            self.close()
            raise
        merged: dict[tuple[str, str, str], Connection] = {}
        for part in self._parts:
            self.complete = self.complete and part.complete
            self.warnings += [f"{part.path.name}: {warning}" for warning in part.warnings]
            self.metadata = {**self.metadata, **part.metadata}
            for connection in part.connections:
                key = _key(connection)
                merged[key] = _join(merged[key], connection) if key in merged else connection
        self.connections = tuple(merged.values())

    def _open(self, file: Path, open_part: Callable[[Path], Recording]) -> None:
        try:
            self._parts.append(open_part(file))
        except RecordingError as error:
            self.complete = False
            self.warnings.append(f"{file.name} was left out: {error.what}")

    def close(self) -> None:
        """Close the files; harmless when already closed."""
        super().close()
        for part in self._parts:
            part.close()

    def _decoder(self, connection: Connection) -> Decode:
        for part in self._parts:
            for own in part.connections:
                if _key(own) == _key(connection):
                    return part.decoder(own)
        raise KeyError(connection.topic)

    def _raw(self, wanted: Collection[Connection], start_ns: int, end_ns: int) -> Iterator[Raw]:
        chosen = {_key(connection): connection for connection in wanted}

        def of(part: Recording) -> Iterator[Raw]:
            own = [connection for connection in part.connections if _key(connection) in chosen]
            for time_ns, connection, data in part._raw(own, start_ns, end_ns):
                yield time_ns, chosen[_key(connection)], data

        yield from heapq.merge(*(of(part) for part in self._parts), key=itemgetter(0))


def _key(connection: Connection) -> tuple[str, str, str]:
    return connection.topic, connection.type, connection.publisher


def _join(first: Connection, second: Connection) -> Connection:
    used = [connection for connection in (first, second) if connection.count]
    return replace(
        first,
        count=first.count + second.count,
        start_ns=min((connection.start_ns for connection in used), default=0),
        end_ns=max((connection.end_ns for connection in used), default=0),
    )
