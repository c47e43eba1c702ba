"""Maps in files: what is saved comes back in every mode, and is what ROS's map_server makes of it."""

import gzip
import math
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from tests.harness.files import temporary_folder

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.mapping.map_files import (
    MapMode,
    classify_cells,
    load_map,
    read_image,
    read_map_info,
    save_map,
    write_image,
)

seeds = st.integers(0, 2**32 - 1)


def some_grid(seed: int) -> OccupancyGrid:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 30, 2))
    pose = SE2(*rng.uniform(-20, 20, 2), rng.uniform(-3, 3))
    return OccupancyGrid(
        rng.integers(-1, 101, shape).astype(np.int8), GridGeometry(rng.uniform(0.01, 0.5), shape, pose)
    )


def same(one: OccupancyGrid, other: OccupancyGrid) -> bool:
    return np.array_equal(one.cells, other.cells) and one.geometry == other.geometry


@given(seed=seeds, mode=st.sampled_from([MapMode.SCALE, MapMode.RAW]))
def test_map_file_roundtrip_keeps_the_map(seed: int, mode: MapMode) -> None:
    grid = some_grid(seed)
    with temporary_folder() as folder:
        path = save_map(folder / "office", grid, mode)
        assert path.name == "office.yaml"
        assert same(load_map(path), grid)


@given(seed=seeds, low=st.floats(0.001, 0.97), gap=st.floats(0.02, 0.9), form=st.sampled_from(["pgm", "png"]))
def test_trinary_map_files_keep_the_classes(seed, low, gap, form) -> None:
    grid, high = some_grid(seed), min(low + gap + 1e-9, 0.999)
    with temporary_folder() as folder:
        path = folder / "office.yaml"
        save_map(path, grid, image_format=form, occupied_thresh=high, free_thresh=low)
        classes = classify_cells(grid, high, low)
        assert same(load_map(path), classes)
        save_map(path, classes, image_format=form, occupied_thresh=high, free_thresh=low)
        assert same(load_map(path), classes)


@given(seed=seeds, mode=st.sampled_from(list(MapMode)))
def test_equal_maps_give_equal_bytes(seed: int, mode: MapMode) -> None:
    with temporary_folder() as folder:
        for name in "ab":
            (folder / name).mkdir()
            save_map(folder / name / "m", some_grid(seed), mode)
        for file in (folder / "a").iterdir():
            assert file.read_bytes() == (folder / "b" / file.name).read_bytes()


def by_map_server(shade: float, opacity: float, negate: bool, mode: str, low: float, high: float) -> int:
    """One pixel, shade and opacity from 0 to 1, as Nav2's map_io.cpp has it."""
    if mode == "trinary" and opacity >= 0:
        shade = (3 * shade + opacity) / 4
    occupied = shade if negate else 1.0 - shade
    if mode == "raw":
        value = math.floor(shade * 255 + 0.5)
        return value if value <= 100 else -1
    if mode == "scale" and 0 <= opacity < 1:
        return -1
    if occupied > high:
        return 100
    if occupied < low:
        return 0
    return -1 if mode == "trinary" else round((occupied - low) / (high - low) * 100)


@given(
    seed=seeds, negate=st.booleans(), mode=st.sampled_from(["trinary", "scale", "raw"]),
    form=st.sampled_from(["P5", "P2", "P5 16 bit", "L", "LA", "RGB", "RGBA"]),
)  # fmt: skip
def test_pixel_values_mean_what_map_server_defines(seed, negate, mode, form) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 12, 2))
    white = 60_000 if "16" in form else 255
    shades = rng.integers(0, white + 1, shape)
    opacity = rng.choice([0, 128, 255], shape) if form.endswith("A") else np.full(shape, -255)
    with temporary_folder() as folder:
        if form.startswith("P"):
            name = "m.pgm"
            head = f"{form[:2]} # a comment\n{shape[1]}\n# another\n{shape[0]} {white}\n".encode()
            raw = shades.astype(">u2" if white > 255 else np.uint8).tobytes()
            text = " ".join(map(str, shades.ravel())).encode()
            (folder / name).write_bytes(head + (text if form == "P2" else raw))
        else:
            name = "m.png"
            gray = shades.astype(np.uint8)
            layers = [gray] * (3 if "RGB" in form else 1) + ([opacity.astype(np.uint8)] if form.endswith("A") else [])
            Image.fromarray(np.dstack(layers).squeeze(2) if len(layers) == 1 else np.dstack(layers)).save(folder / name)
        low, high = sorted(rng.uniform(0.05, 0.95, 2))
        content = {"image": name, "resolution": 0.05, "origin": [1.0, -2.0, 0.5], "negate": int(negate), "mode": mode}
        (folder / "m.yaml").write_text(
            yaml.dump({**content, "free_thresh": float(low), "occupied_thresh": float(high)})
        )
        found = load_map(folder / "m.yaml")
    expected = [
        [by_map_server(s / white, o / 255, negate, mode, low, high) for s, o in zip(*rows, strict=True)]
        for rows in zip(shades[::-1], opacity[::-1], strict=True)
    ]
    assert found.cells.tolist() == expected
    assert found.geometry == GridGeometry(0.05, shape, SE2(1.0, -2.0, 0.5))


