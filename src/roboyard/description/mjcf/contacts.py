"""Which links of a model may touch each other, by the engine's bits, its rule for neighbours, and excluded pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.description.mjcf.compiled import CompiledMjcf

MAX_COLLIDABLE_BODIES = 1500
"""Bodies of one model whose pairs are looked at; of more, none touches another."""
ContactBits = frozenset[tuple[int, int]]


def find_collidable_bodies(compiled: CompiledMjcf, bodies: list[int]) -> tuple[set[int], list[tuple[int, int]]]:
    """Bodies that may touch another one of ``bodies``, and the pairs among those that nevertheless do not."""
    bits = {body: _contact_bits(compiled, body) for body in bodies}
    collidable = [body for body in bodies if bits[body]]
    if not 2 <= len(collidable) <= MAX_COLLIDABLE_BODIES:
        return set(), []
    distinct_bits = list(dict.fromkeys(bits[body] for body in collidable))
    can_collide = np.array([[_can_collide(one, other) for other in distinct_bits] for one in distinct_bits])
    bits_index = np.array([distinct_bits.index(bits[body]) for body in collidable])
    allowed = can_collide[bits_index[:, None], bits_index[None, :]] & ~_neighbors(compiled, np.array(collidable))
    row_of = {body: index for index, body in enumerate(collidable)}
    for one, other in _excluded_pairs(compiled):
        if one in row_of and other in row_of:
            allowed[row_of[one], row_of[other]] = allowed[row_of[other], row_of[one]] = False
    is_member = allowed.any(axis=1)
    disabled = np.triu(~allowed, 1) & is_member[:, None] & is_member[None, :]
    members = {body for body, touches in zip(collidable, is_member, strict=True) if touches}
    return members, [(collidable[one], collidable[other]) for one, other in np.argwhere(disabled)]


def _contact_bits(compiled: CompiledMjcf, body: int) -> ContactBits:
    m = compiled.model
    return frozenset(
        (int(m.geom_contype[geom]), int(m.geom_conaffinity[geom]))
        for geom in compiled.geoms_of(body)
        if m.geom_contype[geom] or m.geom_conaffinity[geom]
    )


def _can_collide(one: ContactBits, other: ContactBits) -> bool:
    return any(a & d or c & b for a, b in one for c, d in other)


def _neighbors(compiled: CompiledMjcf, bodies: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Pairs (n, n) of bodies that are fixed together, or whose fixed groups are parent and child: they do not touch."""
    m = compiled.model
    group = np.asarray(m.body_weldid)[bodies]
    above = np.asarray(m.body_weldid)[np.asarray(m.body_parentid)[group]]
    below = (above[:, None] == group[None, :]) & (group[None, :] != 0)
    return np.asarray((group[:, None] == group[None, :]) | below | below.T)


def _excluded_pairs(compiled: CompiledMjcf) -> list[tuple[int, int]]:
    signatures = (int(value) for value in compiled.model.exclude_signature)
    return [(signature >> 16, signature & 0xFFFF) for signature in signatures]
