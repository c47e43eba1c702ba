"""The content cache returns complete entries of the same content only, and no failure of the cache is an error."""

import os
import stat
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.config.content_cache import ContentCache, content_key

VALUE = {"names": ["a", "b"], "half": 0.5, "none": None, "large": 2**60}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "roboyard" / "parsed" / "things"


def test_cache_reads_what_was_written() -> None:
    assert ContentCache("things").read(content_key([b"a"])) is None
    ContentCache("things").write(content_key([b"a"]), VALUE)
    assert ContentCache("things").read(content_key([b"a"])) == VALUE
    assert ContentCache("things").read(content_key([b"b"])) is None
    assert ContentCache("others").read(content_key([b"a"])) is None


@given(st.lists(st.binary(max_size=9), max_size=4), st.lists(st.binary(max_size=9), max_size=4))
def test_cache_keys_are_equal_where_contents_are(a: list[bytes], b: list[bytes]) -> None:
    assert (content_key(a) == content_key(b)) == (a == b)


@given(a=st.binary(max_size=9), b=st.binary(min_size=1, max_size=9))
def test_cache_key_depends_on_the_borders_of_parts(a: bytes, b: bytes) -> None:
    assert content_key([a, b]) != content_key([a + b[:1], b[1:]])


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "foreign", "nested"])
def test_damaged_cache_entry_is_not_returned(folder: Path, damage: str) -> None:
    cache, key = ContentCache("things"), content_key([b"a"])
    cache.write(key, VALUE)
    (path,) = folder.iterdir()
    data = path.read_bytes()
    path.write_bytes(
        {
            "cut": data[:-3],
            "flipped": data.replace(b"0.5", b"0.6"),
            "emptied": b"",
            "foreign": b"\x80\x04N.",
            "nested": b"[" * 100_000,
        }[damage]
    )
    assert cache.read(key) is None
    cache.write(key, VALUE)
    assert cache.read(key) == VALUE


def test_cache_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    cache = ContentCache("things")
    cache.write(content_key([b"a"]), VALUE)
    assert cache.read(content_key([b"a"])) is None


def test_failed_cache_write_leaves_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_disk_full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", raise_disk_full)
    ContentCache("things").write(content_key([b"a"]), VALUE)
    assert list(folder.iterdir()) == []


def test_cache_keeps_the_most_recently_used_entries(folder: Path) -> None:
    cache = ContentCache("things", max_entries=3)
    keys = [content_key([bytes([number])]) for number in range(4)]
    for number, key in enumerate(keys[:3]):
        cache.write(key, number)
        os.utime(folder / f"{key}.json", ns=(number, number))  # the order must not depend on the file system's clock
    assert cache.read(keys[0]) == 0
    cache.write(keys[3], 3)
    assert [cache.read(key) for key in keys] == [0, None, 2, 3]


def test_cache_keeps_no_more_bytes_than_allowed(folder: Path) -> None:
    cache = ContentCache("things", max_bytes=1000)
    cache.write(content_key([b"large"]), "x" * 2000)
    assert not folder.exists()
    for number in range(5):
        cache.write(content_key([bytes([number])]), "x" * 400)
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 1000


def test_cache_entry_is_readable_by_its_user_only(folder: Path) -> None:
    ContentCache("things").write(content_key([b"a"]), VALUE)
    (path,) = folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def _write_and_read(number: int) -> list[object]:
    cache, key = ContentCache("things", max_entries=2), content_key([b"shared"])
    entries = []
    for _ in range(50):
        cache.write(key, [number] * 500)
        cache.write(content_key([bytes([number])]), number)
        entries.append(cache.read(key))
    return entries


def test_concurrent_cache_writers_leave_complete_entries() -> None:
    with ProcessPoolExecutor(2) as pool:
        for entries in pool.map(_write_and_read, [1, 2]):
            assert all(entry in ([1] * 500, [2] * 500, None) for entry in entries)
            assert any(entry is not None for entry in entries)
