"""Recordings of two revisions are compared message by message, and the first difference is named where it is."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from roboyard.record import McapWriter

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
HEADER = (
    "=" * 80 + "\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n" + "=" * 80 + "\n"
    "MSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
)
OLD_TYPE, NEW_TYPE = "demo_msgs/msg/Whereabouts", "demo_msgs/msg/PoseEstimate"
OLD_TEXT = "int32 LOST=3\nstd_msgs/Header header\nfloat64 way\nfloat32[] grains\nstring mood\n" + HEADER
NEW_TEXT = "int32 UNKNOWN=3\nstd_msgs/Header header\nfloat64 path\nfloat32[] samples\nstring state\n" + HEADER
RENAMES = {
    "topics": {"re:/(\\w+)/whereabouts": "/\\1/pose_estimate"},
    "types": {OLD_TYPE: NEW_TYPE},
    "nodes": {"herder": "fleet_manager"},
    "frames": {"flesh": "body"},
    "fields": {OLD_TYPE: {"way": "path", "grains": "samples", "mood": "state", "LOST": "UNKNOWN"}},
    "values": {f"{OLD_TYPE}.mood": {"WAY_CLEAR": "PATH_CLEAR"}},
    "texts": [{"pattern": "\\bway\\b", "replacement": "path"}],
}
INVERSE = {
    "topics": {"re:/(\\w+)/pose_estimate": "/\\1/whereabouts"},
    "types": {NEW_TYPE: OLD_TYPE},
    "nodes": {"fleet_manager": "herder"},
    "frames": {"body": "flesh"},
    "fields": {NEW_TYPE: {new: old for old, new in RENAMES["fields"][OLD_TYPE].items()}},  # type: ignore[attr-defined]
    "values": {f"{NEW_TYPE}.state": {"PATH_CLEAR": "WAY_CLEAR"}},
    "texts": [{"pattern": "\\bpath\\b", "replacement": "way"}],
}


@pytest.fixture(scope="module", autouse=True)
def tools() -> Any:
    """The folder of tools, which is no package, on the search path."""
    sys.path.insert(0, str(TOOLS))
    yield
    sys.path.remove(str(TOOLS))


@pytest.fixture(scope="module")
def tool(tools: None) -> ModuleType:
    import compare_recordings

    return compare_recordings


@dataclass(frozen=True)
class Sent:
    """A message of the tests' own type."""

    topic: str
    publisher: str
    time_ns: int
    way: float = 0.0
    grains: tuple[float, ...] = ()
    mood: str = ""
    frame: str = "flesh"


def new_words(message: Sent) -> Sent:
    """The same message in the new revision's words."""
    return replace(
        message,
        topic=message.topic.replace("whereabouts", "pose_estimate"),
        publisher={"herder": "fleet_manager"}.get(message.publisher, message.publisher),
        mood={"WAY_CLEAR": "PATH_CLEAR"}.get(message.mood, message.mood.replace("way", "path")),
        frame={"flesh": "body"}.get(message.frame, message.frame),
    )


def store_of(type_name: str, text: str) -> Any:
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(text, type_name))
    return store


STORES = {OLD_TYPE: store_of(OLD_TYPE, OLD_TEXT), NEW_TYPE: store_of(NEW_TYPE, NEW_TEXT)}


def write(path: Path, messages: list[Sent], *, new: bool = False, metadata: dict[str, str] | None = None) -> Path:
    """A recording of messages, in the words of either revision."""
    type_name, text = (NEW_TYPE, NEW_TEXT) if new else (OLD_TYPE, OLD_TEXT)
    store = STORES[type_name]
    with McapWriter(path, metadata or {"run": "demo"}, overwrite=True) as writer:
        for one in messages:
            stamp = store.types["builtin_interfaces/msg/Time"](sec=0, nanosec=one.time_ns)
            header = store.types["std_msgs/msg/Header"](stamp=stamp, frame_id=one.frame)
            message = store.types[type_name](header, one.way, np.array(one.grains, np.float32), one.mood)
            channel = writer.channel(one.topic, type_name, one.publisher, definition=text)
            writer.write(channel, one.time_ns, bytes(store.serialize_cdr(message, type_name)))
    return path


