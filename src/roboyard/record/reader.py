"""Opens whatever holds recorded messages, told apart by content."""

from __future__ import annotations

from pathlib import Path

from roboyard.errors import RecordingError
from roboyard.record import mcap_format as mcap
from roboyard.record.recording import Recording

_KINDS = "an MCAP file, a rosbag2 folder or .db3, a rosbag1 .bag, or a CARMEN .clf or .log (also gzipped)"


def open_recording(path: Path | str) -> Recording:
    """Open a recording for reading; use it as a context manager or close it.

    MCAP (complete, still being written, or torn by a kill), rosbag2 folders and databases, rosbag1 files and CARMEN
    logs, all behind the same interface.  A folder of a run is opened by the ``recording.mcap`` in it.

    Args:
        path: File or folder.

    Raises:
        RecordingError: there is no such file, it is empty, or it is none of these.
    """
    path = Path(path)
    try:
        if path.is_dir():
            return _open_folder(path)
        with path.open("rb") as file:
            start = file.read(256)
    except FileNotFoundError as error:
        raise RecordingError("does not exist", where=str(path), valid=_KINDS) from error
    except OSError as error:
        raise RecordingError(f"cannot be opened: {error.strerror}", where=str(path), valid=_KINDS) from error
    return _open_file(path, start)


def _open_file(path: Path, start: bytes) -> Recording:
    if not start:
        raise RecordingError("is empty", where=str(path), valid=_KINDS)
    if start.startswith(mcap.MAGIC):
        from roboyard.record.mcap_recording import McapRecording

        return McapRecording(path)
    if start.startswith(b"#ROSBAG V"):
        from roboyard.record.rosbag import Rosbag1Recording

        return Rosbag1Recording(path)
    if start.startswith(b"SQLite format 3\0"):
        from roboyard.record.rosbag import Rosbag2Recording

        return Rosbag2Recording(path)
    if start.startswith(b"\x1f\x8b") or _is_text(start):
        from roboyard.record.carmen import CarmenRecording

        return CarmenRecording(path)
    if mcap.MAGIC.startswith(start[:8]):
        raise RecordingError("ends before its header", where=str(path), valid=_KINDS)
    raise RecordingError("is no recording", where=str(path), valid=_KINDS)


def _open_folder(path: Path) -> Recording:
    own = path / "recording.mcap"
    if own.is_file():
        return open_recording(own)
    files = sorted(path.glob("*.mcap"), key=_natural)
    if files:
        from roboyard.record.folder import McapFolder

        return McapFolder(path, files)
    if (path / "metadata.yaml").is_file():
        from roboyard.record.rosbag import Rosbag2Recording

        return Rosbag2Recording(path)
    databases = sorted(path.glob("*.db3"))
    if len(databases) == 1:
        return open_recording(databases[0])
    raise RecordingError("holds no recording", where=str(path), valid=_KINDS)


def _natural(path: Path) -> tuple[int, str]:
    """Sorts name_2 before name_10."""
    number = path.stem.rpartition("_")[2]
    return (int(number) if number.isdecimal() else 0), path.name


def _is_text(start: bytes) -> bool:
    return all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in start)
