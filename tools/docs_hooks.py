"""Hooks of the documentation's build: pages of all nodes, commands and scenario files, and the table of all metrics.

Each room that has nodes gets the page ``reference/nodes/ROOM.md``; ``reference/nodes/index.md`` lists all nodes. They
are made whenever the pages are built, so they say what the classes declare.

The table of metrics is part of ``docs/reference/metrics.md``, and ``docs/reference/scenarios.md`` lists the keys of
scenario files; other pages of the reference have tables below a comment ``<!-- keys of MODULE:CLASS -->``, and those of
registered types below ``<!-- types of MODULE:REGISTRY -->``, members of enumerations below ``<!-- codes of MODULE:ENUM
-->``, phases of skills below ``<!-- phases of METHOD skills -->``, and measured ones below ``<!-- table of NAME -->``.
``python tools/docs_hooks.py`` writes all of them anew.
"""

import ast
import dataclasses
import importlib
import inspect
import itertools
import re
from collections.abc import Iterable
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

import yaml

from roboyard.bringup import catalog
from roboyard.bringup.node_documentation import NodeDescription, describe_node
from roboyard.config import SchemaRow, schema_rows
from roboyard.config.parameter import parameter_info, yaml_key
from roboyard.config.schema import dump
from roboyard.evaluation.plugin import robot_metrics, scenario_keys
from roboyard.scenarios import operator
from roboyard.scenarios.faults.schema import FAULTS, FaultConfig, LastingFault, TriggeredFault
from roboyard.scenarios.schema import complete_config_class

FOLDER = "reference/nodes"
METRICS_PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "metrics.md"
METRICS_HEADER = "| metric | unit | better | meaning |"
INTERFACE_NAMES = {"in": "Subscribes to", "out": "Publishes", "action": "Action", "service": "Service"}
RUNTIME_MARK = "*(runtime)*"
INTRODUCTION = """Every node that a scenario or a robot may name, by room. `roboyard list nodes NAME` shows the same for
one node, `roboyard schema node NAME` prints the JSON Schema of its parameters, and `roboyard param describe` shows the
parameters of a running node.

Names of topics are relative to the robot's namespace, `~` stands for the node's own name. Parameters are given in the
[scenario](../scenarios.md) or in the robot's file. Numbers may carry a unit, such as `500 mm`. *Runtime* marks
parameters that may change while the node runs. A *resource* is an object that a node needs and that does not travel
over the bus; the run provides it.
"""
COMMAND_PAGE = "reference/commands.md"
COMMANDS_INTRODUCTION = """Every command of the program with its arguments and options, as `roboyard COMMAND --help`
prints them. [Command line](cli.md) explains their use, the exit codes and the output.
"""


SCENARIO_PAGE = "reference/scenarios.md"
SCENARIO_INTRODUCTION = """# Scenario files

A scenario file is a YAML mapping that states the world, robots, nodes, people, faults, criteria and duration of a run.
[Write a scenario](../howto/write-a-scenario.md) shows how to make one. The tables on this page are generated from the
declaration of the keys; `roboyard schema scenario` prints the same as JSON Schema.

## Values

- **Numbers** are in SI units and radians, or texts with a unit: `500 mm`, `90 deg`, `2 min`.
- **Poses** are `[x, y, yaw]` of a model that stands on the ground, or `[x, y, z, roll, pitch, yaw]`.
- **Names** of robots, worlds, devices, objects and nodes are those of `roboyard list`. A text with `/` or the ending of
  a file is a path, relative to the scenario file. Robots, nodes, people, devices, objects, criteria and options have
  names of letters, digits and `_` that do not start with a digit.
- **Expressions** of `criteria` and `stop_when` use the [metrics](metrics.md), numbers, `+ - * /`, `< <= > >= == !=`,
  `and`, `or` and `not`; `NAME.metric` is a metric of another robot than the first.

## Order of the parts

A scenario is put together in this order; each part is laid over the parts before it:

1. the file that `extends` names, with the files that it extends itself,
2. the file,
3. `variants.substituted` with `--robot` or `--world`, and then the given robot or world,
4. `variants.smoke` with `--smoke`; the criteria of the parts before are left out,
5. `options`: for each, the given or the default choice,
6. `--set KEY=VALUE`,
7. `randomize`: numbers drawn by the seed.

Mappings are joined key by key. Lists and single values are replaced as a whole, and so are the mappings `criteria`,
`operator` and `variants.smoke`. Paths in an extended file are relative to that file. An error names the file and line,
or the option of the command line, that holds the value.

## JSON Schema

The first line of a scenario file names its schema, so that editors complete and check keys without a network:
`# yaml-language-server: $schema=PATH`. `roboyard new scenario` and the `scenario.yaml` of a run contain it. Other files
have schemas too: `roboyard schema` lists them, `roboyard schema --out DIR` writes them.

The schema refuses unknown and missing keys, wrong types, units, choices, and numbers out of bounds. `roboyard check
scenario` refuses the same, in the scenario, in each variant, and with each value of each option. In addition it checks
what a schema cannot state:

- whether worlds, robots, devices, objects, nodes, sensors, joints and files of a name exist,
- the parameters of nodes (`roboyard schema node NAME` prints their schema),
- expressions, and whether the run has the metrics they use,
- bounds of numbers that are written as a text with a unit, and compound units such as `m/s` and `rad/s`,
- keys that depend on each other: one of `pose` and `sector` of an object, of `choices` and `key` of an option, of
  `schedule`, `patrol` and `mission` of a person; `percentile` with `sex`; `occurrence` only with `trigger`; one key a
  step of an operator script; even numbers of a video's pixels,
- keys that are missing both in a part and in what the part is laid over,
- whether the keys of `randomize` exist.
"""
SECTION_TITLES = {
    "robots": "Robots",
    "nodes": "Nodes",
    "people": "People",
    "devices": "Devices",
    "objects": "Objects",
    "terrain": "Terrain",
    "appearance": "Appearance",
    "mission": "Mission",
    "record": "Recording",
    "video": "Video",
    "options": "Options",
    "variants": "Variants",
}
STEPS = {
    "drive": operator.DriveStep,
    "keys": operator.KeysStep,
    "goto": operator.GotoStep,
    "follow": operator.FollowStep,
    "wander": operator.WanderStep,
    "repeat": operator.RepeatStep,
}


