"""The packages that pages of the documentation show: their files, and the commands that the pages run on them."""

from __future__ import annotations

from pathlib import Path

from tests.project.test_docs import ROOT, Block, blocks_of, commands_of
from tests.sensors.test_registry_package import roboyard


class PagePackage:
    """The files of a how-to page, written into a folder.

    Attributes:
        folder: Folder of the files.
    """

    def __init__(self, page: str, folder: Path) -> None:
        self.folder = folder
        self._blocks = list(blocks_of((ROOT / "docs" / "howto" / page).read_text("utf-8")))
        for block in self._blocks:
            if block.title:
                (folder / block.title).parent.mkdir(exist_ok=True)
                (folder / block.title).write_text(block.body, "utf-8")

    def count_code_lines(self, file: str) -> int:
        """Return the number of lines of a file that are not empty."""
        return sum(bool(line.strip()) for line in (self.folder / file).read_text("utf-8").splitlines())

    def run_commands(self, *command_names: str) -> list[str]:
        """Run the commands of the page, which have these names; all must succeed.  Return their outputs."""
        commands = [
            words for block in self._blocks for words in commands_of(Block(block.kind, block.body, 0, None, ""))
        ]
        assert [words[0] for words in commands] == list(command_names)
        outputs = []
        for words in commands:
            result = roboyard(self.folder, *words)
            assert result.returncode == 0, result.stdout + result.stderr
            outputs.append(result.stdout)
        return outputs
