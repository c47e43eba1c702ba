"""The engine seen from compiled code: its functions by name, its numbers by address."""

from __future__ import annotations

from typing import Any

import llvmlite.binding
import numpy as np
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.simulation.layout import Layout, library

llvmlite.binding.load_library_permanently(library())

# Fields of `Layout`, which kernels get as an array.
(
    NCON,
    CONTACTS,
    NARENA,
    MAXUSE,
    DIVERGENCE,
    CONTACT_SIZE,
    GEOM1,
    GEOM2,
    ROW,
    DIM,
    FRICTION,
    MU,
    SOLVER,
    ITERATIONS,
    ROWS,
    AREF,
    JACOBIAN,
    STIFFNESS,
    DRYNESS,
    KINDS,
    IDS,
    FREE,
    START,
    INERTIA,
    EFFECTIVE,
    DOFS,
    INERTIA_LENGTHS,
    INERTIA_STARTS,
    INERTIA_COLUMNS,
    MEAN_INERTIA,
    POSITION,
    FRAME,
    GAINS,
    ROTATIONS,
    ACCELERATIONS,
    EFC_FORCES,
    CONSTRAINT_FORCES,
    BODY_OF_GEOM,
    BODY_WELD,
    BODY_PARENT,
    BODY_ROOT,
    BODY_DOFS,
    BODY_FIRST_DOF,
    SPEEDS,
    TURNING_AXES,
    MOTIONS,
    CENTRES,
    TIMESTEP,
    SOFTNESS,
    BOUNCE,
    DISTANCE,
) = range(len(Layout._fields))


def stage(name: str) -> Any:
    """An engine function of (model, data), callable from kernels by their addresses."""
    return types.ExternalFunction(name, types.void(types.intp, types.intp))


def ray_function(name: str) -> Any:
    """An engine function of (model, data, geom, origin, direction, normal) that gives a distance, by addresses."""
    word = types.intp
    return types.ExternalFunction(name, types.float64(word, word, types.int32, word, word, word))


def object_function(name: str) -> Any:
    """An engine function of (model, data, kind, number, six numbers to be written, in its own frame), by addresses."""
    word = types.intp
    return types.ExternalFunction(name, types.void(word, word, types.int32, types.int32, word, types.int32))


@intrinsic  # type: ignore[untyped-decorator]
def at(typing: Any, address: Any) -> Any:
    """An address as a pointer to bytes."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(address), codegen


@kernel(inline="always")
def int32(address: int) -> int:
    """The number at an address."""
    return carray(at(address), (1,), np.int32)[0]  # type: ignore[no-any-return]


@kernel(inline="always")
def int64(address: int) -> int:
    """The number at an address."""
    return carray(at(address), (1,), np.int64)[0]  # type: ignore[no-any-return]


@kernel(inline="always")
def int32s(address: int, count: int) -> NDArray[np.int32]:
    """``count`` numbers at an address."""
    return carray(at(address), (count,), np.int32)  # type: ignore[no-any-return]


@kernel(inline="always")
def float64s(address: int, count: int) -> NDArray[np.float64]:
    """``count`` numbers at an address."""
    return carray(at(address), (count,), np.float64)  # type: ignore[no-any-return]


@kernel(inline="always")
def set_int32(address: int, value: int) -> None:
    """Write a number at an address."""
    carray(at(address), (1,), np.int32)[0] = value
