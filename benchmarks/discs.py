"""Finding marked discs: recall, false ones, error and time, beside OpenCV's circles and blobs and a thesis's method.

Pictures are drawn by seeds that were not used while the detector was made; ``--data DIR`` (or the folder rgbd in
ROBOYARD_DATA) lays discs into real ones: NAME.png or NAME.jpg, with NAME.pcd or NAME.pcd.gz if there is depth.
"""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from PIL import Image

from roboyard.errors import InputError
from roboyard.geometry import CameraModel
from roboyard.vision.discs.disc_detector import DiscConfig, DiscPolarity, detect_discs
from roboyard.vision.discs.disc_pose import project_center
from roboyard.vision.discs.reference_detectors import detect_circles_hough, detect_discs_hough
from roboyard.vision.opencv import opencv, to_gray
from roboyard.vision.synthetic.disc_scenes import CONDITIONS, DiscImage, DiscImageConfig, paste_discs, render_disc_image

FIRST = 7_000_000
"""Seed of the first picture that is measured; the detector was made with seeds below 100,000."""
PICTURES, NIGHTLY = 25, 250
PROMISED = (
    "plain",
    "tilted",
    "noisy",
    "blurred",
    "dark",
    "uneven light",
    "textured",
    "cluttered",
    "distractors",
    "mixed",
)
COPIES = 12
NEAR = 0.3
"""Share of its radius by which a disc may be missed and still be found."""
KINECT = 525.0
"""Focal length of the real pictures' camera [px]."""
Detector = Callable[[np.ndarray, DiscPolarity], list[np.ndarray]]


@dataclass
class Score:
    """Detections of a detector, compared with the ground truth."""

    discs: int = 0
    frames: int = 0
    false: int = 0
    errors: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    @property
    def recall(self) -> float:
        return len(self.errors) / max(self.discs, 1)

    def add(self, picture: DiscImage, detector: Detector) -> None:
        self.frames += 1
        for polarity in ("white", "black"):
            taken = []
            for _ in range(2):  # the better of two: other programs disturb one
                start = time.perf_counter()
                found = detector(picture.image, polarity)
                taken.append((time.perf_counter() - start) * 1e3)
            self.times.append(min(taken))
            free = list(range(len(found)))
            for disc in picture.discs:
                if disc.is_white != (polarity == "white"):
                    continue
                self.discs += 1
                apart = [(float(np.linalg.norm(found[k] - disc.center)), k) for k in free]
                if apart and min(apart)[0] <= NEAR * disc.radius:
                    self.errors.append(min(apart)[0])
                    free.remove(min(apart)[1])
            self.false += len(free)

    def merge(self, other: Score) -> None:
        self.discs, self.frames, self.false = (
            self.discs + other.discs,
            self.frames + other.frames,
            self.false + other.false,
        )
        self.errors += other.errors
        self.times += other.times


def ours(lens: CameraModel, image: np.ndarray, polarity: DiscPolarity) -> list[np.ndarray]:
    return [project_center(disc, lens) for disc in detect_discs(image, DiscConfig(polarity=polarity))]


def hough(image: np.ndarray, polarity: DiscPolarity) -> list[np.ndarray]:
    return [disc.center for disc in detect_discs_hough(image, DiscConfig(polarity=polarity))]


def thesis(image: np.ndarray, polarity: DiscPolarity) -> list[np.ndarray]:
    """Its circles and its test of the mark; without depth, so that only its picture counts."""
    gray = to_gray(image)
    kept = []
    for x, y, _ in detect_circles_hough(image, DiscConfig(polarity=polarity)):
        level = gray[min(round(y), gray.shape[0] - 1), min(round(x), gray.shape[1] - 1)]
        if (level < 200) if polarity == "white" else (level > 201):
            kept.append(np.array([x, y]))
    return kept


