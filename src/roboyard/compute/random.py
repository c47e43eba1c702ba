"""Random generators that depend on names, never on the order in which they were made."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np


def make_generator(seed: int, *names: str) -> np.random.Generator:
    """Make the generator of these names for the run with this seed.

    Generators of different names draw independent numbers; adding a robot changes nothing for the others.
    Python's own ``hash`` differs from process to process, so a fixed hash function mixes the names.
    """
    digest = hashlib.blake2b("\x1f".join(names).encode(), digest_size=16, key=b"roboyard").digest()
    words = np.frombuffer(digest, dtype="<u4")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed & 0xFFFFFFFFFFFFFFFF, *words.tolist()])))


def generator_state(state: dict[str, Any]) -> dict[str, Any]:
    """A bit generator's state as plain data (large integers as text, so that any format can hold it)."""
    return {
        "state": str(state["state"]["state"]),
        "inc": str(state["state"]["inc"]),
        "has_uint32": int(state["has_uint32"]),
        "uinteger": int(state["uinteger"]),
    }


def restore_generator(rng: np.random.Generator, saved: dict[str, Any]) -> None:
    """Put a generator back into a state from `generator_state`."""
    rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": int(saved["state"]), "inc": int(saved["inc"])},
        "has_uint32": saved["has_uint32"],
        "uinteger": saved["uinteger"],
    }
