"""Loading refuses missing, empty, binary, special and too large files, and invalid arguments."""

import os
from pathlib import Path

import pytest
from tests.harness.descriptions import ARM_URDF

from roboyard.description import load_model, load_world
from roboyard.errors import DescriptionError


def read_load_error(source: str | Path) -> str:
    messages = []
    for load in (load_model, load_world):
        with pytest.raises(DescriptionError) as caught:
            load(source)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    return messages[0]


def test_missing_file_is_refused(tmp_path: Path) -> None:
    assert "no such file" in read_load_error(tmp_path / "nothing.urdf")


def test_folder_is_refused(tmp_path: Path) -> None:
    assert "folder" in read_load_error(tmp_path)


def test_empty_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "robot.urdf"
    file.write_text("")
    assert read_load_error(file) == f"{file}: the file is empty (a URDF, xacro, SDF or MJCF document)"


def test_unknown_file_extension_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "robot.pdf"
    file.write_text(ARM_URDF)
    assert "unknown extension '.pdf'" in read_load_error(file)


def test_binary_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "robot.urdf"
    file.write_bytes(b"\x7fELF\x02\x01\x00\x00" * 100)
    assert "binary" in read_load_error(file)


def test_file_with_other_content_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "robot.xml"
    file.write_text("<html>\n</html>")
    assert "the document is a <html>" in read_load_error(file)
    file.write_text("<mujoco><worldbody><body><freejoint/></body></worldbody></mujoco>")
    assert "mass" in read_load_error(file)
    file.write_text("just words")
    assert "not well-formed XML" in read_load_error(file)


def test_too_large_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "robot.urdf"
    with file.open("wb") as stream:
        stream.truncate(2**30)
    assert "1073741824 bytes" in read_load_error(file)


def test_special_file_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.urdf"
    os.mkfifo(pipe)
    assert "not a regular file" in read_load_error(pipe)


@pytest.mark.parametrize("source", ["", "  \n", "a\x00b.urdf", "x" * 5000 + ".urdf", "no tag here"])
def test_argument_must_be_text_or_path(source: str) -> None:
    assert read_load_error(source)


def test_search_folder_must_exist(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match="search folder"):
        load_model(ARM_URDF, search=[tmp_path / "nowhere"])


def test_arguments_of_a_plain_file_are_refused() -> None:
    with pytest.raises(DescriptionError, match="arguments are given"):
        load_model(ARM_URDF, arguments={"color": "red"})
