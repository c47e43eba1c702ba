"""Kernels of a queue in buckets: what waits is sorted by whole numbers only, in a ring of stacks.

A stack is a chain of blocks, and all stacks share them: a queue takes the memory of what waits, however many buckets
there are, and touches the same few pages again and again.
"""

from __future__ import annotations

from typing import NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel

SIZE = 64
"""Of a block, its link to the one below included: four lines of a processor's cache."""
INSIDE = SIZE - 1
"""Bits of a place that say where in its block it is."""
NONE = -1
_FREE, _USED = 0, 1


class Buckets(NamedTuple):
    """A ring of stacks.

    Where speed counts, pushing ``v`` on bucket ``k``, and popping it, are written out::

        end = ends[k] + 1                               end = ends[k]
        if end & INSIDE == 0:                           v = blocks[end]
            end = open_block(buckets, k)                ends[k] = end - 1
        blocks[end] = v                                 if end & INSIDE == 1:
        ends[k] = end                                       close_block(buckets, k)

    Attributes:
        blocks: (n,) what waits, in blocks of ``SIZE``; first in each is the end of the block below it, or the next free
            block, or ``NONE``.
        ends: (ring,) where what was pushed last on each bucket stands, or ``NONE``; the ring is a power of two.
        pool: (2,) the first free block, or ``NONE``; where blocks begin that were never used.
    """

    blocks: NDArray[np.int32]
    ends: NDArray[np.int64]
    pool: NDArray[np.int64]


@kernel(examples=lambda: [(10, 3.0)])
def empty_buckets(most: int, ahead: float) -> Buckets:
    """Room for ``most`` that wait, in so many buckets that a push may go ``ahead`` of the present one."""
    ring = 1
    while ring < ahead + 1.0:
        ring *= 2
    # each bucket may have a block that is not full, and one is being emptied; the system gives what is touched
    blocks = np.empty((most // (SIZE - 1) + ring + 2) * SIZE, dtype=np.int32)
    return Buckets(blocks, np.full(ring, NONE), np.array([NONE, 0]))


@kernel
def with_more_room(buckets: Buckets) -> Buckets:
    """The same, with twice the blocks."""
    blocks = np.empty(2 * len(buckets.blocks), dtype=np.int32)
    blocks[: len(buckets.blocks)] = buckets.blocks
    return Buckets(blocks, buckets.ends, buckets.pool)


@kernel
def has_room(buckets: Buckets, pushes: int) -> bool:
    """Whether so many pushes find blocks."""
    return bool(buckets.pool[_USED] + pushes * SIZE <= len(buckets.blocks))


@kernel
def open_block(buckets: Buckets, k: SupportsIndex) -> int:
    """Put an empty block on bucket ``k``, whose blocks are full; the first place in it."""
    blocks, ends, pool = buckets
    block = pool[_FREE]
    if block == NONE:
        block = pool[_USED]
        pool[_USED] += SIZE
    else:
        pool[_FREE] = blocks[block]
    blocks[block] = ends[k]
    return int(block + 1)


@kernel
def close_block(buckets: Buckets, k: SupportsIndex) -> None:
    """Take the uppermost block, which is empty, off bucket ``k``."""
    block = buckets.ends[k]
    buckets.ends[k] = buckets.blocks[block]
    give_back(buckets, block)


@kernel
def give_back(buckets: Buckets, block: SupportsIndex) -> None:
    """A block that is in no bucket can be used again."""
    buckets.blocks[block] = buckets.pool[_FREE]
    buckets.pool[_FREE] = block


@kernel
def take_all(buckets: Buckets, k: SupportsIndex) -> int:
    """Take all blocks off bucket ``k``, which is not empty.

    Returns:
        The end of the lowest block; from there they are chained upwards, each to the next one's end, then ``NONE``.
    """
    end, below = buckets.ends[k], np.int64(NONE)
    buckets.ends[k] = NONE
    while end != NONE:
        block = end - (end & INSIDE)
        after = np.int64(buckets.blocks[block])
        buckets.blocks[block] = below
        below, end = end, after
    return int(below)