def blobs(image: np.ndarray, polarity: DiscPolarity) -> list[np.ndarray]:
    cv2 = opencv()
    settings = cv2.SimpleBlobDetector_Params()
    settings.filterByColor, settings.blobColor = True, 0 if polarity == "white" else 255  # in the middle: the mark
    settings.filterByArea, settings.minArea, settings.maxArea = True, 80.0, 1100.0
    settings.filterByCircularity, settings.minCircularity = True, 0.7
    settings.filterByConvexity, settings.filterByInertia = False, False
    gray = to_gray(image)
    return [np.array(point.pt) for point in cv2.SimpleBlobDetector_create(settings).detect(gray)]


def synthetic(nightly: bool, runs: int | None = None, seed: int | None = None) -> dict[str, Any]:
    """Pictures of every kind."""
    count, first = runs or (NIGHTLY if nightly else PICTURES), FIRST if seed is None else seed
    lens = DiscImageConfig().camera_model
    detectors: dict[str, Detector] = {
        "ours": partial(ours, lens), "HoughCircles with polarity and mark": hough, "the thesis's circles": thesis,
        "SimpleBlobDetector": blobs,
    }  # fmt: skip
    totals = {name: Score() for name in detectors}
    details = []
    ours(lens, render_disc_image(CONDITIONS["plain"], first).image, "white")  # compiles
    for number, (kind, config) in enumerate(CONDITIONS.items()):
        scores = {name: Score() for name in detectors}
        for k in range(count):
            picture = render_disc_image(config, first + 10_000 * number + k)
            for name, detector in detectors.items():
                scores[name].add(picture, detector)
        for name, score in scores.items():
            details.append(f"{kind}: {describe_score(name, score)}")
            if kind in PROMISED:
                totals[name].merge(score)
    return {"figures": figures("synthetic pictures", totals, 0.99, 0.01), "details": details}


def describe_score(name: str, score: Score) -> str:
    error = f"{np.median(score.errors):.3f} px" if score.errors else "-"
    return (
        f"{name}: {len(score.errors)} of {score.discs} discs, {score.false} false in {score.frames} pictures, "
        f"error {error}, {np.median(score.times):.1f} ms"
    )


def figures(about: str, totals: dict[str, Score], recall: float, false: float) -> list[dict[str, Any]]:
    own = totals["ours"]
    out: list[dict[str, Any]] = []
    for peer in list(totals)[1:]:
        other = totals[peer]
        out.append({"name": f"{about}: recall", "value": own.recall, "target": f">= {recall}", "peer": peer,
                    "peer_value": other.recall})  # fmt: skip
        out.append({"name": f"{about}: false ones a picture", "value": own.false / own.frames, "limit": false,
                    "peer": peer, "peer_value": other.false / other.frames})  # fmt: skip
    errors = {name: float(np.median(score.errors)) if score.errors else None for name, score in totals.items()}
    hough_name = list(totals)[1]
    out.append({"name": f"{about}: median error of the middle", "value": errors["ours"], "unit": "px", "limit": 0.1,
                "peer": hough_name, "peer_value": errors[hough_name]})  # fmt: skip
    times = {name: float(np.median(score.times)) for name, score in totals.items()}
    out.append({"name": f"{about}: a picture, one polarity", "value": times["ours"], "unit": "ms", "limit": 5.0,
                "peer": hough_name, "peer_value": times[hough_name]})  # fmt: skip
    return out


KINDS = {"F": "f", "U": "u", "I": "i"}


@numba.njit
def unpack(data: np.ndarray, size: int) -> np.ndarray:
    """LZF: runs of bytes, and runs that were there before."""
    out = np.empty(size, np.uint8)
    i = o = 0
    while i < len(data) and o < size:
        code = int(data[i])
        i += 1
        if code < 32:
            for _ in range(code + 1):
                out[o] = data[i]
                i, o = i + 1, o + 1
        else:
            count = code >> 5
            if count == 7:
                count += int(data[i])
                i += 1
            back = ((code & 31) << 8) + int(data[i]) + 1
            i += 1
            for _ in range(count + 2):
                out[o] = out[o - back]
                o += 1
    return out