@pytest.mark.parametrize("name", ["depot", "depot_keepout", "depot_speed", "tb3_sandbox", "warehouse"])
def test_nav2_maps_are_read(name: str, external_data: Path, tmp_path: Path) -> None:
    source = external_data / "nav2_maps"
    (tmp_path / f"{name}.pgm").write_bytes(gzip.decompress((source / f"{name}.pgm.gz").read_bytes()))
    (tmp_path / f"{name}.yaml").write_bytes((source / f"{name}.yaml").read_bytes())
    grid, info = load_map(tmp_path / f"{name}.yaml"), read_map_info(tmp_path / f"{name}.yaml")
    pixels = np.asarray(Image.open(tmp_path / f"{name}.pgm"))
    meaning = [
        by_map_server(s / 255, -1, info.negate, info.mode.value, info.free_thresh, info.occupied_thresh)
        for s in range(256)
    ]
    assert np.array_equal(grid.cells[::-1], np.array(meaning)[pixels])
    read_back = load_map(save_map(tmp_path / "again", grid, MapMode.SCALE))
    assert same(read_back, grid)


GOOD = "image: m.pgm\nresolution: 0.05\norigin: [0, 0, 0]\noccupied_thresh: 0.65\nfree_thresh: 0.2\nnegate: 0\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD, r"m.yaml, image: its picture .*m.pgm does not exist"),
        (GOOD.replace("m.pgm", "../m.pgm"), "lies outside"),
        (GOOD.replace("m.pgm", "/etc/passwd"), "lies outside"),
        (GOOD.replace("m.pgm", "''"), "image is empty"),
        (GOOD.replace("m.pgm", '"a\\0b"'), "image"),
        (GOOD.replace("0.05", "-1"), r"m.yaml:2, resolution: -1 m is below"),
        (GOOD.replace("0.05", ".nan"), "resolution"),
        (GOOD.replace("[0, 0, 0]", "[0, 0]"), "origin"),
        (GOOD.replace("negate: 0", "negate: 2"), "negate"),
        (GOOD + "mode: tirnary\n", "did you mean 'trinary'"),
        (GOOD.replace("0.65", "0.1"), "free_thresh 0.2 is not below occupied_thresh 0.1"),
        (GOOD.replace("resolution", "resolutoin"), "missing.*resolution|resolution.*missing"),
        ("just words", "is no mapping"),
        ("", "is empty"),
        ("a: [", "not valid YAML"),
    ],
)
def test_invalid_map_files_are_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(text)
    with pytest.raises(InputError, match=words):
        load_map(tmp_path / "m.yaml")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is no picture"),
        (b"P5 3 3 255\n12345678", "is cut off"),
        (b"P5 3", "are missing"),
        (b"P5 999999999 999999999 255\n", "pixels"),
        (b"P5 0 3 255\n", "pixels"),
        (b"P5 1 1 0\n1", "brightest shade is 0"),
        (b"P5 1 1 9\nA", "brighter than 9"),
        (b"P2 2 1 9\n1 x", "does not hold"),
        (b"P6 1 1 255\n123", "is no picture"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 40, "is (damaged|no picture)"),
        (b"GIF89a" + b"\0" * 40, "is no picture"),
    ],
)
def test_invalid_map_images_are_refused(data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(GOOD)
    (tmp_path / "m.pgm").write_bytes(data)
    with pytest.raises(InputError, match=f"m.pgm.*{words}"):
        load_map(tmp_path / "m.yaml")


def test_damaged_map_images_are_refused_or_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    write_image(tmp_path / "m.png", rng.integers(0, 255, (20, 20)).astype(np.uint8))
    content = (tmp_path / "m.png").read_bytes()
    for _ in range(200):
        data = bytearray(content)
        for position in rng.integers(8, len(data), 3):
            data[position] = rng.integers(256)
        (tmp_path / "d.png").write_bytes(data[: rng.integers(20, len(data))])
        with suppress(InputError):
            read_image(tmp_path / "d.png")


def test_unsavable_maps_are_refused(tmp_path: Path) -> None:
    grid = some_grid(1)
    for options in (
        {"occupied_thresh": 0.2, "free_thresh": 0.3},
        {"mode": MapMode.RAW, "free_thresh": 0.3},
        {"mode": MapMode.SCALE, "image_format": "pgm"},
        {"image_format": "gif"},
    ):
        with pytest.raises(InputError):
            save_map(tmp_path / "m", grid, **options)
    with pytest.raises(InputError, match="cannot be written"):
        save_map(tmp_path / "no" / "m", grid)
    with pytest.raises(InputError, match="without cells"):
        save_map(tmp_path / "m", OccupancyGrid(np.zeros((0, 3), np.int8), GridGeometry(0.1, (0, 3))))
    assert list(tmp_path.iterdir()) == []


def test_negate_takes_the_words_of_map_server(tmp_path: Path) -> None:
    write_image(tmp_path / "m.pgm", np.array([[0, 255]], np.uint8))
    for word, cells in (("0", [100, 0]), ("1", [0, 100]), ("true", [0, 100]), ("no", [100, 0])):
        (tmp_path / "m.yaml").write_text(GOOD.replace("negate: 0", f"negate: {word}\nextra: 3"))
        assert load_map(tmp_path / "m.yaml").cells.tolist() == [cells]
