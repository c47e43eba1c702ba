"""Octrees as OctoMap has them: from voxels to the pruned tree, its leaves, and its byte stream.

Eight children of equal value become one node, and the log-odds of a parent are the largest of its children. Streams
hold the nodes depth first, each before its children. Full (``.ot``): log-odds as 32 bits, with colors three bytes more,
then a byte with a bit for each child. Binary (``.bt``): only nodes with children, two bits a child: 00 unknown, 01
free, 10 occupied, 11 has children itself (the lower bit first). Source: ``OccupancyOcTreeBase.hxx`` and
``ColorOcTree.cpp`` of OctoMap 1.10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.errors import InputError
from roboyard.mapping.octree.voxel_blocks import ORIGIN_KEY, morton_decode

VOXEL_UNKNOWN, VOXEL_FREE, VOXEL_OCCUPIED = 0, 1, 2
MAX_DENSE_VOXELS: Final = 300_000_000

DEPTH: Final = 16
"""Levels of a tree below its root, as in OctoMap: 65536 voxels along an edge."""


@dataclass(frozen=True, slots=True)
class OctreeLeaves:
    """Leaves in the order of the tree, which is that of their codes.

    Attributes:
        codes: (n,) Morton code of the lowest voxel of each.
        depths: (n,) level of each; 16 for the smallest voxel, 15 for eight of them in one, ….
        values: (n,) log-odds of being occupied.
        colors: (n, 3), white: no color; None for trees without colors.
        resolution: Edge of the smallest voxel [m].
        threshold: Log-odds from which on a leaf counts as occupied.
        n_nodes: Of the tree, those within included.
    """

    codes: NDArray[np.uint64]
    depths: NDArray[np.uint8]
    values: NDArray[np.float32]
    colors: NDArray[np.uint8] | None
    resolution: float
    threshold: float
    n_nodes: int

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def occupied(self) -> NDArray[np.bool_]:
        """Return which leaves (n,) are occupied."""
        return np.asarray(self.values >= np.float32(self.threshold))

    @property
    def edge_voxels(self) -> NDArray[np.int64]:
        """Return the edge (n,) of each leaf [smallest voxels]."""
        return np.left_shift(1, DEPTH - self.depths.astype(np.int64))

    @property
    def sizes(self) -> NDArray[np.float64]:
        """Return the edge (n,) of each leaf [m]."""
        return np.asarray(self.edge_voxels * self.resolution, dtype=np.float64)

    @property
    def keys(self) -> NDArray[np.int64]:
        """Return the key (n, 3) of the lowest voxel of each leaf."""
        return morton_decode(self.codes)

    @property
    def corners(self) -> NDArray[np.float64]:
        """Return the lowest corner (n, 3) of each leaf [m]."""
        return np.asarray((self.keys - ORIGIN_KEY) * self.resolution, dtype=np.float64)

    @property
    def centers(self) -> NDArray[np.float64]:
        """Return the center (n, 3) of each leaf [m]."""
        return np.asarray(self.corners + 0.5 * self.sizes[:, None], dtype=np.float64)

    def extent(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lowest and the highest corner (3,) of all leaves [m]; zeros without leaves."""
        if not len(self):
            return np.zeros(3), np.zeros(3)
        corners = self.corners
        return corners.min(axis=0), (corners + self.sizes[:, None]).max(axis=0)

    def volume(self, *, occupied: bool) -> float:
        """Return the volume of occupied or of free leaves [m³]."""
        is_selected = self.occupied == occupied
        return float((self.sizes[is_selected] ** 3).sum())

    def occupied_keys(self) -> NDArray[np.int64]:
        """Return the keys (n, 3) of occupied voxels, each of the smallest size."""
        is_occupied = self.occupied
        keys, edges = self.keys[is_occupied], self.edge_voxels[is_occupied]
        parts = []
        for edge in np.unique(edges):
            inside = np.indices((int(edge),) * 3).reshape(3, -1).T
            parts.append((keys[edges == edge][:, None, :] + inside[None]).reshape(-1, 3))
        return np.concatenate(parts) if parts else np.zeros((0, 3), dtype=np.int64)


