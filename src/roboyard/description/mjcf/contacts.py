"""Which links of a model may touch each other, by the engine's bits, its rule for neighbours, and excluded pairs."""

from __future__ import annotations

from itertools import combinations

from roboyard.description.mjcf.compiled import Compiled

MOST = 1500
"""Bodies of one model whose pairs are looked at; of more, none touches another."""
Bits = set[tuple[int, int]]


def touching(source: Compiled, bodies: list[int]) -> tuple[set[int], list[tuple[int, int]]]:
    """Bodies that may touch another one of ``bodies``, and the pairs among those that nevertheless do not."""
    bits = {body: _bits(source, body) for body in bodies}
    solid = [body for body in bodies if bits[body]]
    if len(solid) > MOST:
        return set(), []
    excluded = _excluded(source)
    allowed: set[frozenset[int]] = set()
    for one, other in combinations(solid, 2):
        pair = frozenset((one, other))
        if pair not in excluded and _meet(bits[one], bits[other]) and not _neighbours(source, one, other):
            allowed.add(pair)
    members = {body for pair in allowed for body in pair}
    apart = [
        (one, other)
        for one, other in combinations([body for body in solid if body in members], 2)
        if frozenset((one, other)) not in allowed
    ]
    return members, apart


def _bits(source: Compiled, body: int) -> Bits:
    m = source.model
    return {
        (int(m.geom_contype[geom]), int(m.geom_conaffinity[geom]))
        for geom in source.geoms_of(body)
        if m.geom_contype[geom] or m.geom_conaffinity[geom]
    }


def _meet(one: Bits, other: Bits) -> bool:
    return any(a & d or c & b for a, b in one for c, d in other)


def _neighbours(source: Compiled, one: int, other: int) -> bool:
    """Bodies that are fixed together, or whose fixed groups are parent and child, do not touch."""
    m = source.model
    first, second = int(m.body_weldid[one]), int(m.body_weldid[other])
    if first == second:
        return True
    above_first = int(m.body_weldid[m.body_parentid[first]])
    above_second = int(m.body_weldid[m.body_parentid[second]])
    return (first == above_second and first != 0) or (second == above_first and second != 0)


def _excluded(source: Compiled) -> set[frozenset[int]]:
    m = source.model
    signatures = (int(value) for value in m.exclude_signature)
    return {frozenset((signature >> 16, signature & 0xFFFF)) for signature in signatures}
