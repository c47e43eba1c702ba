"""What all errors have in common that say why an arm cannot be brought somewhere."""

from __future__ import annotations

from roboyard.errors import RoboyardError


class PlanningError(RoboyardError):
    """The arm cannot be brought there; ``cause`` names why in one word, for results and metrics."""

    cause = "failed"