def make_scenario_page() -> str:
    """Return the text of the page of scenario files."""
    rows = schema_rows(complete_config_class())
    lines = [SCENARIO_INTRODUCTION, "## Keys", "", *_make_key_table(row for row in rows if not _is_nested(row.key)), ""]
    titles = {**{key: key.replace("_", " ").capitalize() for key in scenario_keys()}, **SECTION_TITLES}
    for section, title in titles.items():
        nested = [row for row in rows if row.key.startswith(f"{section}.")]
        if not nested:
            continue
        lines += [f"## {title}", "", *_make_key_table(nested), ""]
    lines += [*_make_operator_section(), *_make_fault_section()]
    return "\n".join(lines) + "\n## Python\n\n::: roboyard.scenarios\n"


def _is_nested(key: str) -> bool:
    return "." in key or "[" in key


def _make_operator_section() -> list[str]:
    lines = ["## Operator scripts", "", "A script is a list of steps, or a mapping:", ""]
    script = [row for row in schema_rows(operator.OperatorScript) if not _is_nested(row.key)]
    lines += [*_make_key_table(script), "", "A step has exactly one of these keys:", ""]
    lines += ["| step | meaning | keys |", "| --- | --- | --- |"]
    for name, cls in STEPS.items():
        keys = [row for row in schema_rows(cls) if not _is_nested(row.key)]
        lines.append(_make_row((f"`{name}`", _escape(_summary(cls)), "<br>".join(map(_describe_key, keys)))))
    lines += [
        _make_row(("`wait`", "Publish zero velocity for a time.", "a number in s")),
        _make_row(("`link_loss`", "Publish nothing for a time: the link is lost.", "a number in s")),
        "",
        "`goto` may also be the point itself: `{goto: [2.0, 1.0]}`.",
        "",
    ]
    return lines


def _make_fault_section() -> list[str]:
    common = [row for row in schema_rows(LastingFault) if row.key != "type"]
    lines = ["## Faults", "", "Entries of `faults` have a `time` and a `type`. Most types have these keys, too:", ""]
    lines += [*_make_key_table(common), "", "A type that is *at a time* has only `time` of these keys, one that is"]
    lines += ["*momentary* all but `duration`, and one that is *lasting* all of them.", ""]
    lines += ["| type | kind | meaning | further keys |", "| --- | --- | --- | --- |"]
    types_of: dict[type[FaultConfig], list[str]] = {}
    for name in FAULTS.names():
        types_of.setdefault(FAULTS[name], []).append(name)
    for cls, types in types_of.items():
        rows = {row.key: row for row in schema_rows(cls)}
        del rows["type"]
        kind = "lasting" if issubclass(cls, LastingFault) else "momentary"
        kind = kind if issubclass(cls, TriggeredFault) else "at a time"
        keys = [_describe_key(row) for key, row in rows.items() if key not in {one.key for one in common}]
        lines.append(_make_row((_list_code(types), kind, _escape(_summary(cls)), "<br>".join(keys))))
    return [*lines, ""]


def _list_code(names: Iterable[str]) -> str:
    return ", ".join(f"`{one}`" for one in names)


def _summary(cls: type) -> str:
    return " ".join((inspect.getdoc(cls) or "").split())


def _describe_key(row: SchemaRow) -> str:
    default = ", required" if row.default == "required" else f", default `{row.default}`" if row.default else ""
    meaning = f": {_escape(row.doc)}" if row.doc else ""
    return f"`{row.key}` ({_escape(_shorten(row.expected))}{default}){meaning}"


def _shorten(expected: str) -> str:
    """Return what is expected, with the formats of poses and the word null in short."""
    return re.sub(
        r"a list of 3: [^;]*? or a list of 6: (a number[^,;]*, ){5}a number in rad", "a pose", expected
    ).replace(" or nothing (null)", " or null")


