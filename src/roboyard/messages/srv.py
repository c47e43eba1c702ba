"""Service types as attributes: ``srv.SetBool``, or ``srv.std_srvs.SetBool``.

A bare name that several packages define resolves to the preferred package (``type_registry.PACKAGE_PREFERENCE``);
if none is preferred, it is an error.
"""

from __future__ import annotations

from typing import Any

from roboyard.messages.namespaces import find_type, list_names


def __getattr__(name: str) -> Any:
    found = globals()[name] = find_type("srv", name)  # later look-ups do not call this function
    return found


def __dir__() -> list[str]:
    return list_names("srv")
