"""Trees as bytes, the way OctoMap writes nodes: depth first, each before its children.

Full (``.ot``): log-odds as 32 bits, with colours three bytes more, then a byte with a bit for each child.  Binary
(``.bt``): only nodes with children, two bits a child: 00 unknown, 01 free, 10 occupied, 11 has children itself (the
lower bit first).  Source: ``OccupancyOcTreeBase.hxx`` and ``ColorOcTree.cpp`` of OctoMap 1.10.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.errors import InputError
from roboyard.mapping.octree.leaves import DEPTH, Leaves
from roboyard.mapping.octree.levels import Nodes

MOST_BYTES: Final = 1 << 30
_PLAIN, _COLOR = 5, 8
_FINE, _TORN, _DEEP, _NUMBER, _CHILDLESS = 0, 1, 2, 3, 4
_TROUBLE: Final = {
    _TORN: "ends within a node",
    _DEEP: f"a node has children below level {DEPTH}, the lowest",
    _NUMBER: "a node's value is no number",
    _CHILDLESS: "a node that should have children has none",
}


def encode_full(nodes: Nodes, *, color: bool) -> bytes:
    """All values of a tree, and its colours if they are wanted."""
    if not len(nodes.codes):
        return b""
    out = np.empty(nodes.count * (_COLOR if color else _PLAIN), dtype=np.uint8)
    bits = nodes.values.view(np.uint32)
    write_full(bits, nodes.colors, nodes.masks, nodes.first, color, out)
    return out.tobytes()


def encode_binary(nodes: Nodes) -> bytes:
    """What of a tree is free and what occupied; its values are positive where it is occupied."""
    if not len(nodes.codes):
        return b""
    out = np.empty(2 * int(np.count_nonzero(nodes.masks)), dtype=np.uint8)
    write_binary(nodes.values > 0, nodes.masks, nodes.first, out)
    return out.tobytes()


def decode(
    data: bytes, *, binary: bool, color: bool, resolution: float, threshold: float, free: float, taken: float
) -> Leaves:
    """Leaves of a tree from its bytes.

    Args:
        data: All of them.
        binary: Two bits a child.
        color: Nodes have colours.
        resolution: Edge of the smallest voxel [m].
        threshold: Log-odds from which on a leaf is occupied.
        free: Log-odds of what is free in a binary tree.
        taken: Log-odds of what is occupied in a binary tree.

    Raises:
        InputError: they are no tree, too many, or more than one.
    """
    if len(data) > MOST_BYTES:
        raise InputError(f"a tree of {len(data)} bytes", valid=f"at most {MOST_BYTES}")
    array = np.frombuffer(data, dtype=np.uint8)
    if not len(array):
        codes, depths, values = np.zeros(0, np.uint64), np.zeros(0, np.uint8), np.zeros(0, np.float32)
        colors, nodes, trouble, at = np.zeros((0, 3), np.uint8), 0, _FINE, 0
    elif binary:
        codes, depths, occupied, nodes, trouble, at = read_binary(array)
        values = np.where(occupied, np.float32(taken), np.float32(free))
        colors = np.zeros((0, 3), np.uint8)
    else:
        codes, depths, bits, colors, nodes, trouble, at = read_full(array, color)
        values = bits.view(np.float32)
    if trouble != _FINE:
        raise InputError(f"the tree's byte {at} of {len(array)}: {_TROUBLE[trouble]}", valid="a whole tree")
    if at != len(array):
        raise InputError(f"{len(array) - at} bytes are left behind the tree's end", valid="one tree")
    return Leaves(codes, depths, values, colors if color else None, resolution, threshold, nodes)


@kernel(
    examples=lambda: [
        (np.zeros(1, np.uint32), np.zeros((1, 3), np.uint8), np.zeros(1, np.uint8), np.zeros(1, np.int64), True,
         np.zeros(8, np.uint8)),
    ]
)  # fmt: skip
def write_full(
    bits: NDArray[np.uint32],
    colors: NDArray[np.uint8],
    masks: NDArray[np.uint8],
    first: NDArray[np.int64],
    color: bool,
    out: NDArray[np.uint8],
) -> None:
    """Write nodes, the root being the last of them, into bytes; arguments as in `Nodes`, values by their bits."""
    stack = np.empty(8 * DEPTH + 8, np.int64)
    stack[0], depth, at = len(bits) - 1, 1, 0
    while depth > 0:
        depth -= 1
        node = stack[depth]
        for byte in range(4):
            out[at + byte] = (bits[node] >> np.uint32(8 * byte)) & np.uint32(255)
        at += 4
        if color:
            out[at], out[at + 1], out[at + 2] = colors[node, 0], colors[node, 1], colors[node, 2]
            at += 3
        out[at] = masks[node]
        at += 1
        children = 0
        for i in range(8):
            children += (masks[node] >> i) & 1
        for i in range(children):  # the first on top
            stack[depth] = first[node] + children - 1 - i
            depth += 1


@kernel(
    examples=lambda: [
        (np.zeros(1, np.bool_), np.zeros(1, np.uint8), np.zeros(1, np.int64), np.zeros(8, np.uint8)),
    ]
)
def write_binary(
    occupied: NDArray[np.bool_], masks: NDArray[np.uint8], first: NDArray[np.int64], out: NDArray[np.uint8]
) -> None:
    """Write nodes with children, the root being the last of them, into bytes; arguments as in `Nodes`."""
    stack = np.empty(8 * DEPTH + 8, np.int64)
    stack[0], depth, at = len(masks) - 1, 1, 0
    while depth > 0:
        depth -= 1
        node = stack[depth]
        children = 0
        for i in range(8):
            children += (masks[node] >> i) & 1
        word, child = 0, first[node] + children
        for j in range(8):
            i = 7 - j
            if (masks[node] >> i) & 1:
                child -= 1
                if masks[child] != 0:
                    word |= 3 << (2 * i)
                    stack[depth] = child
                    depth += 1
                else:
                    word |= (2 if occupied[child] else 1) << (2 * i)
        out[at], out[at + 1] = word & 255, word >> 8
        at += 2


@kernel(examples=lambda: [(np.frombuffer(b"\0", np.uint8), True)])
def read_full(
    data: NDArray[np.uint8], color: bool
) -> tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint8], int, int, int]:
    """Leaves of a full tree: codes, depths, values by their bits, colours; nodes; what is wrong, and at which byte."""
    step = 8 if color else 5
    most = len(data) // step + 1
    codes, depths = np.empty(most, np.uint64), np.empty(most, np.uint8)
    values, colors = np.empty(most, np.uint32), np.empty((most if color else 0, 3), np.uint8)
    stack_code, stack_mask = np.zeros(DEPTH + 1, np.uint64), np.zeros(DEPTH + 1, np.int64)
    leaves, nodes, at, trouble = 0, 0, 0, _FINE
    level, code = 0, np.uint64(0)  # of the node that comes next
    while True:
        if at + step > len(data):
            trouble = _TORN
            break
        bits = np.uint32(0)
        for byte in range(4):
            bits |= np.uint32(data[at + byte]) << np.uint32(8 * byte)
        if (bits >> np.uint32(23)) & np.uint32(255) == np.uint32(255):
            trouble = _NUMBER
            break
        mask = np.int64(data[at + step - 1])
        nodes += 1
        if mask != 0 and level == DEPTH:
            trouble = _DEEP
            break
        if mask == 0:
            codes[leaves], depths[leaves] = code << np.uint64(3 * (DEPTH - level)), level
            values[leaves] = bits
            if color:
                for axis in range(3):
                    colors[leaves, axis] = data[at + 4 + axis]
            leaves += 1
        at += step
        stack_code[level], stack_mask[level] = code, mask
        while level >= 0 and stack_mask[level] == 0:
            level -= 1
        if level < 0:
            break
        child = 0
        while not (stack_mask[level] >> child) & 1:
            child += 1
        stack_mask[level] &= ~(1 << child)
        code = (stack_code[level] << np.uint64(3)) | np.uint64(child)
        level += 1
    return (
        codes[:leaves].copy(), depths[:leaves].copy(), values[:leaves].copy(), colors[: leaves if color else 0].copy(),
        nodes, trouble, at,
    )  # fmt: skip


@kernel(examples=lambda: [(np.frombuffer(b"\0", np.uint8),)])
def read_binary(
    data: NDArray[np.uint8],
) -> tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.bool_], int, int, int]:
    """Leaves of a binary tree: codes, depths, which are occupied; nodes; what is wrong, and at which byte."""
    most = 4 * len(data) + 1
    codes, depths, occupied = np.empty(most, np.uint64), np.empty(most, np.uint8), np.empty(most, np.bool_)
    stack_code, stack_mask = np.zeros(DEPTH + 1, np.uint64), np.zeros(DEPTH + 1, np.int64)
    leaves, nodes, at, trouble = 0, 1, 0, _FINE
    level, code = 0, np.uint64(0)
    while True:
        if at + 2 > len(data):
            trouble = _TORN
            break
        word = np.int64(data[at]) | (np.int64(data[at + 1]) << 8)
        if level == DEPTH:
            trouble = _DEEP
            break
        if word == 0:
            trouble = _CHILDLESS
            break
        at += 2
        mask = 0
        for i in range(8):
            kind = (word >> (2 * i)) & 3
            if kind == 0:
                continue
            nodes += 1
            if kind == 3:
                mask |= 1 << i
                continue
            child = (code << np.uint64(3)) | np.uint64(i)
            codes[leaves], depths[leaves] = child << np.uint64(3 * (DEPTH - 1 - level)), level + 1
            occupied[leaves] = kind == 2
            leaves += 1
        stack_code[level], stack_mask[level] = code, mask
        while level >= 0 and stack_mask[level] == 0:
            level -= 1
        if level < 0:
            break
        child_index = 0
        while not (stack_mask[level] >> child_index) & 1:
            child_index += 1
        stack_mask[level] &= ~(1 << child_index)
        code = (stack_code[level] << np.uint64(3)) | np.uint64(child_index)
        level += 1
    order = np.argsort(codes[:leaves])
    return codes[:leaves][order], depths[:leaves][order], occupied[:leaves][order], nodes, trouble, at
