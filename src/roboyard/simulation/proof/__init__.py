"""The engine against closed forms: experiments of which mechanics knows the outcome, and how far off it is.

`prove` does them all, with anybody's settings; ``roboyard bench truth`` and the tests hold the defaults to bounds.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roboyard.simulation.proof.check import Check
    from roboyard.simulation.proof.proofs import PROOFS, prove

__all__ = ["PROOFS", "Check", "prove"]

_HOMES = {"Check": "check", "PROOFS": "proofs", "prove": "proofs"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
