"""What nodes may be handed by name, some of it made only when somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any


class Offers(Mapping[str, Any]):
    """Resources by name.

    Args:
        ready: Those that are there.
        late: Those that take time to make: called whenever one is asked for.
    """

    def __init__(self, ready: Mapping[str, Any], late: Mapping[str, Callable[[], Any]]) -> None:
        self._ready, self._late = dict(ready), dict(late)

    def __getitem__(self, name: str) -> Any:
        return self._late[name]() if name in self._late else self._ready[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._ready, *self._late))

    def __len__(self) -> int:
        return len(self._ready) + len(self._late)
