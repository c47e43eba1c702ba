"""Validation experiments: mechanics knows their outcome in closed form, and each simulated value is compared with it.

`run_experiments` runs them with any physics settings; ``roboyard bench physics`` and the tests check the default
settings
against their bounds.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.simulation.validation.experiments import EXPERIMENTS, run_experiments
    from roboyard.simulation.validation.law_check import LawCheck

__all__ = ["EXPERIMENTS", "LawCheck", "run_experiments"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "experiments": ("EXPERIMENTS", "run_experiments"),
    "law_check": ("LawCheck",),
})  # fmt: skip
