"""``roboyard map``: a map out of a log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from roboyard.cli.grammar import JsonOption

_INTERRUPTED = 130


def map_(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="CARMEN log, MCAP file, ROS bag, or a run's folder.")],
    algorithm: Annotated[
        Literal["graph", "rbpf"], typer.Option(help="Graph SLAM, or a particle filter.", case_sensitive=False)
    ] = "graph",
    relations: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Checked by hand, to compare with (Kümmerle et al.).")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="New folder; default: runs/map-LOG-NNN.")] = None,
    resolution: Annotated[float, typer.Option(metavar="M", min=0.005, max=10.0, help="Side of a cell [m].")] = 0.05,
    topics: Annotated[str, typer.Option(metavar="A,B", help="Topics of the lasers; default: all of the robot.")] = "",
    odometry: Annotated[
        str, typer.Option(metavar="TOPIC|tf|none", help="Where odometry comes from; default: found by type.")
    ] = "",
    go_on: Annotated[
        Path | None, typer.Option("--continue", metavar="FILE", help="Go on with a place.npz of before.")
    ] = None,
    localize: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Only find the robot in a place.npz of before.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make a map of a recorded drive, and say how good it is.

    Leaves a folder with map.yaml and its picture, trajectory.tum, graph.g2o, metrics.json and report.html; graph SLAM
    leaves place.npz too, with which --continue and --localize go on.
    Ctrl-C ends it in order: what was mapped so far is written.

    Exit code 0: mapped; 2: the log cannot be used; 130: interrupted.
    """
    from roboyard import __version__
    from roboyard.cli.terminal import emit, fields, note
    from roboyard.mapping.nodes.log_topics import LogTopics
    from roboyard.mapping.nodes.logs import read_log
    from roboyard.mapping.nodes.offline import make_slam, map_log, read_truth, warm_up, write_place_of
    from roboyard.mapping.outcome import check_times
    from roboyard.mapping.relations import read_relations
    from roboyard.mapping.report import write_mapped
    from roboyard.scenarios.control import Control, interruptible
    from roboyard.scenarios.run_folder import given_folder, new_folder

    checked = None if relations is None else read_relations(relations)
    chosen = LogTopics(tuple(name.strip() for name in topics.split(",") if name.strip()), odometry)
    with _Progress(log.name, quiet=json) as progress:
        scans = read_log(log, chosen, progress.reading)
        if checked is not None:
            check_times([scan.time_ns for scan in scans], checked)
        truth = read_truth(scans)
        progress.stage("compiling")
        slam = make_slam(algorithm, go_on=go_on, located=localize)
        warm_up(algorithm, scans)
        folder = given_folder(out) if out is not None else new_folder(f"map-{_plain(log)}", "runs")
        try:
            control = Control()
            with interruptible(control):
                mapped = map_log(
                    scans, slam, algorithm=algorithm, resolution=resolution, relations=checked, truth=truth,
                    progress=progress.mapping(len(scans)), stop=lambda: control.stopping,
                )  # fmt: skip
                progress.stage("writing")
                found, paths = write_mapped(mapped, folder.path, __version__)
                paths |= write_place_of(slam, folder.path)
        except BaseException:
            folder.discard()
            raise
    if json:
        emit({**found, "files": {name: str(path) for name, path in paths.items()}})
    else:
        for warning in mapped.warnings:
            note(f"warning: {warning}")
        fields(_lines(found, paths))
    raise typer.Exit(_INTERRUPTED if mapped.interrupted else 0)


def _lines(found: dict[str, Any], paths: dict[str, Path]) -> list[tuple[str, str]]:
    """What people want to know first."""
    lines = [
        ("scans", f"{found['scans']} of {found['scans_in_log']} over {found['duration']:.0f} s, {found['way']:.0f} m"),
        ("took", f"{found['seconds']:.1f} s, {found['real_time_factor'] or 0:.0f} times real time"),
        ("graph", f"{found['nodes']} nodes, {found['edges']} edges, {found['loops']} loops closed"),
    ]
    if "trans_m" in found:
        alone = f" (odometry {found['odometry_trans_m']:.3f} m)" if "odometry_trans_m" in found else ""
        lines.append(
            ("relations", f"{found['trans_m']:.4f} ± {found['trans_std']:.4f} m{alone}, {found['rot_deg']:.2f}°, "
                          f"{found['relations']} of {found['relations_total']}")
        )  # fmt: skip
    if "ate_rmse" in found:
        alone = f" (odometry {found['odometry_ate_rmse']:.3f} m)" if "odometry_ate_rmse" in found else ""
        lines.append(("from the truth", f"{found['ate_rmse']:.4f} m rms{alone}, {found['ate_rot_deg']:.2f}°"))
    return [*lines, *((name, str(path)) for name, path in paths.items())]


def _plain(log: Path) -> str:
    """A folder's name for a log."""
    name = log.resolve().name.split(".")[0]
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:40] or "log"


class _Progress:
    """A bar at the bottom of a terminal, or a line now and then elsewhere."""

    def __init__(self, name: str, *, quiet: bool) -> None:
        from roboyard.cli.terminal import interactive

        self._name, self._stage, self._share = name, "reading", 0.0
        self._drawn = interactive() and not quiet
        self._quiet = quiet
        self._told = 0
        self._context: Any = None

    def __enter__(self) -> _Progress:
        if self._drawn:
            from roboyard.cli.progress_line import draw

            self._context = draw(lambda: f"{self._name}: {self._stage}", lambda: self._share, 8.0)
            self._context.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._context is not None:
            self._context.__exit__(*error)

    def stage(self, what: str) -> None:
        """Say what goes on."""
        self._stage = what

    def reading(self, done: int, total: int) -> None:
        """So many messages were read."""
        self._share = done / total if total else 0.0

    def mapping(self, total: int) -> Any:
        """What is called after each scan."""
        from roboyard.cli.terminal import note

        def scan_done(done: int, pose: Any) -> None:
            self._share = done / total
            self._stage = f"scan {done} of {total}, at {pose.x:.1f} {pose.y:.1f}"
            if not self._drawn and not self._quiet and 10 * done // total > self._told:
                self._told = 10 * done // total
                note(f"{self._name}: {10 * self._told} %")

        return scan_done