def _make_key_table(rows: Iterable[SchemaRow]) -> list[str]:
    lines = ["| key | values | default | meaning |", "| --- | --- | --- | --- |"]
    for row in rows:
        default = f"`{row.default}`" if row.default not in ("", "required") else row.default
        lines.append(_make_row((f"`{row.key}`", _escape(_shorten(row.expected)), default, _escape(row.doc))))
    return lines


def make_node_pages() -> dict[str, str]:
    """Return the pages' texts by path below the folder of the pages."""
    rooms: dict[str, list[NodeDescription]] = {}
    for name in catalog.NODES.names():
        node = describe_node(name)
        rooms.setdefault(node.class_name.split(".")[1], []).append(node)
    pages = {f"{FOLDER}/{room}.md": _make_page(room, nodes) for room, nodes in sorted(rooms.items())}
    lines = ["# Nodes", "", INTRODUCTION]
    for room, nodes in sorted(rooms.items()):
        lines += [f"## {room}", "", "| node | purpose |", "| --- | --- |"]
        lines += [_make_row((f"[`{node.name}`]({room}.md#{node.name})", _escape(node.summary))) for node in nodes]
        lines.append("")
    return {f"{FOLDER}/index.md": "\n".join(lines), **pages}


def _make_page(room: str, nodes: Iterable[NodeDescription]) -> str:
    lines = [f"# Nodes of {room}", ""]
    tables: dict[tuple[SchemaRow, ...], str] = {}
    for node in nodes:
        lines += [f"## {node.name}", "", _escape(node.summary), ""]
        interfaces = [(INTERFACE_NAMES.get(kind, kind.capitalize()), _escape(text)) for kind, text in node.interfaces]
        if node.resources:
            interfaces.append(("Resources", ", ".join(f"`{one}`" for one in node.resources)))
        interfaces.append(("Class", f"`{node.class_name}`"))
        lines += [*(f"- **{kind}**: {text}" for kind, text in interfaces), ""]
        for paragraph in node.details:
            lines += [_escape(paragraph), ""]
        if not node.parameters:
            lines += ["It has no parameters.", ""]
        elif node.parameters in tables:
            lines += [f"Its parameters are those of [{tables[node.parameters]}](#{tables[node.parameters]}).", ""]
        else:
            tables[node.parameters] = node.name
            lines += [*_make_parameter_table(node.parameters), ""]
    return "\n".join(lines)


def _make_parameter_table(rows: Iterable[SchemaRow]) -> list[str]:
    lines = ["| parameter | default | values | meaning |", "| --- | --- | --- | --- |"]
    for row in rows:
        default = f"`{row.default}`" if row.default not in ("", "required") else row.default
        expected = _escape(row.expected) + (f" {RUNTIME_MARK}" if row.runtime else "")
        lines.append(_make_row((f"`{row.key}`", default, expected, _escape(row.doc))))
    return lines


def _make_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _escape(text: str) -> str:
    """Text in which only code in backticks is markup."""
    parts = re.split(r"(``.+?``|`[^`]+`)", text)
    escaped = [part if i % 2 else re.sub(r"([<*])", r"\\\1", part) for i, part in enumerate(parts)]
    return "".join(escaped)


def make_command_page() -> tuple[str, str]:
    """Return the path and the text of the page of all commands, made from the program itself."""
    import typer

    from roboyard.cli.app import make_app

    program = typer.main.get_command(make_app())
    lines = ["# Commands", "", COMMANDS_INTRODUCTION]
    for words, command in iterate_commands(program):
        lines += [f"## {words}", "", *_make_command_section(words, command), ""]
    return COMMAND_PAGE, "\n".join(lines)


def iterate_commands(command: Any, words: tuple[str, ...] = ()) -> Iterable[tuple[str, Any]]:
    """Yield every command below a group with its words: ("topic echo", command)."""
    for name, inner in command.commands.items():
        if hasattr(inner, "commands"):
            yield from iterate_commands(inner, (*words, name))
        else:
            yield " ".join((*words, name)), inner


def _make_command_section(words: str, command: Any) -> list[str]:
    paragraphs = [" ".join(text.split()) for text in re.split(r"\n\s*\n", command.help or "")]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    usage = " ".join(["roboyard", words, *(one.metavar or one.name.upper() for one in arguments)])
    lines = [f"`{usage}`"]
    for paragraph in paragraphs:
        lines += ["", _escape(paragraph)]
    if arguments:
        lines += ["", "| argument | meaning |", "| --- | --- |"]
        lines += [_make_row((f"`{one.metavar or one.name.upper()}`", _escape(one.help or ""))) for one in arguments]
    if options:
        lines += ["", "| option | default | meaning |", "| --- | --- | --- |"]
        lines += [_make_row((_format_names(one), _format_default(one), _escape(one.help or ""))) for one in options]
    return lines