FLOATS = st.floats(width=32)
CHANNELS = (("/a/whereabouts", "herder"), ("/a/whereabouts", "other"), ("/b/whereabouts", "herder"), ("/log", "herder"))


@st.composite
def recorded(draw: st.DrawFn) -> list[Sent]:
    """Messages in order of time; those of a channel at different times, those of several often at the same."""
    messages, time, last = [], 10, dict[Any, int]()
    for channel in draw(st.lists(st.sampled_from(CHANNELS), min_size=1, max_size=12)):
        time += draw(st.integers(0, 3))
        if last.get(channel) == time:
            time += 1
        last[channel] = time
        words = (
            draw(st.sampled_from(["", "WAY_CLEAR", "the way is free", "x"])),
            draw(st.sampled_from(["flesh", "map"])),
        )
        grains = tuple(draw(st.lists(FLOATS, max_size=3)))
        messages.append(Sent(*channel, time, draw(st.floats()), grains, *words))
    return messages


def compare(old: list[Sent], new: list[Sent], table: Any = None, tolerance: float = 0.0, **options: bool) -> Any:
    """The comparison of two recordings of these messages."""
    from recording_diff import compare_recordings
    from recording_renames import parse_renames

    with TemporaryDirectory() as folder:
        before = write(Path(folder, "old.mcap"), old, new=options.get("old_is_new", False))
        after = write(Path(folder, "new.mcap"), new, new=options.get("new_is_new", False))
        return compare_recordings(before, after, parse_renames(table or {}), tolerance)


def channel_of(messages: list[Sent], place: int) -> list[Sent]:
    one = messages[place]
    return [m for m in messages if (m.topic, m.publisher) == (one.topic, one.publisher)]


@given(recorded())
def test_a_recording_is_equal_to_itself(messages: list[Sent]) -> None:
    """By its bytes, and decoded: a table whose names do not occur makes every message be decoded."""
    found = compare(messages, messages)
    assert found.same_bytes
    assert not found.differences
    assert sum(count.new for count in found.topics.values()) == len(messages)
    found = compare(
        messages, messages, {"frames": {"nowhere": "somewhere"}, "texts": [{"pattern": "0", "replacement": "1"}]}
    )
    assert not found.same_bytes
    assert not found.differences
    assert not found.different


@given(recorded(), st.data())
def test_one_changed_field_is_named(messages: list[Sent], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(messages) - 1))
    one = messages[place]
    kind = data.draw(st.sampled_from(["way", "grains", "length", "mood", "frame"]))
    if kind == "way":
        value = data.draw(st.floats(allow_nan=False))
        assume(np.float64(value).tobytes() != np.float64(one.way).tobytes())
        changed, path = replace(one, way=value), "way"
    elif kind == "grains":
        assume(one.grains)
        k = data.draw(st.integers(0, len(one.grains) - 1))
        value = data.draw(st.floats(allow_nan=False, width=32))
        assume(np.float32(value).tobytes() != np.float32(one.grains[k]).tobytes())
        changed, path = replace(one, grains=(*one.grains[:k], value, *one.grains[k + 1 :])), f"grains[{k}]"
    elif kind == "length":
        changed, path = replace(one, grains=(*one.grains, 1.0)), "grains (length)"
    elif kind == "mood":
        changed, path = replace(one, mood=one.mood + "!"), "mood"
    else:
        changed, path = replace(one, frame=one.frame + "!"), "header.frame_id"
    found = compare(messages, [*messages[:place], changed, *messages[place + 1 :]])
    (first,) = found.differences
    channel = channel_of(messages, place)
    assert (first.topic, first.publisher, first.time_ns, first.sequence, first.field) == (
        one.topic, one.publisher, one.time_ns, channel.index(one), path,
    )  # fmt: skip
    assert first.old != first.new
    assert found.different == {one.topic: 1}


