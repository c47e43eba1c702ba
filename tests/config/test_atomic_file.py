"""Atomic writes replace a file completely or not at all, on a full disk, an error, a kill and concurrent writes."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.full_disk import full_disk

from roboyard.config import atomic_path, write_atomic
from roboyard.errors import RoboyardError

OLD = b"the old content\n" * 10


@given(st.one_of(st.text(st.characters(exclude_categories=["Cs"])), st.binary()))
def test_atomic_file_holds_the_written_bytes(content: str | bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        for _ in range(2):
            write_atomic(path, content)
            assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
        assert list(Path(folder).iterdir()) == [path]


@pytest.mark.parametrize("old", [OLD, None])
def test_full_disk_leaves_the_old_file(tmp_path: Path, old: bytes | None) -> None:
    path = tmp_path / "file"
    if old is not None:
        path.write_bytes(old)
    with full_disk(), pytest.raises(OSError, match=str(path)) as caught:
        write_atomic(path, b"new" * 100)
    assert caught.value.filename == str(path)
    assert (path.read_bytes() if path.exists() else None) == old
    assert len(list(tmp_path.iterdir())) == (old is not None)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_error_while_writing_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "file"
    path.write_bytes(OLD)

    def write() -> None:
        with atomic_path(path) as temporary:
            temporary.write_bytes(b"half")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_bytes() == OLD
    assert list(tmp_path.iterdir()) == [path]


def test_kill_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(OLD)
    code = (
        "import sys; from roboyard.config import atomic_path\n"
        "with atomic_path(sys.argv[1]) as temporary:\n"
        "    temporary.write_bytes(b'half'); print('written', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"written\n"
        child.send_signal(signal.SIGKILL)
    assert path.read_bytes() == OLD
    write_atomic(path, b"new")  # the temporary file of the killed process does not prevent later writes
    assert path.read_bytes() == b"new"


def test_concurrent_readers_never_read_partial_contents(tmp_path: Path) -> None:
    path = tmp_path / "file"
    contents = [bytes([65 + k]) * 5000 for k in range(4)]
    write_atomic(path, contents[0])
    failures: list[BaseException] = []

    def write(content: bytes) -> None:
        try:
            for _ in range(20):
                write_atomic(path, content)
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert path.read_bytes() in contents
    assert not failures
    assert list(tmp_path.iterdir()) == [path]


def test_replaced_file_keeps_permissions_and_links(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(OLD)
    target.chmod(0o640)
    link.symlink_to(target)
    write_atomic(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640
    (tmp_path / "plain").write_bytes(b"")
    write_atomic(tmp_path / "made", b"")
    assert (tmp_path / "made").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640])
def test_new_file_has_the_requested_permissions(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret"
    umask = os.umask(0o022)
    try:
        write_atomic(path, b"first", mode=mode)
        assert path.stat().st_mode & 0o777 == mode & ~0o022
        path.chmod(0o604)
        write_atomic(path, b"second", mode=mode)  # a file that exists keeps its own
        assert path.stat().st_mode & 0o777 == 0o604
    finally:
        os.umask(umask)


def test_protected_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(OLD)
    path.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda file, mode: not mode & os.W_OK)  # root has write permission for every file
    with pytest.raises(PermissionError, match=str(path)):
        write_atomic(path, b"new")
    assert path.read_bytes() == OLD


def test_devices_and_pipes_are_written_in_place(tmp_path: Path) -> None:
    write_atomic("/dev/null", b"gone")
    assert not Path("/dev/null").is_file()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    write_atomic(pipe, b"through")
    reader.join()
    assert received == [b"through"]


@pytest.mark.parametrize("relative_path", ["folder", "missing/file", "n" * 300])
def test_invalid_path_is_an_error_that_names_it(tmp_path: Path, relative_path: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=relative_path):
        write_atomic(tmp_path / relative_path, b"")


@pytest.mark.parametrize("name", ["n" * 255, "ü" * 127])
def test_longest_file_names_can_be_written(tmp_path: Path, name: str) -> None:
    write_atomic(tmp_path / name, b"new")
    assert (tmp_path / name).read_bytes() == b"new"


def _write_image(path: Path) -> None:
    from roboyard.mapping.map_files import write_image

    write_image(path, np.zeros((20, 20), dtype=np.uint8))


def _write_lines(path: Path) -> None:
    from roboyard.mapping.trajectory import write_lines

    write_lines(path, ["VERTEX_SE2 0 0 0 0"] * 9)


def _write_place(path: Path) -> None:
    from roboyard.mapping.graph_slam.map_file import PoseGraphMap, save_pose_graph_map

    save_pose_graph_map(path, PoseGraphMap())


def _write_stl(path: Path) -> None:
    from roboyard.description.meshes.files import write_stl
    from roboyard.description.meshes.mesh import TriangleMesh

    write_stl(path, TriangleMesh(np.eye(3), np.array([[0, 1, 2]])))


def _write_result(path: Path) -> None:
    from roboyard.cli.arguments import write_text

    write_text(path, "steps\n" * 100)


def _write_table(path: Path) -> None:
    from roboyard.scenarios.batch.export import export_results
    from roboyard.scenarios.batch.worker import TrialResult

    export_results([TrialResult(k, "done", True) for k in range(9)], path)


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (_write_image, "map.pgm"),
        (_write_image, "map.png"),
        (_write_lines, "graph.g2o"),
        (_write_place, "pose_graph.npz"),
        (_write_stl, "mesh.stl"),
        (_write_result, "steps.yaml"),
        (_write_table, "runs.csv"),
        (_write_table, "runs.parquet"),
    ],
)
def test_package_writers_replace_files_atomically(tmp_path: Path, write: Callable[[Path], None], name: str) -> None:
    path = tmp_path / name
    path.write_bytes(OLD)
    with full_disk(), pytest.raises((OSError, RoboyardError)):
        write(path)
    assert path.read_bytes() == OLD
    assert list(tmp_path.iterdir()) == [path]
    write(path)
    assert path.read_bytes() != OLD
    assert list(tmp_path.iterdir()) == [path]
