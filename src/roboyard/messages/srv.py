"""Service types as attributes: ``srv.SetBool``, or ``srv.std_srvs.SetBool``.

A bare name that several packages have means the commonest package's (``names.PREFERENCE``), else it is an error.
"""

from __future__ import annotations

from typing import Any

from roboyard.messages.namespaces import find, listing


def __getattr__(name: str) -> Any:
    found = globals()[name] = find("srv", name)  # found without this function from now on
    return found


def __dir__() -> list[str]:
    return listing("srv")