def to_dense(leaves: OctreeLeaves) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Convert leaves to a dense array of the box around them.

    Returns:
        (nx, ny, nz) 0 unknown, 1 free, 2 occupied; and the key (3,) of the box's lowest voxel.

    Raises:
        InputError: The box would be too large.
    """
    keys, edges = leaves.keys, leaves.edge_voxels
    if not len(keys):
        return np.zeros((0, 0, 0), np.uint8), np.zeros(3, np.int64)
    low, high = keys.min(axis=0), (keys + edges[:, None]).max(axis=0)
    shape = tuple(int(n) for n in high - low)
    if shape[0] * shape[1] * shape[2] > MAX_DENSE_VOXELS:
        raise InputError(f"a map over {shape[0]} × {shape[1]} × {shape[2]} voxels", valid=f"at most {MAX_DENSE_VOXELS}")
    state = np.zeros(shape, np.uint8)
    fill_cubes(state, keys - low, edges, np.where(leaves.occupied, VOXEL_OCCUPIED, VOXEL_FREE).astype(np.uint8))
    return state, low


@kernel(
    examples=lambda: [
        (np.zeros((1, 1, 1), np.uint8), np.zeros((1, 3), np.int64), np.ones(1, np.int64), np.zeros(1, np.uint8)),
    ]
)
def fill_cubes(
    state: NDArray[np.uint8], keys: NDArray[np.int64], edges: NDArray[np.int64], values: NDArray[np.uint8]
) -> None:
    """Write cubes into a dense grid.

    Args:
        state: (nx, ny, nz), written.
        keys: (n, 3) lowest voxel of each.
        edges: (n,) in voxels.
        values: (n,) what to write.
    """
    for k in range(len(keys)):
        for x in range(keys[k, 0], keys[k, 0] + edges[k]):
            for y in range(keys[k, 1], keys[k, 1] + edges[k]):
                for z in range(keys[k, 2], keys[k, 2] + edges[k]):
                    state[x, y, z] = values[k]


NO_COLOR = 255


@dataclass(frozen=True, slots=True)
class PrunedOctree:
    """Nodes of a pruned tree, level by level from the voxels up to the root.

    Attributes:
        codes: (n,) Morton code among the nodes of the same level.
        values: (n,) log-odds; of a node with children the largest of theirs.
        colors: (n, 3); of a node with children the mean of theirs.
        masks: (n,) bit i for child i; 0: a leaf.
        first_children: (n,) number of the first child; the others follow it.
        levels: (n,) depth, 0 the root.
        is_pruned: (n,) whether it is gone since its parent became a leaf.
    """

    codes: NDArray[np.uint64]
    values: NDArray[np.float32]
    colors: NDArray[np.uint8]
    masks: NDArray[np.uint8]
    first_children: NDArray[np.int64]
    levels: NDArray[np.uint8]
    is_pruned: NDArray[np.bool_]

    @property
    def n_nodes(self) -> int:
        """Return the number of nodes."""
        return int(len(self.is_pruned) - np.count_nonzero(self.is_pruned))


def build_octree(codes: NDArray[np.uint64], values: NDArray[np.float32], colors: NDArray[np.uint8]) -> PrunedOctree:
    """Build the pruned tree of voxels.

    Args:
        codes: (n,) Morton codes of the voxels, ascending.
        values: (n,) their log-odds.
        colors: (n, 3) their colours.
    """
    leaf_masks, no_children = np.zeros(len(codes), np.uint8), np.zeros(len(codes), np.int64)
    parts: list[tuple[NDArray[Any], ...]] = [(codes, values, colors, leaf_masks, no_children)]
    pruned_parts: list[NDArray[np.bool_]] = []
    start = 0
    for _ in range(DEPTH if len(codes) else 0):
        children = parts[-1]
        code, value, color, mask, first, is_pruned = parent_level(
            children[0], children[1], children[2], children[3], start
        )
        pruned_parts.append(is_pruned)
        start += len(children[0])
        parts.append((code, value, color, mask, first))
    pruned_parts.append(np.zeros(len(parts[-1][0]), np.bool_))
    levels = np.concatenate([np.full(len(part[0]), DEPTH - k, np.uint8) for k, part in enumerate(parts)])
    joined = [np.concatenate([part[i] for part in parts]) for i in range(5)]
    return PrunedOctree(joined[0], joined[1], joined[2], joined[3], joined[4], levels, np.concatenate(pruned_parts))


@kernel(
    examples=lambda: [
        (np.zeros(1, np.uint64), np.zeros(1, np.float32), np.zeros((1, 3), np.uint8), np.zeros(1, np.uint8), 0),
    ]
)
def parent_level(
    codes: NDArray[np.uint64],
    values: NDArray[np.float32],
    colors: NDArray[np.uint8],
    masks: NDArray[np.uint8],
    start: int,
) -> tuple[
    NDArray[np.uint64], NDArray[np.float32], NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]
]:
    """Return the parents of the nodes of one level.

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
    n_parents = 0
    for i in range(count):
        if i == 0 or codes[i] >> np.uint64(3) != codes[i - 1] >> np.uint64(3):
            n_parents += 1
    parent_codes, value, color = (
        np.empty(n_parents, np.uint64),
        np.empty(n_parents, np.float32),
        np.empty((n_parents, 3), np.uint8),
    )
    mask, first, is_pruned = np.zeros(n_parents, np.uint8), np.empty(n_parents, np.int64), np.zeros(count, np.bool_)
    i = 0
    for parent in range(n_parents):
        first_child = i
        parent_codes[parent], first[parent] = codes[i] >> np.uint64(3), start + i
        max_value, bits, is_uniform, n_colored = values[i], np.int64(0), True, 0
        sums = np.zeros(3, np.int64)
        while i < count and codes[i] >> np.uint64(3) == parent_codes[parent]:
            bits |= np.int64(1) << np.int64(codes[i] & np.uint64(7))
            is_uniform = is_uniform and masks[i] == 0 and values[i] == values[first_child]
            max_value = max(max_value, values[i])
            if colors[i, 0] != NO_COLOR or colors[i, 1] != NO_COLOR or colors[i, 2] != NO_COLOR:
                n_colored += 1
                for axis in range(3):
                    sums[axis] += colors[i, axis]
            i += 1
        value[parent] = max_value
        for axis in range(3):
            color[parent, axis] = sums[axis] // n_colored if n_colored > 0 else NO_COLOR
        if is_uniform and bits == 255:
            is_pruned[first_child:i] = True
        else:
            mask[parent] = bits
    return parent_codes, value, color, mask, first, is_pruned


