"""How the command line looks: groups of verbs under headings, and the options that many verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}

RunOption = Annotated[
    str | None,
    typer.Option("--run", metavar="NAME", help="Live run, by name or process id; default: the only one."),
]
FileOption = Annotated[
    Path | None,
    typer.Option("--file", "-f", metavar="REC", help="A recording or a run's folder, instead of a live run."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


HEADINGS = ("Run and judge", "Steer a live run", "Look into a live run or a recording", "Recordings", "Around it")


class Group(TyperGroup):
    """A group whose help lists its verbs under headings; plain text, since rich alone would double the time."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the verbs in their order, under the heading each was registered with."""
        sections: dict[str, list[tuple[str, Any]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                heading = getattr(command, "rich_help_panel", None)
                sections.setdefault(heading if isinstance(heading, str) else "Commands", []).append((name, command))
        widest = max((len(name) for rows in sections.values() for name, _ in rows), default=0)
        for heading in sorted(sections, key=_order):
            rows = sections[heading]
            with formatter.section(heading):
                limit = formatter.width - 6 - widest
                formatter.write_dl([(name.ljust(widest), command.get_short_help_str(limit)) for name, command in rows])


def _order(heading: str) -> int:
    return HEADINGS.index(heading) if heading in HEADINGS else len(HEADINGS)


def group(about: str) -> typer.Typer:
    """A new group of verbs."""
    return typer.Typer(
        cls=Group,
        help=about,
        rich_markup_mode=None,
        add_completion=False,
        no_args_is_help=True,
        context_settings=_SETTINGS,
    )