def read_depth(path: Path) -> np.ndarray:
    """(h, w) float32: z of an organised cloud's points [m], from a file of the Point Cloud Library."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    end = raw.index(b"\n", raw.index(b"\nDATA") + 1) + 1
    head = {words[0]: words[1:] for words in (line.split() for line in raw[:end].decode().splitlines()) if words}
    width, height, names = int(head["WIDTH"][0]), int(head["HEIGHT"][0]), head["FIELDS"]
    count = width * height
    types = [np.dtype("<" + KINDS[kind] + size) for kind, size in zip(head["TYPE"], head["SIZE"], strict=True)]
    form, place = head["DATA"][0], names.index("z")
    if form == "ascii":
        z = np.loadtxt(raw[end:].decode().splitlines(), usecols=place, dtype=np.float32)
    elif form == "binary":
        z = np.frombuffer(raw, np.dtype(list(zip(names, types, strict=True))), count, end)["z"]
    else:  # one field after the other
        packed, size = np.frombuffer(raw, "<u4", 2, end)
        data = unpack(np.frombuffer(raw, np.uint8, int(packed), end + 8), int(size))
        start = sum(t.itemsize for t in types[:place]) * count
        z = data[start : start + 4 * count].view("<f4")
    return np.asarray(z, np.float32).reshape(height, width)


def real_pictures(folder: Path | None) -> Iterator[tuple[str, np.ndarray, np.ndarray | None]]:
    if folder is None:
        data = os.environ.get("ROBOYARD_DATA")
        folder = Path(data) / "rgbd" if data else None
    if folder is None or not folder.is_dir():
        raise ImportError("no real pictures: --data DIR, or ROBOYARD_DATA with a folder rgbd")
    for path in sorted([*folder.glob("*.png"), *folder.glob("*.jpg")]):
        image = np.asarray(Image.open(path).convert("RGB"))
        cloud = next((p for ending in (".pcd", ".pcd.gz") if (p := folder / (path.stem + ending)).is_file()), None)
        depth = None if cloud is None else read_depth(cloud)
        if depth is not None and depth.shape != image.shape[:2]:
            raise InputError(f"depth of {depth.shape} for a picture of {image.shape[:2]}", location=str(cloud))
        yield path.name, image, depth


def real(nightly: bool, folder: Path | None = None, runs: int | None = None, seed: int | None = None) -> dict[str, Any]:
    """Real pictures with discs laid into them."""
    totals: dict[str, Score] = {}
    details, empty = [], 0
    copies, first = runs or COPIES * (10 if nightly else 1), FIRST if seed is None else seed
    pictures = list(real_pictures(folder))
    if not pictures:
        raise ImportError("no pictures in the folder: NAME.png or NAME.jpg")
    for number, (name, image, depth) in enumerate(pictures):
        height, width = image.shape[:2]
        focal = KINECT * width / 640.0
        lens = CameraModel(width, height, focal, focal, 0.5 * (width - 1), 0.5 * (height - 1))
        detectors: dict[str, Detector] = {
            "ours": partial(ours, lens), "HoughCircles with polarity and mark": hough, "the thesis's circles": thesis,
            "SimpleBlobDetector": blobs,
        }  # fmt: skip
        scores = {peer: Score() for peer in detectors}
        for polarity in ("white", "black"):
            empty += len(ours(lens, image, polarity))
        for k in range(copies):
            picture = paste_discs(image, depth, lens, np.random.default_rng([first, number, k]))
            for peer, detector in detectors.items():
                scores[peer].add(picture, detector)
        for peer, score in scores.items():
            details.append(f"{name}: {describe_score(peer, score)}")
            totals.setdefault(peer, Score()).merge(score)
    found = figures("real pictures", totals, 0.9, 0.0)
    found.append({"name": "real pictures as they are: false ones", "value": empty, "limit": 0})
    return {"figures": found, "details": details}


PARTS = [synthetic, real]
