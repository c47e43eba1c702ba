"""Validation of the physics: experiments whose result a law gives in closed form, and checks of the simulated values.

`run_experiments` runs them with any physics settings; ``roboyard bench physics`` and the tests check that the errors
with the default settings are within their tolerances.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.simulation.validation.experiments import EXPERIMENTS, run_experiments
    from roboyard.simulation.validation.law_check import Law, LawCheck

__all__ = ["EXPERIMENTS", "Law", "LawCheck", "run_experiments"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "experiments": ("EXPERIMENTS", "run_experiments"),
    "law_check": ("Law", "LawCheck"),
})  # fmt: skip
