"""From voxels to a tree: eight children that agree become one, and a parent is as occupied as its surest child."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.mapping.octree.leaves import DEPTH

WHITE = 255


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes of a pruned tree, its levels one after the other from the voxels up to the root.

    Attributes:
        codes: (n,) Morton code among the nodes of the same level.
        values: (n,) log-odds; of a node with children the largest of theirs.
        colors: (n, 3); of a node with children the mean of theirs.
        masks: (n,) bit i for child i; 0: a leaf.
        first: (n,) number of the first child; the others follow it.
        levels: (n,) depth, 0 the root.
        dropped: (n,) whether it is gone since its parent became a leaf.
    """

    codes: NDArray[np.uint64]
    values: NDArray[np.float32]
    colors: NDArray[np.uint8]
    masks: NDArray[np.uint8]
    first: NDArray[np.int64]
    levels: NDArray[np.uint8]
    dropped: NDArray[np.bool_]

    @property
    def count(self) -> int:
        """Nodes that are there."""
        return int(len(self.dropped) - np.count_nonzero(self.dropped))


def build(codes: NDArray[np.uint64], values: NDArray[np.float32], colors: NDArray[np.uint8]) -> Nodes:
    """The tree over voxels.

    Args:
        codes: (n,) Morton codes of the voxels, ascending.
        values: (n,) their log-odds.
        colors: (n, 3) their colours.
    """
    leaf, childless = np.zeros(len(codes), np.uint8), np.zeros(len(codes), np.int64)
    parts: list[tuple[NDArray[Any], ...]] = [(codes, values, colors, leaf, childless)]
    gone: list[NDArray[np.bool_]] = []
    start = 0
    for _ in range(DEPTH if len(codes) else 0):
        below = parts[-1]
        code, value, color, mask, first, dropped = climb(below[0], below[1], below[2], below[3], start)
        gone.append(dropped)
        start += len(below[0])
        parts.append((code, value, color, mask, first))
    gone.append(np.zeros(len(parts[-1][0]), np.bool_))
    levels = np.concatenate([np.full(len(part[0]), DEPTH - k, np.uint8) for k, part in enumerate(parts)])
    joined = [np.concatenate([part[i] for part in parts]) for i in range(5)]
    return Nodes(joined[0], joined[1], joined[2], joined[3], joined[4], levels, np.concatenate(gone))


@kernel(
    examples=lambda: [
        (np.zeros(1, np.uint64), np.zeros(1, np.float32), np.zeros((1, 3), np.uint8), np.zeros(1, np.uint8), 0),
    ]
)
def climb(
    codes: NDArray[np.uint64],
    values: NDArray[np.float32],
    colors: NDArray[np.uint8],
    masks: NDArray[np.uint8],
    start: int,
) -> tuple[
    NDArray[np.uint64], NDArray[np.float32], NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]
]:
    """Parents of the nodes of one level.

    Args:
        codes: (n,) ascending.
        values: (n,) log-odds.
        colors: (n, 3); white counts as none.
        masks: (n,) children of theirs; 0: a leaf.
        start: Number of the first of them.

    Returns:
        Codes, values, colours, masks and numbers of first children of the parents (m,); and which of the nodes (n,)
        are gone, since their parent became a leaf.
    """
    count = len(codes)
    parents = 0
    for i in range(count):
        if i == 0 or codes[i] >> np.uint64(3) != codes[i - 1] >> np.uint64(3):
            parents += 1
    above, value, color = np.empty(parents, np.uint64), np.empty(parents, np.float32), np.empty((parents, 3), np.uint8)
    mask, first, dropped = np.zeros(parents, np.uint8), np.empty(parents, np.int64), np.zeros(count, np.bool_)
    i = 0
    for parent in range(parents):
        begin = i
        above[parent], first[parent] = codes[i] >> np.uint64(3), start + i
        highest, bits, alike, told = values[i], np.int64(0), True, 0
        sums = np.zeros(3, np.int64)
        while i < count and codes[i] >> np.uint64(3) == above[parent]:
            bits |= np.int64(1) << np.int64(codes[i] & np.uint64(7))
            alike = alike and masks[i] == 0 and values[i] == values[begin]
            highest = max(highest, values[i])
            if colors[i, 0] != WHITE or colors[i, 1] != WHITE or colors[i, 2] != WHITE:
                told += 1
                for axis in range(3):
                    sums[axis] += colors[i, axis]
            i += 1
        value[parent] = highest
        for axis in range(3):
            color[parent, axis] = sums[axis] // told if told > 0 else WHITE
        if alike and bits == 255:
            dropped[begin:i] = True
        else:
            mask[parent] = bits
    return above, value, color, mask, first, dropped


@kernel(examples=lambda: [(np.zeros(1, np.uint8), np.zeros(1, np.int64))])
def leaf_numbers(masks: NDArray[np.uint8], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers (n,) of the leaves in the order of the tree; arguments as in `Nodes`, the root being the last."""
    found = np.empty(len(masks), np.int64)
    if len(masks) == 0:
        return found
    stack = np.empty(8 * DEPTH + 8, np.int64)
    stack[0], depth, count = len(masks) - 1, 1, 0
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if masks[node] == 0:
            found[count] = node
            count += 1
            continue
        children = 0
        for i in range(8):
            children += (masks[node] >> i) & 1
        for i in range(children):  # the first on top
            stack[depth] = first[node] + children - 1 - i
            depth += 1
    return found[:count].copy()
