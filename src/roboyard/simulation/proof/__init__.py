"""The engine against closed forms: experiments of which mechanics knows the outcome, and how far off it is.

`prove` does them all, with anybody's settings; ``roboyard bench physics`` and the tests hold the defaults to bounds.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.simulation.proof.check import Check
    from roboyard.simulation.proof.proofs import PROOFS, prove

__all__ = ["PROOFS", "Check", "prove"]

__getattr__, __dir__ = lazy_exports(__name__, {"check": ("Check",), "proofs": ("PROOFS", "prove")})
