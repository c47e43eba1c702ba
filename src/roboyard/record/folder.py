"""A folder of files as one recording: what ``ros2 bag record`` makes, also when it was killed."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

from roboyard.errors import RecordingError
from roboyard.record.recording import MessageDecoder, RawMessage, RecordedChannel, Recording


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
                raise RecordingError("; ".join(self.warnings), location=str(path))
        except BaseException:
            self.close()
            raise
        merged: dict[tuple[str, str, str], RecordedChannel] = {}
        for part in self._parts:
            self.is_complete = self.is_complete and part.is_complete
            self.warnings += [f"{part.path.name}: {warning}" for warning in part.warnings]
            self.metadata = {**self.metadata, **part.metadata}
            for channel in part.channels:
                key = _key(channel)
                merged[key] = _join(merged[key], channel) if key in merged else channel
        self.channels = tuple(merged.values())

    def _open(self, file: Path, open_part: Callable[[Path], Recording]) -> None:
        try:
            self._parts.append(open_part(file))
        except RecordingError as error:
            self.is_complete = False
            self.warnings.append(f"{file.name} was left out: {error.message}")

    def close(self) -> None:
        """Close the files; harmless when already closed."""
        super().close()
        for part in self._parts:
            part.close()

    def _make_decoder(self, channel: RecordedChannel) -> MessageDecoder:
        for part in self._parts:
            for part_channel in part.channels:
                if _key(part_channel) == _key(channel):
                    return part.decoder(part_channel)
        raise KeyError(channel.topic)

    def _raw_messages(self, channels: Collection[RecordedChannel], start_ns: int, end_ns: int) -> Iterator[RawMessage]:
        channel_by_key = {_key(channel): channel for channel in channels}

        def part_messages(part: Recording) -> Iterator[RawMessage]:
            part_channels = [channel for channel in part.channels if _key(channel) in channel_by_key]
            for time_ns, channel, data in part._raw_messages(part_channels, start_ns, end_ns):
                yield time_ns, channel_by_key[_key(channel)], data

        yield from heapq.merge(*(part_messages(part) for part in self._parts), key=itemgetter(0))


def _key(channel: RecordedChannel) -> tuple[str, str, str]:
    return channel.topic, channel.type, channel.publisher


def _join(first: RecordedChannel, second: RecordedChannel) -> RecordedChannel:
    used = [channel for channel in (first, second) if channel.count]
    return replace(
        first,
        count=first.count + second.count,
        start_ns=min((channel.start_ns for channel in used), default=0),
        end_ns=max((channel.end_ns for channel in used), default=0),
    )
