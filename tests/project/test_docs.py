"""The documentation is true: every page's examples are run, from top to bottom.

- ```python blocks of a page run one after the other in one namespace, in an empty folder.
- A ```text block after a Python block is what that block prints.
- Lines `$ roboyard …` of ```console blocks are run and must succeed (or end as `<!-- exit 2 -->` before them says).
- A block of any kind with a title (```yaml title="my.yaml") is written to that file first.
- `<!-- no-run: why -->` before a console block leaves it out; there is no such thing for Python.
"""

import gc
import io
import os
import re
import shlex
import sys
import textwrap
import types
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.harness.live_bus import run_cli, spawn_cli
from tests.harness.workers import thread_workers

import roboyard as ry

__all__ = ["thread_workers"]

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(
    r"(?:^[ ]*<!--[ ]*(?P<note>[^\n]*?)[ ]*-->[ ]*\n\s*)?"
    r"^(?P<indent>[ ]*)```(?P<kind>\w+)(?P<info>[^\n]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)
SLOW_VERBS = {"run", "bringup", "batch", "bench", "replay", "report"}
SLOW_PAGES = {
    "add-people",
    "behavior",
    "goals",
    "mapping-a-log",
    "navigation",
    "plan-arm-motions",
    "worlds",
    "write-a-motion-planner",
}
"""Whose Python takes more than a few seconds."""
AS_PROGRAMS = {"README.md", "docs/howto/write-a-tree-node.md"}
"""Whose commands are processes, as for a reader, or because they set what a process starts with; others' run in this
one, for each start imports everything anew."""


@dataclass(frozen=True)
class Block:
    kind: str
    body: str
    line: int
    title: str | None
    note: str


def blocks_of(text: str) -> Iterator[Block]:
    for match in FENCE.finditer(text):
        title = re.search(r'title="([^"]+)"', match["info"])
        line = text.count("\n", 0, match.start("body"))
        yield Block(match["kind"], textwrap.dedent(match["body"]), line, title and title[1], match["note"] or "")


def commands_of(block: Block) -> list[list[str]]:
    """The `roboyard` commands of a console block, as argument lists without the program's name."""
    if block.kind != "console" or block.note.startswith("no-run"):
        return []
    joined = block.body.replace("\\\n", " ")
    found = [shlex.split(line[2:], comments=True) for line in joined.splitlines() if line.startswith("$ ")]
    return [words[1:] for words in found if Path(words[0]).name == "roboyard"]


def is_slow(page: Path) -> bool:
    if page.stem in SLOW_PAGES:
        return True
    commands = [command for block in blocks_of(page.read_text("utf-8")) for command in commands_of(block)]
    return any(command and command[0] in SLOW_VERBS for command in commands)


def run_page(text: str, name: str) -> None:
    """Run a page's blocks in the present folder; what it left open is noticed here, not in the next test."""
    module = types.ModuleType("docs_page")
    sys.modules[module.__name__] = module  # classes made on the page are looked up there
    printed = ""
    for block in blocks_of(text):
        if block.title:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(block.body, "utf-8")
        if block.kind == "python":
            # Empty lines before the code make a traceback's line numbers those of the page.
            code = compile("\n" * block.line + block.body, name, "exec", dont_inherit=True)
            with redirect_stdout(io.StringIO()) as output:
                exec(code, module.__dict__)
            printed = output.getvalue()
        elif block.kind == "text" and printed:
            shown = [line.rstrip() for line in block.body.strip().splitlines()]
            assert shown == [line.rstrip() for line in printed.strip().splitlines()], f"{name}:{block.line}"
            printed = ""
        for command in commands_of(block):
            expected = int(block.note.removeprefix("exit ")) if block.note.startswith("exit ") else 0
            done = spawn_cli(*command, timeout=280.0) if name in AS_PROGRAMS else run_cli(*command)
            assert done.code == expected, f"{name}:{block.line}: {command}\n{done.out}\n{done.err}"
    runs = [key for key, value in vars(module).items() if isinstance(value, ry.Run)]
    for key in runs:
        del module.__dict__[key]  # not all of it: kernels that the page made are called again
    if runs:
        gc.collect()  # takes seconds in a process that has run many tests


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    before = dict(os.environ)
    yield tmp_path
    sys.modules.pop("docs_page", None)
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, id=str(p.relative_to(ROOT)), marks=[pytest.mark.slow] if is_slow(p) else []) for p in PAGES],
)
def test_page_examples_run(page: Path, empty_folder: Path, thread_workers: None) -> None:
    run_page(page.read_text("utf-8"), str(page.relative_to(ROOT)))


def test_only_console_blocks_are_skipped() -> None:
    for page in PAGES:
        for block in blocks_of(page.read_text("utf-8")):
            left_out = block.note.startswith("no-run")
            assert not left_out or (block.kind == "console" and len(block.note) > len("no-run: ")), (
                f"{page}:{block.line}: say why a console block is not run; Python blocks always are"
            )


PAGE = """
```yaml title="sub/a.yaml"
x: 1
```
```python
from pathlib import Path
y = Path("sub/a.yaml").read_text()
print(y)
```
```text
x: 1
```
  ```python
  y += "!"
  print(len(y))
  ```
<!-- no-run: needs a screen -->
```console
$ roboyard no-such-verb
```
"""


def test_runner_executes_blocks(empty_folder: Path) -> None:
    run_page(PAGE, "page")
    with pytest.raises(AssertionError, match="page:10"):
        run_page(PAGE.replace("```text\nx: 1", "```text\nx: 2"), "page")
    with pytest.raises(ZeroDivisionError) as caught:
        run_page("text\n\n```python\nx = 1\n1 / 0\n```\n", "page")
    assert caught.traceback[-1].lineno + 1 == 5
    assert commands_of(Block("console", "$ .venv/bin/roboyard run 'a b' \\\n  --x\nout\n$ make", 0, None, "")) == [
        ["run", "a b", "--x"]
    ]
