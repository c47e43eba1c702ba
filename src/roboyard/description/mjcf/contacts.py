"""Which links of a model may touch each other, by the engine's bits, its rule for neighbours, and excluded pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.description.mjcf.compiled import Compiled

MOST = 1500
"""Bodies of one model whose pairs are looked at; of more, none touches another."""
Bits = frozenset[tuple[int, int]]


def touching(source: Compiled, bodies: list[int]) -> tuple[set[int], list[tuple[int, int]]]:
    """Bodies that may touch another one of ``bodies``, and the pairs among those that nevertheless do not."""
    bits = {body: _bits(source, body) for body in bodies}
    solid = [body for body in bodies if bits[body]]
    if not 2 <= len(solid) <= MOST:
        return set(), []
    kinds = list(dict.fromkeys(bits[body] for body in solid))
    meets = np.array([[_meet(one, other) for other in kinds] for one in kinds])
    kind = np.array([kinds.index(bits[body]) for body in solid])
    allowed = meets[kind[:, None], kind[None, :]] & ~_neighbours(source, np.array(solid))
    place = {body: index for index, body in enumerate(solid)}
    for one, other in _excluded(source):
        if one in place and other in place:
            allowed[place[one], place[other]] = allowed[place[other], place[one]] = False
    member = allowed.any(axis=1)
    apart = np.triu(~allowed, 1) & member[:, None] & member[None, :]
    members = {body for body, touches in zip(solid, member, strict=True) if touches}
    return members, [(solid[one], solid[other]) for one, other in np.argwhere(apart)]


def _bits(source: Compiled, body: int) -> Bits:
    m = source.model
    return frozenset(
        (int(m.geom_contype[geom]), int(m.geom_conaffinity[geom]))
        for geom in source.geoms_of(body)
        if m.geom_contype[geom] or m.geom_conaffinity[geom]
    )


def _meet(one: Bits, other: Bits) -> bool:
    return any(a & d or c & b for a, b in one for c, d in other)


def _neighbours(source: Compiled, bodies: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Pairs (n, n) of bodies that are fixed together, or whose fixed groups are parent and child: they do not touch."""
    m = source.model
    group = np.asarray(m.body_weldid)[bodies]
    above = np.asarray(m.body_weldid)[np.asarray(m.body_parentid)[group]]
    below = (above[:, None] == group[None, :]) & (group[None, :] != 0)
    return np.asarray((group[:, None] == group[None, :]) | below | below.T)


def _excluded(source: Compiled) -> list[tuple[int, int]]:
    signatures = (int(value) for value in source.model.exclude_signature)
    return [(signature >> 16, signature & 0xFFFF) for signature in signatures]
