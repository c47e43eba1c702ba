"""Opens whatever holds recorded messages, told apart by content."""

from __future__ import annotations

import stat
from pathlib import Path
from tempfile import TemporaryDirectory

from roboyard.errors import RecordingError
from roboyard.record import compressed
from roboyard.record import mcap_format as mcap
from roboyard.record.recording import Recording

_FORMATS = "an MCAP file, a rosbag2 folder or .db3, a rosbag1 .bag, or a CARMEN .clf or .log (also compressed)"
_FILE_PATTERNS = ("*.mcap", "*.db3")


def open_recording(path: Path | str) -> Recording:
    """Open a recording for reading; use it as a context manager or close it.

    MCAP (complete, still being written, or torn by a kill), rosbag2 folders and databases, rosbag1 files and CARMEN
    logs, all behind the same interface; also compressed by zstd or gzip.  A folder of a run is opened by the
    ``recording.mcap`` in it.

    Args:
        path: File or folder.

    Raises:
        RecordingError: there is no such file, it is empty, or it is none of these.
    """
    path = Path(path)
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return _open_folder(path)
        if not stat.S_ISREG(mode):  # a pipe would let us wait for ever
            raise RecordingError("is neither file nor folder", location=str(path), valid=_FORMATS)
        with path.open("rb") as file:
            start = file.read(256)
    except FileNotFoundError as error:
        raise RecordingError("does not exist", location=str(path), valid=_FORMATS) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RecordingError(f"cannot be opened: {reason}", location=str(path), valid=_FORMATS) from error
    return _open_file(path, start)


def _open_file(path: Path, start: bytes) -> Recording:
    if not start:
        raise RecordingError("is empty", location=str(path), valid=_FORMATS)
    if start.startswith(mcap.MAGIC):
        from roboyard.record.mcap_recording import McapRecording

        return McapRecording(path)
    if start.startswith(b"#ROSBAG V"):
        from roboyard.record.rosbag import Rosbag1Recording

        return Rosbag1Recording(path)
    if start.startswith(b"SQLite format 3\0"):
        from roboyard.record.rosbag import Rosbag2Recording

        return Rosbag2Recording(path)
    zipped = start.startswith(compressed.GZIP)
    if start.startswith(compressed.ZSTD) or (zipped and not _is_text(compressed.read_head(path, 256))):
        return _open_compressed(path)
    if zipped or _is_text(start):
        from roboyard.record.carmen import CarmenRecording

        return CarmenRecording(path)
    if mcap.MAGIC.startswith(start[:8]):
        raise RecordingError("ends before its header", location=str(path), valid=_FORMATS)
    raise RecordingError("is no recording", location=str(path), valid=_FORMATS)


def _open_compressed(path: Path) -> Recording:
    folder = TemporaryDirectory(prefix="roboyard-")
    try:
        inner, is_complete = compressed.decompress_to_folder(path, Path(folder.name))
        with inner.open("rb") as file:
            start = file.read(256)
        if start.startswith((compressed.GZIP, compressed.ZSTD)):
            raise RecordingError("is compressed twice", location=str(path), valid=_FORMATS)
        recording = _open_file(inner, start)
    except RecordingError as error:
        folder.cleanup()
        raise RecordingError(error.message, location=str(path), valid=error.valid) from error
    except BaseException:
        folder.cleanup()
        raise
    recording.attach_temp_dir(folder, path)
    if not is_complete:
        recording.is_complete = False
        recording.warnings.insert(0, "the compressed file is cut off or damaged; what is whole was read")
    return recording


def _open_folder(path: Path) -> Recording:
    run_recording = path / "recording.mcap"
    if run_recording.is_file():
        return open_recording(run_recording)
    for pattern in _FILE_PATTERNS:
        files = _files_in_order(path, pattern)
        if files:
            from roboyard.record.folder import FolderRecording

            return FolderRecording(path, files, open_recording)
    if (path / "metadata.yaml").is_file():
        raise RecordingError("has a metadata.yaml, but its .mcap or .db3 files are missing", location=str(path))
    raise RecordingError("holds no recording", location=str(path), valid=_FORMATS)


def _files_in_order(path: Path, pattern: str) -> list[Path]:
    """Files of a folder in the order of their numbers; of a file that is there unpacked too, that one."""
    plain = [file for file in path.glob(pattern) if file.is_file()]
    names = {file.name for file in plain}
    packed = [file for file in path.glob(f"{pattern}.zst*") if file.stem not in names]
    return sorted(plain + packed, key=_natural_sort_key)


def _natural_sort_key(path: Path) -> tuple[int, str]:
    """Sorts name_2 before name_10."""
    number = path.name.partition(".")[0].rpartition("_")[2]
    return (int(number) if number.isdecimal() and len(number) < 18 else 0), path.name


def _is_text(start: bytes) -> bool:
    return all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in start)
