"""Action types as attributes: ``action.NavigateToPose``, or ``action.nav2_msgs.NavigateToPose``.

A bare name that several packages have means the commonest package's (``names.PREFERENCE``), else it is an error.
"""

from __future__ import annotations

from typing import Any

from roboyard.messages.namespaces import find, listing


def __getattr__(name: str) -> Any:
    found = globals()[name] = find("action", name)  # found without this function from now on
    return found


def __dir__() -> list[str]:
    return listing("action")