@given(recorded(), st.data())
def test_one_changed_time_is_named(messages: list[Sent], data: st.DataObject) -> None:
    """Times of a channel stay in order, those of others may be passed."""
    messages = [replace(one, time_ns=10 * one.time_ns) for one in messages]
    place = data.draw(st.integers(0, len(messages) - 1))
    one, channel = messages[place], channel_of(messages, place)
    k = channel.index(one)
    bound = channel[k + 1].time_ns - 1 if k + 1 < len(channel) else one.time_ns + 50
    moved = replace(one, time_ns=data.draw(st.integers(one.time_ns + 1, bound)))
    changed = sorted([*messages[:place], moved, *messages[place + 1 :]], key=lambda m: m.time_ns)
    found = compare(messages, changed)
    (first,) = found.differences
    assert (first.topic, first.time_ns, first.sequence, first.field) == (one.topic, one.time_ns, k, "time [ns]")
    assert (first.old, first.new) == (str(one.time_ns), str(moved.time_ns))
    assert found.different == {one.topic: 1}


@given(recorded(), st.data())
def test_a_message_that_one_side_lacks_is_named(messages: list[Sent], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(messages) - 1))
    one, channel = messages[place], channel_of(messages, place)
    fewer = [*messages[:place], *messages[place + 1 :]]
    alone = len(channel) == 1
    for found, texts in (
        (compare(messages, fewer), ("published", "absent")),
        (compare(fewer, messages), ("absent", "published")),
    ):
        (first,) = found.differences
        assert (first.topic, first.publisher, first.time_ns) == (one.topic, one.publisher, one.time_ns)
        assert (first.field, first.sequence) == (("topic", None) if alone else ("message", channel.index(one)))
        assert (first.old, first.new) == texts
        assert found.different == {one.topic: 1}


@given(recorded(), st.data())
def test_another_order_at_one_moment_is_named(messages: list[Sent], data: st.DataObject) -> None:
    pairs = [k for k, (a, b) in enumerate(pairwise(messages)) if a.time_ns == b.time_ns]
    assume(pairs)
    place = data.draw(st.sampled_from(pairs))
    swapped = [*messages[:place], messages[place + 1], messages[place], *messages[place + 2 :]]
    (first,) = compare(messages, swapped).differences
    assert (first.topic, first.time_ns, first.field) == (messages[place].topic, messages[place].time_ns, "order")


@given(recorded())
def test_renamed_objects_are_the_same_under_their_table_and_its_inverse(messages: list[Sent]) -> None:
    renamed = [new_words(one) for one in messages]
    assert not compare(messages, renamed, RENAMES, new_is_new=True).differences
    assert not compare(renamed, messages, INVERSE, old_is_new=True).differences
    assert compare(messages, renamed, new_is_new=True).differences


@given(recorded(), st.sampled_from([key for key in RENAMES if key not in ("values", "texts")]))
def test_a_table_that_lacks_one_section_is_not_enough(messages: list[Sent], section: str) -> None:
    if section == "frames":
        assume(any(one.frame == "flesh" for one in messages))
    if section == "nodes":
        assume(any(one.publisher == "herder" for one in messages))
    if section == "topics":
        assume(any(one.topic != "/log" for one in messages))
    table = {key: value for key, value in RENAMES.items() if key != section}
    assert compare(messages, [new_words(one) for one in messages], table, new_is_new=True).differences


def test_what_is_listed_must_have_changed() -> None:
    """An old name that stays at one place is a difference, though the bytes are the same."""
    messages = [Sent("/log", "other", 1), Sent("/log", "other", 2, frame="map")]
    (first,) = compare(messages, messages, {"frames": {"map": "world"}}).differences
    assert (first.sequence, first.field, first.old, first.new) == (1, "header.frame_id", "'world'", "'map'")


def test_a_tolerance_is_of_floats_alone() -> None:
    old = [Sent("/log", "other", 1, way=1000.0, grains=(float("nan"), 0.0))]
    near = [replace(old[0], way=1000.5, grains=(float("nan"), -0.0))]
    assert compare(old, near).differences
    assert not compare(old, near, tolerance=1e-3).differences
    assert compare(old, near, tolerance=1e-4).differences
    assert compare(old, [replace(old[0], mood="x")], tolerance=1.0).differences
    assert compare(old, [replace(old[0], way=float("nan"))], tolerance=1.0).differences


