"""A calibration for people: the fit and its residuals as a picture, a page, and the moves as a table."""

from __future__ import annotations

import base64
import csv
import html
import io
from pathlib import Path

import numpy as np

from roboyard.config import dumps, write_atomic
from roboyard.scenarios.calibration.drive import Calibrated
from roboyard.scenarios.run_folder import unwritable

_UNITS = {"wheel_radius": "m", "effective_track": "m"}
_NAMES = {
    "wheel_radius": "wheel radius, mean of both sides",
    "left_radius_scale": "left over mean radius",
    "right_radius_scale": "right over mean radius",
    "slip_factor": "slip factor k",
    "effective_track": "effective track k·c",
}
_COLOURS = {"spot": "#0072b2", "arc": "#d55e00", "straight": "#009e73"}  # safe for colour-blind eyes


def write_calibration(result: Calibrated, folder: Path) -> dict[str, Path]:
    """Write page, picture, table of the moves and the calibration itself; gives their paths by name.

    Raises:
        RunError: the folder cannot be written.
    """
    picture = draw(result)
    contents = {
        "report": ("report.html", page(result, picture).encode()),
        "picture": ("fit.png", picture),
        "moves": ("moves.csv", _table(result).encode()),
        "calibration": ("calibration.yaml", dumps(result.record).encode()),
    }
    paths: dict[str, Path] = {}
    for name, (file, data) in contents.items():
        paths[name] = folder / file
        try:
            write_atomic(paths[name], data)
        except OSError as error:
            raise unwritable(paths[name], error) from error
    return paths


def draw(result: Calibrated) -> bytes:
    """PNG: rolled against real turns and ways with the fit, and what the fit leaves."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    driven, fit, nominal = result.driven, result.fit, result.nominal
    kinds = np.array([move.kind for move in driven.moves])
    pairs = list(zip(driven.left.tolist(), driven.right.tolist(), strict=True))
    ways, turns = np.array([nominal.travel(left, right) for left, right in pairs]).T
    figure = Figure(figsize=(9.0, 6.4), layout="constrained")
    (turn_fit, way_fit), (turn_rest, way_rest) = figure.subplots(2, 2)
    for kind, colour in _COLOURS.items():
        where = kinds == kind
        dots = {"color": colour, "s": 18, "label": kind, "zorder": 3}
        turn_fit.scatter(driven.turn[where], turns[where], **dots)
        way_fit.scatter(driven.way[where], ways[where], **dots)
        turn_rest.scatter(driven.turn[where], np.degrees(fit.turn_residuals[where]), **dots)
        way_rest.scatter(driven.way[where], 1e3 * fit.way_residuals[where], **dots)
    for axes, real, slope, name in (
        (turn_fit, driven.turn, fit.slip_factor.value * nominal.wheel_radius / fit.wheel_radius.value, "turn [rad]"),
        (way_fit, driven.way, nominal.wheel_radius / fit.wheel_radius.value, "way [m]"),
    ):
        ends = np.array([real.min(), real.max()])
        axes.plot(ends, slope * ends, color="#333333", lw=1.0, label=f"fit, slope {slope:.3f}")
        axes.plot(ends, ends, color="#aaaaaa", lw=1.0, ls="--", label="no slip")
        axes.set_ylabel(f"{name} by the wheels, uncalibrated")
        axes.legend(frameon=False, fontsize=8)
    for axes, unit in ((turn_rest, "real turn [rad]"), (way_rest, "real way [m]")):
        axes.axhline(0.0, color="#333333", lw=0.8)
        axes.set_xlabel(unit)
    turn_rest.set_ylabel("left by the fit [°]")
    way_rest.set_ylabel("left by the fit [mm]")
    k = fit.slip_factor
    figure.suptitle(f"{result.package.name}: k = {k.value:.4f} ± {k.standard_error:.4f}")
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
    return buffer.getvalue()


def page(result: Calibrated, picture: bytes) -> str:
    """A page that needs no other file."""
    rows = "\n".join(
        f"<tr><td>{_NAMES[name]}</td><td>{found.value:.5g} {_UNITS.get(name, '')}</td>"
        f"<td>{found.standard_error:.2g}</td><td>{found.interval[0]:.5g} to {found.interval[1]:.5g}</td></tr>"
        for name, found in result.estimates.items()
    )
    before, after = result.turn_errors()
    driven, name = result.driven, html.escape(result.package.name)
    spread = [float(np.degrees(np.sqrt(np.mean(errors**2)))) for errors in (before, after)]
    dropped = f" {driven.dropped} were left out, since the robot touched something." if driven.dropped else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{name}: calibration of the drive</title>
<style>body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; color: #222 }}
table {{ border-collapse: collapse }} td, th {{ padding: .25rem .9rem .25rem 0; text-align: left;
border-bottom: 1px solid #ddd }} img {{ max-width: 100%; height: auto }}</style></head><body>
<h1>{name}: calibration of the drive</h1>
<p>{len(driven.moves)} moves from rest to rest in world {html.escape(result.world)}, seed {result.seed}.{dropped}
A turn by the wheels is off by {spread[0]:.2f}° uncalibrated (k = 1) and by {spread[1]:.2f}° calibrated (root mean
square).</p>
<table><tr><th>what</th><th>value</th><th>standard error</th><th>{100 * result.fit.confidence:.0f} % interval</th></tr>
{rows}</table>
<p><img alt="Turns and ways by the wheels against the real ones, and what the fit leaves"
src="data:image/png;base64,{base64.b64encode(picture).decode()}"></p>
</body></html>
"""


def _table(result: Calibrated) -> str:
    """The moves as CSV; SI units."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["kind", "v", "w", "seconds", "left", "right", "way", "turn", "way_residual", "turn_residual"])
    driven, fit = result.driven, result.fit
    columns = (driven.left, driven.right, driven.way, driven.turn, fit.way_residuals, fit.turn_residuals)
    for move, *values in zip(driven.moves, *(column.tolist() for column in columns), strict=True):
        writer.writerow([move.kind, *(f"{value:.9g}" for value in (move.v, move.w, move.seconds, *values))])
    return text.getvalue()
