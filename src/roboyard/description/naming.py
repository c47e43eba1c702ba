"""Names that must differ."""

from __future__ import annotations


def make_unique_name(name: str, used_names: dict[str, int]) -> str:
    """``name``, or with the next free number where it is taken; ``used_names`` remembers it, in steady time a name."""
    if name not in used_names:
        used_names[name] = 0
        return name
    while True:
        used_names[name] += 1
        candidate = f"{name}_{used_names[name]}"
        if candidate not in used_names:
            used_names[candidate] = 0
            return candidate
