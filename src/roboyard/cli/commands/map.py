"""``roboyard map``: a map from a log of laser scans."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from roboyard.cli.options import OUT, JsonOption


def map_(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="CARMEN log, MCAP file, ROS bag, or run folder.")],
    algorithm: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="SLAM algorithm: graph (pose graph), rbpf (particle filter), or one of a package."
        ),
    ] = "graph",
    relations: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Verified relations between poses (Kümmerle et al.).")
    ] = None,
    out: Annotated[Path | None, OUT("; default: runs/map-LOG-NNN", metavar="DIR")] = None,
    resolution: Annotated[
        float, typer.Option(metavar="METERS", min=0.005, max=10.0, help="Side of a map cell [m].")
    ] = 0.05,
    scan_topics: Annotated[
        str, typer.Option(metavar="A,B", help="Topics of laser scans; default: all of the robot.")
    ] = "",
    odometry: Annotated[
        str, typer.Option(metavar="TOPIC|tf|none", help="Source of odometry; default: the topic with its type.")
    ] = "",
    previous_map: Annotated[
        Path | None, typer.Option("--resume", metavar="FILE", help="Extend the map of this pose_graph.npz.")
    ] = None,
    localize: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Only localize in the map of this pose_graph.npz.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Build a map from a log and measure its accuracy.

    The folder holds map.yaml and its image, trajectory.tum, graph.g2o, metrics.json and report.html; graph SLAM also
    writes pose_graph.npz, for --resume and --localize. After Ctrl-C the command writes the map so far.

    Exit code 2: the log cannot be used; 130: interrupted.
    """
    from roboyard import __version__
    from roboyard.cli.exit_codes import ExitCode, exit_unless_success
    from roboyard.cli.terminal import print_result
    from roboyard.mapping import read_relations
    from roboyard.mapping.mapping_report import check_relation_times, write_mapping_report
    from roboyard.mapping.nodes.map_recording import compile_kernels, map_log, read_truth
    from roboyard.mapping.nodes.scan_log import ScanLogTopics, read_log
    from roboyard.mapping.slam import find_slam_algorithm, make_slam
    from roboyard.scenarios.run_control import RunControl, handle_interrupts
    from roboyard.scenarios.run_folder import create_numbered_folder, prepare_folder

    find_slam_algorithm(algorithm)  # an unknown name is reported before the log is read
    checked_relations = None if relations is None else read_relations(relations)
    log_topics = ScanLogTopics(tuple(name.strip() for name in scan_topics.split(",") if name.strip()), odometry)
    with _MappingDisplay(log.name, quiet=json) as progress:
        scans = read_log(log, log_topics, progress.show_reading)
        if checked_relations is not None:
            check_relation_times([scan.time_ns for scan in scans], checked_relations)
        truth = read_truth(scans)
        progress.show_phase("compiling")
        slam = make_slam(algorithm, resume_from=previous_map, localize_in=localize)
        compile_kernels(algorithm, scans)
        folder = prepare_folder(out) if out is not None else create_numbered_folder(f"map-{_folder_name(log)}", "runs")
        try:
            control = RunControl()
            with handle_interrupts(control):
                mapped = map_log(
                    scans, slam, algorithm=algorithm, resolution=resolution, relations=checked_relations, truth=truth,
                    progress=progress.scan_callback(len(scans)), stop=lambda: control.is_stopping,
                )  # fmt: skip
                progress.show_phase("writing")
                found, paths = write_mapping_report(mapped, folder.path, __version__)
        except BaseException:
            folder.discard()
            raise
    result = {**found, "files": {name: str(path) for name, path in paths.items()}, "warnings": mapped.warnings}
    print_result(result, json, _print_map)
    exit_unless_success(ExitCode.INTERRUPTED if mapped.is_interrupted else ExitCode.SUCCESS)


def _print_map(found: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_fields, print_note

    for warning in found["warnings"]:
        print_note(f"warning: {warning}")
    lines = [
        ("scans", f"{found['scans']} of {found['scans_in_log']} over {found['duration']:.0f} s, {found['way']:.0f} m"),
        ("time", f"{found['seconds']:.1f} s, {found['real_time_factor'] or 0:.0f} times real time"),
        ("graph", f"{found['nodes']} nodes, {found['edges']} edges, {found['loops']} loop closures"),
    ]
    if "trans_m" in found:
        odometry = f" (odometry {found['odometry_trans_m']:.3f} m)" if "odometry_trans_m" in found else ""
        lines.append(
            ("relations", f"{found['trans_m']:.4f} ± {found['trans_std']:.4f} m{odometry}, {found['rot_deg']:.2f}°, "
                          f"{found['relations']} of {found['relations_total']}")
        )  # fmt: skip
    if "ate_rmse" in found:
        odometry = f" (odometry {found['odometry_ate_rmse']:.3f} m)" if "odometry_ate_rmse" in found else ""
        lines.append(("true error", f"{found['ate_rmse']:.4f} m rms{odometry}, {found['ate_rot_deg']:.2f}°"))
    print_fields([*lines, *found["files"].items()])


def _folder_name(log: Path) -> str:
    """Return the name of a folder for the map of a log."""
    name = log.resolve().name.split(".")[0]
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:40] or "log"


class _MappingDisplay:
    """Progress bar on a terminal; lines at intervals elsewhere."""

    def __init__(self, name: str, *, quiet: bool) -> None:
        from roboyard.cli.terminal import is_interactive

        self._name, self._phase, self._fraction = name, "reading", 0.0
        self._is_interactive = is_interactive() and not quiet
        self._quiet = quiet
        self._tenths_printed = 0
        self._context: Any = None

    def __enter__(self) -> _MappingDisplay:
        if self._is_interactive:
            from roboyard.cli.terminal import draw_progress

            self._context = draw_progress(lambda: f"{self._name}: {self._phase}", lambda: self._fraction, 8.0)
            self._context.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._context is not None:
            self._context.__exit__(*error)

    def show_phase(self, phase: str) -> None:
        """Show the present phase."""
        self._phase = phase

    def show_reading(self, n_read: int, total: int) -> None:
        """Show how many messages were read."""
        self._fraction = n_read / total if total else 0.0

    def scan_callback(self, total: int) -> Any:
        """Return a function that shows the progress after each scan."""
        from roboyard.cli.terminal import print_note

        def scan_done(n_scans: int, pose: Any) -> None:
            self._fraction = n_scans / total
            self._phase = f"scan {n_scans} of {total}, at {pose.x:.1f} {pose.y:.1f}"
            if not self._is_interactive and not self._quiet and 10 * n_scans // total > self._tenths_printed:
                self._tenths_printed = 10 * n_scans // total
                print_note(f"{self._name}: {10 * self._tenths_printed} %")

        return scan_done