@kernel(examples=lambda: [(np.zeros(1, np.uint8), np.zeros(1, np.int64))])
def leaf_order(masks: NDArray[np.uint8], first_children: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers (n,) of the leaves in the order of the tree; arguments as in `PrunedOctree`, with the root
    last.
    """
    leaves = np.empty(len(masks), np.int64)
    if len(masks) == 0:
        return leaves
    stack = np.empty(8 * DEPTH + 8, np.int64)
    stack[0], depth, count = len(masks) - 1, 1, 0
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if masks[node] == 0:
            leaves[count] = node
            count += 1
            continue
        children = 0
        for i in range(8):
            children += (masks[node] >> i) & 1
        for i in range(children):  # the first on top
            stack[depth] = first_children[node] + children - 1 - i
            depth += 1
    return leaves[:count].copy()


MAX_TREE_BYTES: Final = 1 << 30
_PLAIN_NODE_BYTES, _COLOR_NODE_BYTES = 5, 8
_NO_ERROR, _TRUNCATED, _TOO_DEEP, _INVALID_VALUE, _NO_CHILDREN = 0, 1, 2, 3, 4
_ERROR_MESSAGES: Final = {
    _TRUNCATED: "ends within a node",
    _TOO_DEEP: f"a node has children below level {DEPTH}, the lowest",
    _INVALID_VALUE: "a node's value is no number",
    _NO_CHILDREN: "a node that should have children has none",
}


def encode_full(octree: PrunedOctree, *, color: bool) -> bytes:
    """Encode all log-odds of a tree, and its colors if they are wanted."""
    if not len(octree.codes):
        return b""
    out = np.empty(octree.n_nodes * (_COLOR_NODE_BYTES if color else _PLAIN_NODE_BYTES), dtype=np.uint8)
    bits = octree.values.view(np.uint32)
    write_full(bits, octree.colors, octree.masks, octree.first_children, color, out)
    return out.tobytes()


def encode_binary(octree: PrunedOctree) -> bytes:
    """Encode the free and the occupied leaves of a tree; its values are positive where it is occupied."""
    if not len(octree.codes):
        return b""
    out = np.empty(2 * int(np.count_nonzero(octree.masks)), dtype=np.uint8)
    write_binary(octree.values > 0, octree.masks, octree.first_children, out)
    return out.tobytes()


def decode(
    data: bytes,
    *,
    binary: bool,
    color: bool,
    resolution: float,
    threshold: float,
    free_value: float,
    occupied_value: float,
) -> OctreeLeaves:
    """Decode the leaves of a tree from its bytes.

    Args:
        data: All of them.
        binary: Two bits a child.
        color: Nodes have colours.
        resolution: Edge of the smallest voxel [m].
        threshold: Log-odds from which on a leaf is occupied.
        free_value: Log-odds of what is free in a binary tree.
        occupied_value: Log-odds of what is occupied in a binary tree.

    Raises:
        InputError: they are no tree, too many, or more than one.
    """
    if len(data) > MAX_TREE_BYTES:
        raise InputError(f"a tree of {len(data)} bytes", valid=f"at most {MAX_TREE_BYTES}")
    array = np.frombuffer(data, dtype=np.uint8)
    if not len(array):
        codes, depths, values = np.zeros(0, np.uint64), np.zeros(0, np.uint8), np.zeros(0, np.float32)
        colors, n_nodes, error, offset = np.zeros((0, 3), np.uint8), 0, _NO_ERROR, 0
    elif binary:
        codes, depths, occupied, n_nodes, error, offset = read_binary(array)
        values = np.where(occupied, np.float32(occupied_value), np.float32(free_value))
        colors = np.zeros((0, 3), np.uint8)
    else:
        codes, depths, bits, colors, n_nodes, error, offset = read_full(array, color)
        values = bits.view(np.float32)
    if error != _NO_ERROR:
        raise InputError(f"the tree's byte {offset} of {len(array)}: {_ERROR_MESSAGES[error]}", valid="a whole tree")
    if offset != len(array):
        raise InputError(f"{len(array) - offset} bytes are left behind the tree's end", valid="one tree")
    return OctreeLeaves(codes, depths, values, colors if color else None, resolution, threshold, n_nodes)


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
    first_children: NDArray[np.int64],
    color: bool,
    out: NDArray[np.uint8],
) -> None:
    """Write nodes, the root being the last of them, into bytes; arguments as in `Nodes`, values by their bits."""
    stack = np.empty(8 * DEPTH + 8, np.int64)
    stack[0], depth, offset = len(bits) - 1, 1, 0
    while depth > 0:
        depth -= 1
        node = stack[depth]
        for byte in range(4):
            out[offset + byte] = (bits[node] >> np.uint32(8 * byte)) & np.uint32(255)
        offset += 4
        if color:
            out[offset], out[offset + 1], out[offset + 2] = colors[node, 0], colors[node, 1], colors[node, 2]
            offset += 3
        out[offset] = masks[node]
        offset += 1
        children = 0
        for i in range(8):
            children += (masks[node] >> i) & 1
        for i in range(children):  # the first on top
            stack[depth] = first_children[node] + children - 1 - i
            depth += 1


@kernel(
    examples=lambda: [
        (np.zeros(1, np.bool_), np.zeros(1, np.uint8), np.zeros(1, np.int64), np.zeros(8, np.uint8)),
    ]
)
def write_binary(
    occupied: NDArray[np.bool_], masks: NDArray[np.uint8], first_children: NDArray[np.int64], out: NDArray[np.uint8]
) -> None:
    """Write nodes with children, the root being the last of them, into bytes; arguments as in `Nodes`."""
    stack = np.empty(8 * DEPTH + 8, np.int64)
    stack[0], depth, offset = len(masks) - 1, 1, 0
    while depth > 0:
        depth -= 1
        node = stack[depth]
        children = 0
        for i in range(8):
            children += (masks[node] >> i) & 1
        word, child = 0, first_children[node] + children
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
        out[offset], out[offset + 1] = word & 255, word >> 8
        offset += 2


@kernel(examples=lambda: [(np.frombuffer(b"\0", np.uint8), True)])
def read_full(
    data: NDArray[np.uint8], color: bool
) -> tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint8], int, int, int]:
    """Decode the leaves of a full tree: codes, depths, bits of the values, colors; number of nodes; error, and its
    byte.
    """
    step = 8 if color else 5
    max_leaves = len(data) // step + 1
    codes, depths = np.empty(max_leaves, np.uint64), np.empty(max_leaves, np.uint8)
    values, colors = np.empty(max_leaves, np.uint32), np.empty((max_leaves if color else 0, 3), np.uint8)
    stack_code, stack_mask = np.zeros(DEPTH + 1, np.uint64), np.zeros(DEPTH + 1, np.int64)
    n_leaves, n_nodes, offset, error = 0, 0, 0, _NO_ERROR
    level, code = 0, np.uint64(0)  # of the node that comes next
    while True:
        if offset + step > len(data):
            error = _TRUNCATED
            break
        bits = np.uint32(0)
        for byte in range(4):
            bits |= np.uint32(data[offset + byte]) << np.uint32(8 * byte)
        if (bits >> np.uint32(23)) & np.uint32(255) == np.uint32(255):
            error = _INVALID_VALUE
            break
        mask = np.int64(data[offset + step - 1])
        n_nodes += 1
        if mask != 0 and level == DEPTH:
            error = _TOO_DEEP
            break
        if mask == 0:
            codes[n_leaves], depths[n_leaves] = code << np.uint64(3 * (DEPTH - level)), level
            values[n_leaves] = bits
            if color:
                for axis in range(3):
                    colors[n_leaves, axis] = data[offset + 4 + axis]
            n_leaves += 1
        offset += step
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
        codes[:n_leaves].copy(),
        depths[:n_leaves].copy(),
        values[:n_leaves].copy(),
        colors[: n_leaves if color else 0].copy(),
        n_nodes,
        error,
        offset,
    )


@kernel(examples=lambda: [(np.frombuffer(b"\0", np.uint8),)])
def read_binary(
    data: NDArray[np.uint8],
) -> tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.bool_], int, int, int]:
    """Decode the leaves of a binary tree: codes, depths, occupied; number of nodes; error, and its byte."""
    max_leaves = 4 * len(data) + 1
    codes, depths, occupied = (
        np.empty(max_leaves, np.uint64),
        np.empty(max_leaves, np.uint8),
        np.empty(max_leaves, np.bool_),
    )
    stack_code, stack_mask = np.zeros(DEPTH + 1, np.uint64), np.zeros(DEPTH + 1, np.int64)
    n_leaves, n_nodes, offset, error = 0, 1, 0, _NO_ERROR
    level, code = 0, np.uint64(0)
    while True:
        if offset + 2 > len(data):
            error = _TRUNCATED
            break
        word = np.int64(data[offset]) | (np.int64(data[offset + 1]) << 8)
        if level == DEPTH:
            error = _TOO_DEEP
            break
        if word == 0:
            error = _NO_CHILDREN
            break
        offset += 2
        mask = 0
        for i in range(8):
            child_state = (word >> (2 * i)) & 3
            if child_state == 0:
                continue
            n_nodes += 1
            if child_state == 3:
                mask |= 1 << i
                continue
            child = (code << np.uint64(3)) | np.uint64(i)
            codes[n_leaves], depths[n_leaves] = child << np.uint64(3 * (DEPTH - 1 - level)), level + 1
            occupied[n_leaves] = child_state == 2
            n_leaves += 1
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
    order = np.argsort(codes[:n_leaves])
    return codes[:n_leaves][order], depths[:n_leaves][order], occupied[:n_leaves][order], n_nodes, error, offset
