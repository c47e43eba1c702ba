"""Names that must differ."""

from __future__ import annotations


def free_name(name: str, taken: dict[str, int]) -> str:
    """``name``, or with the next free number where it is taken; ``taken`` remembers it, in steady time a name."""
    if name not in taken:
        taken[name] = 0
        return name
    while True:
        taken[name] += 1
        candidate = f"{name}_{taken[name]}"
        if candidate not in taken:
            taken[candidate] = 0
            return candidate