def test_what_is_excluded_is_not_compared() -> None:
    old = [Sent("/log", "other", 1), Sent("/a/whereabouts", "herder", 2)]
    new = [replace(old[0], mood="x"), old[1]]
    assert compare(old, new).differences
    assert not compare(old, new, {"exclude": {"topics": ["/lo*"]}}).differences
    assert not compare(old, new, {"exclude": {"fields": [f"{OLD_TYPE}.mood"]}}).differences
    assert not compare(old, old[1:], {"exclude": {"topics": ["/log"]}}).differences


def test_metadata_is_compared_with_the_scenarios_name(tmp_path: Path, tool: ModuleType) -> None:
    from recording_diff import compare_recordings
    from recording_renames import parse_renames

    messages = [Sent("/log", "other", 1)]
    old = write(tmp_path / "old.mcap", messages, metadata={"run": "rover-errand", "lock": "a"})
    new = write(tmp_path / "new.mcap", messages, metadata={"run": "rover-task", "lock": "b"})
    table: dict[str, Any] = {"scenarios": {"rover-errand": "rover-task"}}
    (first,) = compare_recordings(old, new, parse_renames(table)).differences
    assert (first.field, first.old, first.new) == ("metadata lock", "'a'", "'b'")
    found = compare_recordings(old, new, parse_renames(table | {"exclude": {"metadata": ["lock"]}}))
    assert not found.differences
    assert any("metadata lock" in line for line in found.notes)


def test_metrics_and_results_are_compared_under_renames(tool: ModuleType) -> None:
    from metrics_diff import compare_metrics
    from recording_renames import parse_renames, read_renames

    def criterion(passed: bool, metric: str) -> dict[str, Any]:
        return {"expression": f"{metric} > 1", "passed": passed, "values": {metric: 2.0}}

    old = {
        "success": True, "wall_seconds": 3.0, "way_length": 2.0, "criteria": {"moves": criterion(True, "way_length")},
        "nodes": [{"name": "herder", "kind": "X", "busy_seconds": 1.0}, {"name": "other", "kind": "Y"}],
        "events": [{"kind": "fault"}],
    }  # fmt: skip
    new = {
        "success": True, "wall_seconds": 4.0, "path_length": 2.0,
        "criteria": {"drives": criterion(True, "path_length")},
        "nodes": [{"name": "other", "class": "Y"}, {"name": "fleet_manager", "class": "X", "busy_seconds": 2.0}],
        "events": [{"kind": "fault"}],
    }  # fmt: skip
    table = {
        "metrics": {"way_length": "path_length"}, "criteria": {"moves": "drives"}, "nodes": {"herder": "fleet_manager"},
        "keys": {"re:nodes\\.[^.]+\\.kind": "class"},
        "exclude": {"metrics": list(read_renames(tool.RENAMES).excluded["metrics"])},
    }  # fmt: skip
    assert not compare_metrics(old, new, parse_renames(table))
    for without_value in ({**old, "odom_rmse": None}, old):  # null and absent both say that there is no value
        assert not compare_metrics(without_value, {**new, "odom_rmse": None}, parse_renames(table))
        assert not compare_metrics({**without_value, "odom_rmse": None}, new, parse_renames(table))
    assert compare_metrics({**old, "odom_rmse": 1.0}, {**new, "odom_rmse": None}, parse_renames(table))
    worse = json.loads(json.dumps(new))
    worse["path_length"], worse["success"], worse["criteria"]["drives"]["passed"] = 1.5, False, False
    found = compare_metrics(old, worse, parse_renames(table))
    assert [one.path for one in found] == ["success", "criteria.drives.passed", "path_length"]
    assert [one.is_verdict for one in found] == [True, True, False]
    assert (found[2].old, found[2].new) == ("2.0", "1.5")
    assert compare_metrics(old, new, parse_renames({}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[topcs]\n", "topcs"),
        ("topics = 3\n", "no table"),
        ("[topics]\n'/a' = 3\n", "/a is 3"),
        ("[topics]\n're:(' = 'x'\n", "no regular expression"),
        ("[exclude]\ntopics = '/a'\n", "no list of texts"),
        ("[exclude]\nnodes = []\n", "nodes"),
        ("[[texts]]\npattern = 'a'\n", "replacement"),
        ("[commands.new]\nrun = 'run'\n", "no list"),
        ("[commands.both]\nrun = []\n", "both"),
        ("topics\n", "no TOML"),
    ],
)
def test_a_bad_table_is_reported(text: str, said: str, tmp_path: Path, tool: ModuleType) -> None:
    from recording_renames import read_renames

    from roboyard.errors import InputError

    path = tmp_path / "renames.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"renames\.toml") as error:
        read_renames(path)
    assert said in str(error.value)