def _format_names(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    return names if option.metavar is None else f"{names} `{option.metavar}`"


def _format_default(option: Any) -> str:
    if option.required:
        return "required"
    return "" if option.default in (None, False, "") or callable(option.default) else f"`{option.default}`"


def on_files(files, config):
    """For mkdocs: add the pages to those of the folder ``docs``."""
    from mkdocs.structure.files import File

    for path, text in {**make_node_pages(), **dict([make_command_page()])}.items():
        files.append(File.generated(config, path, content=text))
    return files


def make_metric_table() -> list[str]:
    """Return the lines of the table of all metrics of a robot, as their collectors declare them."""
    rows = (
        (f"`{metric.name}`", "share" if metric.unit == "ratio" else metric.unit, metric.better, metric.doc)
        for metric in robot_metrics()
    )
    return [METRICS_HEADER, "| --- | --- | --- | --- |", *map(_make_row, rows)]


def with_metric_table(page: str) -> str:
    """Return the text of the page of metrics with its table as the collectors declare it."""
    lines = page.splitlines()
    start = lines.index(METRICS_HEADER)
    end = next((i for i in range(start, len(lines)) if not lines[i].startswith("|")), len(lines))
    return "\n".join([*lines[:start], *make_metric_table(), *lines[end:]]) + "\n"


KEY_TABLE = re.compile(r"(<!-- keys of ([\w.]+):(\w+)(?: except (\S+))?(?: beside (\w+))? -->\n)(?:\|.*\n)*")
"""A comment above a table of keys: the class, a regular expression of keys to leave out, and another project."""
TYPE_TABLE = re.compile(r"(<!-- types of ([\w.]+):(\w+) -->\n)(?:\|.*\n)*")
"""A comment above a table of the configurations of a registry."""
MEASURED_TABLE = re.compile(r"(<!-- table of ([\w ]+) -->\n)(?:\|.*\n)*")
"""A comment above a table that a function of `MEASURED_TABLES` makes."""
CODE_TABLE = re.compile(r"(<!-- codes of ([\w.]+):(\w+) -->\n)(?:\|.*\n)*")
"""A comment above a table of the members of an enumeration."""
PHASE_TABLE = re.compile(r"(<!-- phases of (\w+) skills -->\n)(?:\|.*\n)*")
"""A comment above a table of the phases of the skills of a method."""
PEER_NAMES: dict[str, dict[str, str]] = {
    "nav2_amcl": {
        "initial_pose_x": "`initial_pose.x`",
        "initial_pose_y": "`initial_pose.y`",
        "initial_pose_yaw": "`initial_pose.yaw`",
        "initial_cov_xx": "ROS 1: `initial_cov_xx`",
        "initial_cov_yy": "ROS 1: `initial_cov_yy`",
        "initial_cov_aa": "ROS 1: `initial_cov_aa`",
        "particle_cloud_rate": "ROS 1: `gui_publish_rate`",
        "selective_resampling": "ROS 1: `selective_resampling`",
        **dict.fromkeys(
            ("params_file", "params_section", "additional_scan_topics", "transform_timeout",
             "global_localization_at_start", "max_published_particles", "beam_independence",
             "dynamic_obstacle_distance", "refine", "refine_beams", "refine_sigma", "search_poses_per_m2",
             "max_search_poses", "lost_fraction"),
            "",
        ),
    },
    "robot_localization": dict.fromkeys(("params_file", "params_section", "_bias_at_rest"), ""),
    "MoveIt": {
        "planner": "`planner_id`",
        "planner_settings": "`planner_configs` in `ompl_planning.yaml`",
        "max_states": "`allowed_planning_time`, a time",
        "velocity_scaling": "`max_velocity_scaling_factor`",
        "acceleration_scaling": "`max_acceleration_scaling_factor`",
        "max_start_repair": "`start_state_max_bounds_error`, `jiggle_fraction`",
        "spacing": "`max_step`",
        "jump_threshold": "`revolute_jump_threshold`, `prismatic_jump_threshold`",
        **dict.fromkeys(("seed", "max_shortcuts", "effort_scaling", "angle_step"), ""),
    },
    "diff_drive_controller": {
        "left_joints": "`left_wheel_names`",
        "right_joints": "`right_wheel_names`",
        "odom_frame": "`odom_frame_id`",
        "base_frame": "`base_frame_id`",
        "publish_tf": "`enable_odom_tf`",
        "rate": "`publish_rate`",
        "translation_variance_per_meter": "constant: `pose_covariance_diagonal`",
        "rotation_variance_per_meter": "constant: `pose_covariance_diagonal`",
        "rotation_variance_per_radian": "constant: `pose_covariance_diagonal`",
        "track": "`wheel_separation`",
        "slip_factor": "`wheel_separation_multiplier`",
        "left_radius_scale": "`left_wheel_radius_multiplier`",
        "right_radius_scale": "`right_wheel_radius_multiplier`",
        "axle_x": "",
        "max_wheel_speed": "",
    },
    "move_group": {
        **dict.fromkeys(
            ("use_world_model", "robot_pose", "person_topics", "person_body_topics", "gripper_state_topic",
             "detections_topic", "people", "people.radius", "people.prediction_time", "people.height",
             "people.max_distance", "people.padding", "octomap_timeout", "rate", "latency",
             "states_per_planning_second", "joint_timeout"), "",
        ),
        "group": "`group_name` of each request",
        "controller": "`action_ns` of the controller in moveit_simple_controller_manager",
        "world_frame": "the root frame of the model, by a virtual joint of the SRDF",
        "octomap_topic": "`sensors`: PointCloudOctomapUpdater",
        "allowed_collisions": "`disable_collisions` of the SRDF, allowed collision matrix",
        "margin": "`default_robot_padding`",
        "max_replans": "`plan_execution.max_replan_attempts`",
        "replan_delay": "`replan_delay` of the goal",
    },
    "moveit_servo": {
        **dict.fromkeys(
            ("start_tolerance", "is_person_limited", "person_limit_timeout", "stop_distance", "resume_margin",
             "lookahead_time", "meters_per_radian", "min_singular_value", "pose_gain"), "",
        ),
        "max_linear_speed": "`scale.linear`",
        "max_angular_speed": "`scale.rotational`",
        "linear_tolerance": "`pose_tracking.linear_tolerance`",
        "angular_tolerance": "`pose_tracking.angular_tolerance`",
        "group": "`move_group_name`",
        "rate": "1 / `publish_period`",
        "speed_scaling": "`override_velocity_scaling_factor`",
        "slow_distance": "`scene_collision_proximity_threshold`",
    },
}  # fmt: skip
"""Names of parameters in other projects; a key that is not listed has the same name there, "" has no counterpart."""


def with_key_tables(page: str) -> str:
    """Return the text of a page with its tables of keys and of types as the objects that its comments name declare."""
    page = CODE_TABLE.sub(lambda found: found[1] + "\n".join(_make_code_table(found[2], found[3])) + "\n", page)
    page = PHASE_TABLE.sub(lambda found: found[1] + "\n".join(_make_phase_table(found[2])) + "\n", page)
    page = TYPE_TABLE.sub(lambda found: found[1] + "\n".join(_make_type_table(found[2], found[3])) + "\n", page)
    page = MEASURED_TABLE.sub(lambda found: found[1] + _make_measured_table(found[2]), page)
    return KEY_TABLE.sub(lambda found: found[1] + "\n".join(_make_key_table_of(*found.groups()[1:])) + "\n", page)


def _make_type_table(module: str, name: str) -> list[str]:
    """Return the table of the configurations of a registry, each with a link to its section of the page."""
    registry = getattr(importlib.import_module(module), name)
    lines = ["| type | purpose | class |", "| --- | --- | --- |"]
    for key in registry.names():
        purpose = " ".join((inspect.getdoc(registry[key]) or "").split("\n\n")[0].split())
        lines.append(_make_row((f"[`{key}`](#{key})", _escape(purpose), f"`{registry.entry_points()[key].value}`")))
    return lines


def _make_measured_table(name: str) -> str:
    """Return the lines of a table of `MEASURED_TABLES`."""
    header, *rows = MEASURED_TABLES[name]()
    return "".join(f"{_make_row(row)}\n" for row in (header, ["---"] * len(header), *rows))


def _list_gaits() -> list[list[str]]:
    """Return the rows of the table of all gaits: what they declare, and the legs that they are for."""
    from roboyard.walking import GAITS, LegLayout
    from roboyard.walking.gait_comparison import can_walk

    rows = [["gait", "order of the legs", "smallest duty factor: 4, 6, 8 legs", "symmetric", "described by", "class"]]
    for name in GAITS.names():
        pattern, layouts = GAITS[name](), [LegLayout.with_rows(n_rows) for n_rows in (2, 3, 4)]
        factors = [f"{pattern.min_duty_factor(layout):.3g}" if can_walk(pattern, layout) else "–" for layout in layouts]
        summary = " ".join((inspect.getdoc(pattern) or "").split("\n\n")[0].split())
        rows.append([
            f"`{name}`", _escape(summary), ", ".join(factors),
            "yes" if pattern.is_symmetric else "no", _escape(pattern.source), f"`{GAITS.entry_points()[name].value}`",
        ])  # fmt: skip
    return rows


def _compare_gaits(robot: str, **lengths: float) -> list[list[str]]:
    """Return the rows of the table of what gaits are like on a robot."""
    from roboyard.bringup.legged_robot import load_legged_robot
    from roboyard.walking import compare_gaits

    rows = [["gait", "legs that lift off, in order", "duty factor", "feet in stance", "margin [mm]", "forward [m/s]",
             "sideways [m/s]", "turning [rad/s]"]]  # fmt: skip
    legs = load_legged_robot(robot, arguments={"profile": "fast"} if robot == "akrobat" else None)
    for one in compare_gaits(legs, **lengths):
        order = " → ".join("+".join(group) for group in one.order)
        rows.append([
            f"`{one.name}`", order, f"{one.duty_factor:.3g}", f"{one.min_stance_feet} or more",
            f"{1e3 * one.margin:.0f}", f"{one.forward_speed:.3f}", f"{one.lateral_speed:.3f}", f"{one.yaw_rate:.2f}",
        ])  # fmt: skip
    return rows


def _rows_of(module: str, function: str) -> list[tuple[str, ...]]:
    """Return the rows that a function of the nodes of manipulation returns."""
    rows = getattr(importlib.import_module(f"roboyard.manipulation.nodes.{module}"), function)()
    return [tuple(map(_escape, row)) for row in rows]


MEASURED_TABLES: dict[str, Any] = {
    "gaits": _list_gaits,
    "gaits of the akrobat": partial(_compare_gaits, "akrobat", stride=0.08, lift=0.025),
    "gaits of the lauron": partial(_compare_gaits, "lauron", stride=0.16, lift=0.05),
    "fields of requests to move_group": lambda: _rows_of("request_fields", "field_table"),
    "causes of errors of arm motions": lambda: _rows_of("moveit_errors", "error_code_table"),
}
"""Functions that return the rows of a table, the header first, by the name in its comment."""


def _format_code(member: Enum) -> str:
    """Return a member as its value, and one with a number as its name and number."""
    return f"`{member.name}` ({member.value})" if isinstance(member.value, int) else f"`{member.value}`"


def _make_code_table(module: str, name: str) -> list[str]:
    """Return the table of the members of an enumeration, with the docstrings that follow them in the source."""
    members = getattr(importlib.import_module(module), name)
    body = ast.parse(inspect.getsource(members)).body[0].body  # type: ignore[attr-defined]
    docs = {
        member.targets[0].id: doc.value.value
        for member, doc in itertools.pairwise(body)
        if isinstance(member, ast.Assign) and isinstance(doc, ast.Expr)
    }
    rows = (_make_row((_format_code(one), _escape(docs[one.name]))) for one in members if one.name in docs)
    return ["| code | meaning |", "| --- | --- |", *rows]


def _make_phase_table(method: str) -> list[str]:
    """Return the table of the skills of a method: name, class and phases."""
    importlib.import_module("roboyard.manipulation.skills.thesis_skills")  # it and what it imports define all skills
    from roboyard.manipulation.skills import Skill

    classes, waiting = list[type[Skill]](), [Skill]
    while waiting:
        found = waiting.pop().__subclasses__()
        waiting += found
        classes += [one for one in found if one.name and one.phases and one.__module__.startswith("roboyard.")]
    rows = sorted(
        (one.name, one.__name__, ", ".join(f"`{phase}`" for phase in one.phases))
        for one in classes
        if one.__module__.endswith("thesis_skills") == (method == "thesis") and "start" in one.phases
    )
    return [
        "| skill | class | phases |",
        "| --- | --- | --- |",
        *(_make_row((f"`{a}`", f"`{b}`", c)) for a, b, c in rows),
    ]


def _make_key_table_of(module: str, name: str, excluded: str | None, peer: str | None) -> list[str]:
    cls = getattr(importlib.import_module(module), name)
    meanings = _attribute_docs(cls)
    rows = (row if row.doc else dataclasses.replace(row, doc=meanings.get(row.key, "")) for row in schema_rows(cls))
    rows = tuple(row for row in rows if row.key and not (excluded and re.match(excluded, row.key)))
    table = _make_key_table(rows)
    if peer is None:
        return table
    names = PEER_NAMES[peer]
    column = [peer, "---", *(names.get(row.key, f"`{row.key}`") for row in rows)]
    return [f"{line} {cell} |" for line, cell in zip(table, column, strict=True)]


def _attribute_docs(cls: type, prefix: str = "") -> dict[str, str]:
    """Return the meanings of a dataclass's fields, nested ones included, from the "Attributes" of its docstring."""
    section = (inspect.getdoc(cls) or "").partition("\nAttributes:\n")[2].split("\n\n")[0]
    meanings = {}
    for name, text in re.findall(r"^    (\w+): (.*(?:\n     .*)*)", section, re.MULTILINE):
        meanings[prefix + name] = " ".join(text.split())
    hints = get_type_hints(cls)
    for field in dataclasses.fields(cls):
        if dataclasses.is_dataclass(hints[field.name]):
            meanings |= _attribute_docs(hints[field.name], f"{prefix}{field.name}.")
    return meanings


def list_pages_with_key_tables() -> list[Path]:
    """Return the pages of the reference with tables of keys."""
    pages = sorted(METRICS_PAGE.parent.glob("*.md"))
    return [
        page
        for page in pages
        if re.search("<!-- (keys|types|codes|table) of |<!-- phases of ", page.read_text("utf-8"))
    ]


PLUGIN_TABLES = re.compile(
    r"(<!-- (planners|controllers|motion_planners|time_parameterizations) -->\n)(?:.*\n)*?(<!-- end of \2 -->\n)"
)
"""Comments around the generated part of a page about plug-ins."""
PLUGIN_PAGES = [
    METRICS_PAGE.with_name(name)
    for name in ("planners.md", "controllers.md", "motion-planners.md", "time-parameterization.md")
]
PLUGIN_PEERS = {
    "planners": "Nav2",
    "controllers": "Nav2",
    "motion_planners": "OMPL",
    "time_parameterizations": "MoveIt",
}
"""Project whose names of the plug-ins of a kind the last paragraph of each docstring states."""


def with_plugin_tables(page: str) -> str:
    """Return the text of a page with its part about all planners or controllers as the registry declares them."""
    return PLUGIN_TABLES.sub(
        lambda found: found[1] + "\n".join(_make_plugin_sections(found[2])) + "\n" + found[3], page
    )


def _plugin_registry(kind: str) -> Any:
    from roboyard import manipulation
    from roboyard.navigation.plugins import CONTROLLERS, PLANNERS

    return {
        "planners": PLANNERS,
        "controllers": CONTROLLERS,
        "motion_planners": manipulation.MOTION_PLANNERS,
        "time_parameterizations": manipulation.TIME_PARAMETERIZATIONS,
    }[kind]


def _make_plugin_sections(kind: str) -> list[str]:
    registry, peer = _plugin_registry(kind), PLUGIN_PEERS[kind]
    names = [name for name in registry.names() if registry[name].__module__.startswith("roboyard.")]
    overview = ["", f"| name | what it is | when to take it | in {peer} |", "| --- | --- | --- | --- |"]
    sections: list[str] = []
    for name in names:
        summary, use, other = [" ".join(part.split()) for part in (inspect.getdoc(registry[name]) or "").split("\n\n")]
        anchor = re.sub(r"[^\w-]", "", name).lower()
        overview.append(
            _make_row((f"[`{name}`](#{anchor})", _escape(summary), _escape(use), other.removeprefix(f"{peer}: ")))
        )
        sections += [f"## {name}", "", _escape(f"{summary} {use}"), "", *_make_plugin_parameters(kind, name), ""]
    return [*overview, "", *sections]


def _make_plugin_parameters(kind: str, name: str) -> list[str]:
    if kind == "time_parameterizations":
        return ["It has no parameters."]
    cls, defaults = _plugin_defaults(kind, name, 0.25)
    others = _plugin_defaults(kind, name, 0.5)[1]
    lines = [f"| parameter | values | default | meaning | in {PLUGIN_PEERS[kind]} |", "| --- | --- | --- | --- | --- |"]
    for row in schema_rows(cls):
        if row.key.split(".")[0] == "footprint":
            continue
        default = f"`{row.default}`" if row.default else ""
        if row.key in defaults:
            text = yaml.safe_dump(defaults[row.key], default_flow_style=True).removesuffix("...\n").strip()
            default = f"`{text}`" if defaults[row.key] == others[row.key] else "from the robot's drive or footprint"
        other = ", ".join(f"`{alias}`" for alias in _aliases_of(cls, row.key.split(".")))
        lines.append(_make_row((f"`{row.key}`", _escape(_shorten(row.expected)), default, _escape(row.doc), other)))
    return lines


def _plugin_defaults(kind: str, name: str, radius: float) -> tuple[type, dict[str, Any]]:
    """Return the class that declares the settings, and the defaults by dotted key for a robot of the given radius."""
    from roboyard.navigation import Footprint
    from roboyard.navigation.navigator import PluginConfig
    from roboyard.navigation.plugins import CONTROLLER_CONFIGS, make_planner

    if kind == "motion_planners":
        return _plugin_registry(kind)[name], {}
    if kind == "controllers":
        defaults = {"rollout": True} if name == "trajectory_rollout" else {}
        return CONTROLLER_CONFIGS[name], defaults
    planner = make_planner(PluginConfig(name), Footprint.circle(radius))
    data = {field.name: dump(getattr(planner, field.name)) for field in dataclasses.fields(planner)}  # type: ignore[arg-type]
    data.pop("footprint", None)
    flat: dict[str, Any] = {}
    for key, value in data.items():
        nested = {f"{key}.{inner}": item for inner, item in value.items()} if isinstance(value, dict) else {key: value}
        flat |= nested
    return type(planner), flat


TREE_NODES_PAGE = METRICS_PAGE.with_name("tree-nodes.md")
TREE_NODE_TABLE = re.compile(r"(<!-- tree nodes of (\w+): (\w+) -->\n)(?:\|.*\n)*")
"""A comment above a table of node types of behavior trees: their origin, and the type of the nodes."""


def with_tree_node_tables(page: str) -> str:
    """Return the text of a page with its tables of node types as the registry and the ports declare them."""
    return TREE_NODE_TABLE.sub(
        lambda found: found[1] + "".join(f"{line}\n" for line in _make_tree_node_table(found[2], found[3])), page
    )


def list_tree_nodes() -> dict[str, dict[str, Any]]:
    """Return all node types by origin (``btcpp4``, ``btcpp3``, ``nav2``, ``roboyard``) and name."""
    from roboyard.behavior.bt_version3 import NODE_TYPES
    from roboyard.behavior.factory import TREE_NODES

    plugins = TREE_NODES.entry_points()
    found: dict[str, dict[str, Any]] = {"btcpp4": {}, "btcpp3": dict(NODE_TYPES), "nav2": {}, "roboyard": {}}
    for name in TREE_NODES.names():
        node = TREE_NODES[name]
        if name in plugins and not plugins[name].module.startswith("roboyard."):
            continue  # of another package that is installed here
        is_nav2 = "\n\nNav2: " in (inspect.getdoc(node) or "")
        found["btcpp4" if name not in plugins else "nav2" if is_nav2 else "roboyard"][name] = node
    return found


def _make_tree_node_table(origin: str, node_type: str) -> list[str]:
    nodes = list_tree_nodes()[origin]
    columns = ("node", "what it does", "ports", *(["compared with Nav2"] if origin == "nav2" else []))
    lines = [_make_row(columns), _make_row(["---"] * len(columns))]
    for name, node in nodes.items():
        if node.node_type.value.lower() != node_type:
            continue
        paragraphs = [" ".join(part.split()) for part in (inspect.getdoc(node) or "").split("\n\n")]
        cells = [f"`{name}`", _escape(paragraphs[0]), "<br>".join(_describe_port(*port) for port in node.ports.items())]
        if origin == "nav2":
            cells.append(_escape(next(text for text in paragraphs if text.startswith("Nav2: ")).removeprefix("Nav2: ")))
        lines.append(_make_row(cells))
    return lines


def _describe_port(name: str, port: Any) -> str:
    direction = {"input_port": "in", "output_port": "out", "inout_port": "in and out"}[port.direction]
    type_name = "" if port.type.python is None else f", {port.type.python.__name__}"
    default = "" if port.default in (None, "") else f", default `{port.default}`"
    return f"`{name}` ({direction}{type_name}{default}): {_escape(port.doc)}"


def _aliases_of(cls: type, path: list[str]) -> tuple[str, ...]:
    """Return the names of a parameter in parameter files of ROS."""
    field = next(field for field in dataclasses.fields(cls) if yaml_key(field) == path[0])
    if len(path) == 1:
        return parameter_info(field).aliases
    return _aliases_of(get_type_hints(cls)[field.name], path[1:])


STEP_PLANNER_TABLES = re.compile(r"(<!-- step planners -->\n)(?:.*\n)*?(<!-- end of step planners -->\n)")
"""Comments around the generated part of the page of step planners."""
STEP_PLANNER_PAGE = METRICS_PAGE.with_name("step-planners.md")
STEP_BENCHMARK = METRICS_PAGE.parents[1] / "benchmarks" / "steps.json"


def with_step_planner_tables(page: str) -> str:
    """Return the text of a page with its part about all step planners as their classes declare them."""
    return STEP_PLANNER_TABLES.sub(
        lambda found: found[1] + "\n".join(_make_step_planner_sections()) + "\n" + found[2], page
    )


def _make_step_planner_sections() -> list[str]:
    from roboyard.walking.free_gait.planners.planner import STEP_PLANNERS

    names = [name for name in STEP_PLANNERS.names() if STEP_PLANNERS[name].__module__.startswith("roboyard.")]
    measured = _read_step_benchmark()
    overview = [
        "",
        "| planner | how it searches | complete | guarantee on the cost | first plan [ms] | last cost / first cost | "
        "memory [MiB] | solved |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    sections: list[str] = []
    for name in names:
        planner = STEP_PLANNERS[name]
        traits = planner.traits
        first_plan, ratio, _, memory, solved = measured.get(name, [""] * 5)
        cells = (f"[`{name}`](#{name})", _escape(traits.idea), traits.completeness, _escape(traits.optimality))
        overview.append(_make_row((*cells, first_plan, ratio, memory, solved)))
        sections += [f"## {name}", "", _escape(" ".join((inspect.getdoc(planner) or "").split())), ""]
        sections += [*_make_key_table(schema_rows(planner)), "", "Literature:", ""]
        sections += [*(f"- {_escape(reference)}" for reference in traits.references), ""]
        sections += [f"Class: `{planner.__module__}.{planner.__name__}`", ""]
    return [*overview, "", *sections]


def _read_step_benchmark() -> dict[str, list[str]]:
    """Return the row of each planner that `roboyard bench steps` has printed: time to the first plan, cost of the last
    plan divided by that of the first, speed-up by two threads, memory, solved problems."""
    rows = yaml.safe_load(STEP_BENCHMARK.read_text("utf-8"))["details"]
    start = next(k for k, row in enumerate(rows) if row.startswith("planner: "))
    lines = (row.split(maxsplit=1) for row in rows[start + 2 :] if row.count(";") == 4)
    return {name: text.split("; ") for name, text in lines}


if __name__ == "__main__":
    for path in PLUGIN_PAGES:
        path.write_text(with_plugin_tables(path.read_text("utf-8")), "utf-8")
    STEP_PLANNER_PAGE.write_text(with_step_planner_tables(STEP_PLANNER_PAGE.read_text("utf-8")), "utf-8")
    TREE_NODES_PAGE.write_text(with_tree_node_tables(TREE_NODES_PAGE.read_text("utf-8")), "utf-8")
    for path in list_pages_with_key_tables():
        path.write_text(with_key_tables(path.read_text("utf-8")), "utf-8")
    (METRICS_PAGE.parents[1] / SCENARIO_PAGE).write_text(make_scenario_page(), "utf-8")
    METRICS_PAGE.write_text(with_metric_table(METRICS_PAGE.read_text("utf-8")), "utf-8")