FAKE = '''"""A command that has scenarios as files, to be compared quickly."""
import json, os, shutil, sys, time
from pathlib import Path

HERE = Path(__file__).parent
words = sys.argv[1:]
if words[0] == "list":
    print(json.dumps({"scenarios": [{"name": path.stem} for path in sorted(HERE.glob("*.mcap"))]}))
    sys.exit(0)
name, folder = words[1], Path(words[words.index("--out") + 1])
with open(os.environ["FAKE_LOG"], "a") as log:
    log.write(name + "\\n")
if name == "endless" and os.environ.get("FAKE_ENDLESS"):
    time.sleep(600)
folder.mkdir()
shutil.copy(HERE / (name + ".mcap"), folder / "recording.mcap")
(folder / "report.html").write_text("a page")
if name == "broken" and (HERE / "breaks").exists():
    print("error: a wheel fell off", file=sys.stderr)
    sys.exit(1)
seed = int(words[words.index("--seed") + 1])
(folder / "metrics.json").write_text(json.dumps({"state": "done", "success": True, "seed": seed}))
'''


def git(repository: Path, *words: str) -> str:
    who = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b"}
    process = subprocess.run(
        ["git", *words], cwd=repository, env={**os.environ, **who}, capture_output=True, text=True, check=True
    )
    return process.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository whose last commit has what differs from the one before: `first` is its tag."""
    place = tmp_path / "repository"
    package = place / "src" / "roboyard"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(FAKE)
    (package / "scenarios").mkdir()
    (package / "scenarios" / "provenance.py").write_text("cpu_class = installed_versions_hash = str\n")
    (place / ".gitignore").write_text("__pycache__/\n")  # compiled Python is no change of the working tree
    (place / "pyproject.toml").write_text('[project]\nname = "roboyard"\nversion = "0.1.0"\n')
    messages = [Sent("/log", "other", k) for k in range(1, 5)]
    for name in ("same", "changed", "broken", "gone"):
        write(package / f"{name}.mcap", messages, metadata={"run": name})
    git(place, "init", "-q")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "first")
    git(place, "tag", "first")
    (package / "gone.mcap").unlink()
    (package / "breaks").touch()
    write(package / "fresh.mcap", messages)
    write(
        package / "changed.mcap",
        [*messages[:2], replace(messages[2], way=1.0), messages[3]],
        metadata={"run": "changed"},
    )
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "second")
    monkeypatch.setattr(tool, "ROOT", place)
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    return place


def call(tool: ModuleType, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = tool.main([*words])
    return (code, *capsys.readouterr())


def ran(tmp_path: Path) -> list[str]:
    """Names of the scenarios that were run since this was last asked."""
    log = tmp_path / "log"
    names = sorted(log.read_text().split()) if log.exists() else []
    log.unlink(missing_ok=True)
    return names


def test_two_revisions_are_compared(
    tool: ModuleType, repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep = ["--keep", str(tmp_path / "kept")]
    code, out, err = call(tool, capsys, "first", *keep)
    assert code == 1
    assert "equal      same" in out
    assert "different  changed" in out
    assert "first: /log of other, message 2 at 0.000000003 s: way: 0.0 → 1.0" in out
    assert "/log: 1 differ of 4 old and 4 new messages" in out
    assert "failed     broken" in out
    assert "new: error: a wheel fell off" in out
    assert "missing at the new revision: gone" in out
    assert "only at the new revision, so not compared: fresh" in out
    assert "[6/6]" in err
    assert ran(tmp_path) == ["broken", "broken", "changed", "changed", "same", "same"]
    code, out, _ = call(tool, capsys, "first", *keep, "--json")
    assert ran(tmp_path) == ["broken"]  # what was kept is not run again, and what failed is
    found = json.loads(out)
    assert code == 1
    assert not found["equal"]
    assert {name: one["verdict"] for name, one in found["scenarios"].items()} == {
        "same": "equal", "changed": "different", "broken": "failed",
    }  # fmt: skip
    first = found["scenarios"]["changed"]["first"]
    assert (first["topic"], first["time_ns"], first["sequence"], first["field"]) == ("/log", 3, 2, "way")
    assert (found["only_old"], found["only_new"]) == (["gone"], ["fresh"])
    kept = {path.name for path in (tmp_path / "kept").rglob("*") if path.is_file()}
    assert kept == {"recording.mcap", "metrics.json"}
    assert not list((tmp_path / "kept").glob(".*"))
    code, out, _ = call(tool, capsys, "first", *keep, "--scenarios", "same")
    assert (code, ran(tmp_path)) == (0, [])
    code, out, _ = call(tool, capsys, "first", "HEAD", *keep, "--scenarios", "changed", "--exclude", "topics:/log")
    assert (code, ran(tmp_path)) == (0, [])
    assert "not compared, topics: /log" in out
    assert call(tool, capsys, "first", "first", *keep, "--scenarios", "changed", "gone")[0] == 0
    assert call(tool, capsys, "first", *keep, "--scenarios", "same", "gone")[0] == 1  # something is lost
    assert call(tool, capsys, "first", *keep, "--scenarios", "same", "fresh")[0] == 0  # something is new


def test_a_working_tree_with_changes_is_run_each_time(
    tool: ModuleType, repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("HEAD", "--scenarios", "same", "--keep", str(tmp_path / "kept"))
    assert call(tool, capsys, *words)[0] == 0  # a clean tree is its commit
    assert ran(tmp_path) in (["same"], ["same", "same"])
    write(repository / "src/roboyard/same.mcap", [Sent("/log", "other", 1)], metadata={"run": "same"})
    for _ in range(2):
        code, out, _ = call(tool, capsys, *words)
        assert code == 1
        assert "message 1 at 0.000000002 s: message: published → absent" in out
        assert ran(tmp_path) == ["same"]


def test_renamed_scenarios_and_another_seed(
    tool: ModuleType, repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "renames.toml"
    table.write_text("[scenarios]\ngone = 'fresh'\nnobody = 'x'\n[exclude]\nmetadata = ['run']\n")
    words = ("first", "--keep", str(tmp_path / "kept"), "--renames", str(table), "--scenarios", "gone")
    code, out, _ = call(tool, capsys, *words)
    assert code == 0
    assert "equal      gone → fresh" in out
    assert "renames that nothing was met for: scenarios: nobody" in out
    code, out, _ = call(tool, capsys, *words, "--new-seed", "1")
    assert code == 1
    assert "metrics.json seed: 0 → 1" in out


def test_commands_that_are_called_otherwise_stand_in_the_table(
    tool: ModuleType, repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main = repository / "src/roboyard/__main__.py"
    main.write_text(main.read_text().replace('"list"', '"catalog"'))
    git(repository, "mv", "src/roboyard/scenarios/provenance.py", "src/roboyard/scenarios/origin.py")
    git(repository, "commit", "-q", "-a", "-m", "third")
    words = ("first", "--scenarios", "same", "--keep", str(tmp_path / "kept"))
    code, _, err = call(tool, capsys, *words)
    assert code == 2
    assert "[commands]" in err
    table = tmp_path / "renames.toml"
    asked = "from roboyard.scenarios.origin import cpu_class; print(cpu_class())"
    table.write_text(f'[commands.new]\nlist = ["catalog"]\nenvironment = ["-c", "{asked}"]\n')
    assert call(tool, capsys, *words, "--renames", str(table))[0] == 0


def test_bad_input_is_reported(
    tool: ModuleType, repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep = ["--keep", str(tmp_path / "kept")]
    for words, said in (
        (["nowhere"], "no revision 'nowhere'"),
        (["first", "--scenarios", "othr"], "no scenario 'othr'"),
        (["first", "--renames", "none.toml"], "none.toml"),
        (["first", "--tolerance", "-1"], "--tolerance"),
        (["first", "--workers", "0"], "--workers"),
        (["first", "--exclude", "nodes:x"], "--exclude nodes:x"),
        (["first", "--python", "nowhere"], "no file nowhere"),
    ):
        code, _, err = call(tool, capsys, *words, *keep)
        assert code == 2, words
        (line,) = [line for line in err.splitlines() if line.startswith("error:")]
        assert said in line


def test_recording_ahead_keeps_the_old_side(
    tool: ModuleType, repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep = ["--keep", str(tmp_path / "kept")]
    code, out, _ = call(tool, capsys, "first", "--record", *keep)
    assert code == 0
    assert "4 runs are kept in" in out
    assert ran(tmp_path) == ["broken", "changed", "gone", "same"]
    assert call(tool, capsys, "first", "first", *keep)[0] == 0
    assert ran(tmp_path) == []


def test_ctrl_c_leaves_what_is_done(tool: ModuleType, repository: Path, tmp_path: Path) -> None:
    shutil.copy(repository / "src/roboyard/same.mcap", repository / "src/roboyard/endless.mcap")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "third")
    start = (
        f"import sys; sys.path.insert(0, {str(TOOLS)!r}); import compare_recordings as tool; from pathlib import Path; "
    )
    start += f"tool.ROOT = Path({str(repository)!r}); sys.exit(tool.main(sys.argv[1:]))"
    words = ["HEAD", "--record", "--scenarios", "same", "endless", "--keep", str(tmp_path / "kept"), "--workers", "1"]
    process = subprocess.Popen(
        [sys.executable, "-c", start, *words],
        env={**os.environ, "FAKE_ENDLESS": "1"}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    with process:
        line = process.stderr.readline()
        assert line.startswith("[1/2] same ran"), line
        process.send_signal(signal.SIGINT)
        process.stderr.read()
    assert process.returncode == 130
    assert [path.parent.name for path in (tmp_path / "kept").rglob("recording.mcap")] == ["same"]
    assert not list((tmp_path / "kept").glob(".*"))


@pytest.mark.slow
def test_a_real_scenario_run_twice_is_equal(tool: ModuleType, tmp_path: Path) -> None:
    from recording_renames import RUN, parse_renames, read_renames
    from smoke_runs import Job, SmokeRun, SmokeRunner

    from roboyard.cli.revisions import open_working_tree

    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone")
    process: dict[str, SmokeRun] = {}
    with open_working_tree(ROOT) as tree:
        seeds = {"a": 0, "b": 0, "other": 1}
        jobs = [Job(tree, RUN, "rover-drive", seed, tmp_path / name) for name, seed in seeds.items()]
        SmokeRunner(tmp_path, 1, 280.0, print).run(jobs, lambda job, found: process.update({job.home.name: found}))
    assert all(one.error is None for one in process.values())
    for table in (read_renames(tool.RENAMES), parse_renames({"frames": {"nowhere": "somewhere"}})):
        table.excluded["metrics"] = read_renames(tool.RENAMES).excluded["metrics"]
        result = tool.compare_runs(process["a"], process["b"], table, 0.0)
        assert result.verdict == tool.EQUAL, result
        result = tool.compare_runs(process["a"], process["other"], table, 0.0)
        assert result.verdict == tool.DIFFERENT
        assert result.differences[0].topic
