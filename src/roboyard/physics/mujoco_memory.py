"""Offsets of MuJoCo's structs, and MuJoCo's functions and numbers for compiled code.

The offsets come from MuJoCo's own description of its structs. They are checked against its Python binding, so a build
with another layout is found at once.
"""

from __future__ import annotations

import ctypes
import pathlib
import re
from functools import lru_cache
from typing import Any, Final, NamedTuple

import llvmlite.binding
import mujoco
import numpy as np
from mujoco.introspect import structs
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.errors import RunError

_SUPPORTED_VERSIONS: Final = "pip install 'mujoco-core>=4.0,<4.1'"
_SCALAR_TYPES: dict[str, Any] = {
    "int": ctypes.c_int,
    "char": ctypes.c_char,
    "mjtSize": ctypes.c_int64,
    "mjtNum": ctypes.c_double,
    "mjtByte": ctypes.c_ubyte,
    "mjtBool": ctypes.c_ubyte,
    "size_t": ctypes.c_size_t,
    "uintptr_t": ctypes.c_void_p,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}


class MujocoLayout(NamedTuple):
    """Byte offsets of the fields of MuJoCo's structs that kernels read and write.

    Fields of ``mjData``: ``ncon`` to ``divergence_warnings`` (the first of three counters), ``n_rows`` to ``inertia``,
    ``n_effective_inertia``, ``row_gains`` (stiffness, damping, impedance and its derivative of each constraint row) to
    ``constraint_forces``, ``velocities`` to ``subtree_com``, ``regularization``.

    Fields of ``mjContact``: ``geom1`` to ``mu`` (``first_row`` is its first constraint row, ``mu`` the coefficient of
    the regularized cone), ``position``, ``frame``, ``solref``, ``distance``.  ``contact_size`` is the struct's size.

    Fields of ``mjModel``: ``solver``, ``iterations``, ``n_dofs`` to ``mean_inertia`` (the sparsity pattern of the
    inertia matrix, and its mean), ``body_of_geom`` to ``body_first_dof``, ``timestep``.
    """

    ncon: int
    contact: int
    narena: int
    max_arena_use: int
    divergence_warnings: int
    contact_size: int
    geom1: int
    geom2: int
    first_row: int
    dim: int
    friction: int
    mu: int
    solver: int
    iterations: int
    n_rows: int
    aref: int
    jacobian: int
    stiffness: int
    friction_loss: int
    row_types: int
    row_ids: int
    smooth_accelerations: int
    warm_start: int
    inertia: int
    n_effective_inertia: int
    n_dofs: int
    inertia_lengths: int
    inertia_starts: int
    inertia_columns: int
    mean_inertia: int
    position: int
    frame: int
    row_gains: int
    body_rotations: int
    accelerations: int
    efc_forces: int
    constraint_forces: int
    body_of_geom: int
    body_weld: int
    body_parent: int
    body_root: int
    body_dofs: int
    body_first_dof: int
    velocities: int
    axis_derivatives: int
    body_velocities: int
    subtree_com: int
    timestep: int
    regularization: int
    solref: int
    distance: int


class EngineAddresses(NamedTuple):
    """Where kernels find the model and the data of MuJoCo.

    Attributes:
        model: Address of the ``mjModel``.
        data: Address of the ``mjData``.
        layout: The offsets of `MujocoLayout`.
    """

    model: int
    data: int
    layout: NDArray[np.int64]


class StateViews(NamedTuple):
    """Views of the arrays of ``mjData`` that change in every step, and of the world's gravity.

    Attributes:
        qpos: (nq,) joint positions [rad, m], and poses of free bodies.
        qvel: (nv,) joint velocities [rad/s, m/s].
        ctrl: (nu,) controls: position, velocity and feed-forward of each servo.
        bias: (nv,) generalized forces that gravity and the velocities cause: weight, centrifugal, Coriolis and
            gyroscopic forces [N m, N].
        acceleration: (nv,) joint accelerations [rad/s², m/s²].
        applied: (bodies, 6) forces [N] and torques [N m] on the bodies' centers of mass, in the world.
        gravity: (3,) acceleration of gravity in the world [m/s²].
    """

    qpos: NDArray[np.float64]
    qvel: NDArray[np.float64]
    ctrl: NDArray[np.float64]
    bias: NDArray[np.float64]
    acceleration: NDArray[np.float64]
    applied: NDArray[np.float64]
    gravity: NDArray[np.float64]


def engine_addresses(model: mujoco.MjModel, data: mujoco.MjData) -> EngineAddresses:
    """Return the addresses of a model and its data; they are valid as long as both exist."""
    return EngineAddresses(model._address, data._address, np.array(mujoco_layout(), np.int64))


def state_views(model: mujoco.MjModel, data: mujoco.MjData) -> StateViews:
    """Return views of a state; they follow every change of it."""
    return StateViews(data.qpos, data.qvel, data.ctrl, data.qfrc_bias, data.qacc, data.xfrc_applied, model.opt.gravity)


def example_engine() -> EngineAddresses:
    """Return addresses of the right types, for the examples of kernels."""
    return EngineAddresses(0, 0, np.zeros(1, np.int64))


def example_state() -> StateViews:
    """Return arrays of the right types, for the examples of kernels."""
    numbers = np.zeros(1)
    return StateViews(numbers, numbers, numbers, numbers, numbers, np.zeros((1, 6)), np.zeros(3))


@lru_cache(maxsize=1)
def mujoco_library() -> str:
    """Path of the engine's shared library."""
    return str(next(pathlib.Path(mujoco.__file__).parent.glob("libmujoco.so*")))


@lru_cache(maxsize=1)
def configure_mujoco_logging() -> None:
    """Configure MuJoCo not to write a log file into the working folder, and not to measure the time of its functions.

    The time measurements take 4 % of a rover's step.
    """
    config = _mujoco_struct("mjLogConfig")()
    config.logto_console, config.logto_file = 1, 0
    set_config = ctypes.CDLL(mujoco_library()).mju_setLogConfig
    set_config.argtypes, set_config.restype = [type(config)], None
    set_config(config)
    ctypes.c_void_p.in_dll(ctypes.CDLL(mujoco_library()), "mjcb_time").value = None


@lru_cache(maxsize=1)
def mujoco_layout() -> MujocoLayout:
    """The offsets of this build.

    Raises:
        RunError: the engine's own description does not fit what it does, or this version of it has other fields.
    """
    configure_mujoco_logging()
    try:
        offsets = _offsets()
    except (AttributeError, KeyError) as error:
        raise RunError(
            f"mujoco {mujoco.__version__} does not keep its numbers where compiled code reads them: {error}",
            valid=_SUPPORTED_VERSIONS,
        ) from error
    _check_layout(offsets)
    return offsets


def _offsets() -> MujocoLayout:
    data, contact, warning = _mujoco_struct("mjData"), _mujoco_struct("mjContact"), _mujoco_struct("mjWarningStat")
    model, option = _mujoco_struct("mjModel"), _mujoco_struct("mjOption")
    position = int(mujoco.mjtWarning.mjWARN_BADQPOS)  # velocity and acceleration follow
    return MujocoLayout(
        data.ncon.offset,
        data.contact.offset,
        data.narena.offset,
        data.maxuse_arena.offset,
        data.warning.offset + position * ctypes.sizeof(warning) + warning.number.offset,
        ctypes.sizeof(contact),
        contact.geom.offset,
        contact.geom.offset + ctypes.sizeof(ctypes.c_int),
        contact.efc_address.offset,
        contact.dim.offset,
        contact.friction.offset,
        contact.mu.offset,
        model.opt.offset + option.solver.offset,
        model.opt.offset + option.iterations.offset,
        data.nefc.offset,
        data.efc_aref.offset,
        data.efc_J.offset,
        data.efc_D.offset,
        data.efc_frictionloss.offset,
        data.efc_type.offset,
        data.efc_id.offset,
        data.qacc_smooth.offset,
        data.qacc_warmstart.offset,
        data.M.offset,
        data.nefmL.offset,
        model.nv.offset,
        model.M_rownnz.offset,
        model.M_rowadr.offset,
        model.M_colind.offset,
        model.stat.offset + _mujoco_struct("mjStatistic").meaninertia.offset,
        contact.pos.offset,
        contact.frame.offset,
        data.efc_KBIP.offset,
        data.xmat.offset,
        data.qacc.offset,
        data.efc_force.offset,
        data.qfrc_constraint.offset,
        model.geom_bodyid.offset,
        model.body_weldid.offset,
        model.body_parentid.offset,
        model.body_rootid.offset,
        model.body_dofnum.offset,
        model.body_dofadr.offset,
        data.qvel.offset,
        data.cdof_dot.offset,
        data.cvel.offset,
        data.subtree_com.offset,
        model.opt.offset + option.timestep.offset,
        data.efc_R.offset,
        contact.solref.offset,
        contact.dist.offset,
    )


@lru_cache(maxsize=8)
def _mujoco_struct(name: str) -> Any:
    fields = [(field.name, _ctype(str(field.type))) for field in structs.STRUCTS[name].fields]
    return type(name, (ctypes.Structure,), {"_fields_": fields})


def _ctype(type_text: str) -> Any:
    if type_text.endswith("*"):
        return ctypes.c_void_p
    array = re.fullmatch(r"(\w+) \[(\d+)\]", type_text)
    if array:
        return _ctype(array[1]) * int(array[2])
    if type_text in _SCALAR_TYPES:
        return _SCALAR_TYPES[type_text]
    if type_text in structs.STRUCTS:
        return _mujoco_struct(type_text)
    anonymous = re.fullmatch(r"struct \{(.*)\}", type_text)
    if anonymous:
        members = re.findall(r"([^;]+?) (\w+)(?: ?\[(\d+)\])?;", anonymous[1])
        fields = [(name, _ctype(kind.strip()) * int(n) if n else _ctype(kind.strip())) for kind, name, n in members]
        return type("nameless", (ctypes.Structure,), {"_fields_": fields})
    return ctypes.c_int  # an enumeration


def _check_layout(layout: MujocoLayout) -> None:
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 0.05'><freejoint/>"
        "<geom name='b' type='box' size='.1 .1 .1'/></body></worldbody></mujoco>"
    )
    model.opt.solver = mujoco.mjtSolver.mjSOL_CG
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    data_address, model_address = data._address, model._address
    contacts = _read_pointer(data_address + layout.contact)
    geoms = data.contact.geom.__array_interface__
    expected: tuple[Any, ...] = (
        data.ncon, geoms["data"][0], geoms["strides"][0], data.narena, data.contact.geom[0].tolist(),
        int(data.contact.efc_address[-1]), int(data.contact.dim[-1]), float(data.contact.friction[-1][0]),
        float(data.contact.mu[-1]), int(model.opt.solver), int(model.opt.iterations), data.nefc, data.nefmL, model.nv,
        float(model.stat.meaninertia), float(model.opt.timestep),
        float(data.contact.solref[-1][0]), float(data.contact.pos[-1][0]), float(data.contact.frame[-1][2]),
        float(data.contact.dist[-1]),
    )  # fmt: skip
    last_contact = contacts + (data.ncon - 1) * layout.contact_size
    found: tuple[Any, ...] = (
        _read_int(data_address + layout.ncon),
        contacts + layout.geom1,
        layout.contact_size,
        ctypes.c_int64.from_address(data_address + layout.narena).value,
        [_read_int(contacts + offset) for offset in (layout.geom1, layout.geom2)],
        _read_int(last_contact + layout.first_row),
        _read_int(last_contact + layout.dim),
        _read_double(last_contact + layout.friction),
        _read_double(last_contact + layout.mu),
        _read_int(model_address + layout.solver),
        _read_int(model_address + layout.iterations),
        _read_int(data_address + layout.n_rows),
        _read_int(data_address + layout.n_effective_inertia),
        ctypes.c_int64.from_address(model_address + layout.n_dofs).value,
        _read_double(model_address + layout.mean_inertia),
        _read_double(model_address + layout.timestep),
        _read_double(last_contact + layout.solref),
        _read_double(last_contact + layout.position),
        _read_double(last_contact + layout.frame + 16),
        _read_double(last_contact + layout.distance),
    )
    arrays = {
        data_address + layout.aref: data.efc_aref,
        data_address + layout.jacobian: data.efc_J,
        data_address + layout.stiffness: data.efc_D,
        data_address + layout.friction_loss: data.efc_frictionloss,
        data_address + layout.row_types: data.efc_type,
        data_address + layout.row_ids: data.efc_id,
        data_address + layout.smooth_accelerations: data.qacc_smooth,
        data_address + layout.warm_start: data.qacc_warmstart,
        data_address + layout.row_gains: data.efc_KBIP,
        data_address + layout.body_rotations: data.xmat,
        data_address + layout.accelerations: data.qacc,
        data_address + layout.efc_forces: data.efc_force,
        data_address + layout.constraint_forces: data.qfrc_constraint,
        data_address + layout.inertia: data.M,
        data_address + layout.regularization: data.efc_R,
        data_address + layout.velocities: data.qvel,
        data_address + layout.axis_derivatives: data.cdof_dot,
        data_address + layout.body_velocities: data.cvel,
        data_address + layout.subtree_com: data.subtree_com,
        model_address + layout.body_of_geom: model.geom_bodyid,
        model_address + layout.body_weld: model.body_weldid,
        model_address + layout.body_parent: model.body_parentid,
        model_address + layout.body_root: model.body_rootid,
        model_address + layout.body_dofs: model.body_dofnum,
        model_address + layout.body_first_dof: model.body_dofadr,
        model_address + layout.inertia_lengths: model.M_rownnz,
        model_address + layout.inertia_starts: model.M_rowadr,
        model_address + layout.inertia_columns: model.M_colind,
    }
    found += tuple(_read_pointer(address) for address in arrays)
    expected += tuple(array.__array_interface__["data"][0] for array in arrays.values())
    if found != expected:
        raise RunError(
            f"mujoco {mujoco.__version__} lays out its data otherwise than it says ({found} instead of {expected})",
            valid=_SUPPORTED_VERSIONS,
        )


def _read_int(address: int) -> int:
    return ctypes.c_int.from_address(address).value


def _read_double(address: int) -> float:
    return ctypes.c_double.from_address(address).value


def _read_pointer(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0


llvmlite.binding.load_library_permanently(mujoco_library())

# Fields of `MujocoLayout`, which kernels get as an array.
(
    NCON,
    CONTACTS,
    NARENA,
    MAX_ARENA_USE,
    DIVERGENCE_WARNINGS,
    CONTACT_SIZE,
    GEOM1,
    GEOM2,
    FIRST_ROW,
    DIM,
    FRICTION,
    MU,
    SOLVER,
    SOLVER_ITERATIONS,
    N_ROWS,
    AREF,
    JACOBIAN,
    STIFFNESS,
    FRICTION_LOSS,
    ROW_TYPES,
    ROW_IDS,
    SMOOTH_ACCELERATIONS,
    WARM_START,
    INERTIA,
    N_EFFECTIVE_INERTIA,
    N_DOFS,
    INERTIA_LENGTHS,
    INERTIA_STARTS,
    INERTIA_COLUMNS,
    MEAN_INERTIA,
    POSITION,
    FRAME,
    ROW_GAINS,
    BODY_ROTATIONS,
    ACCELERATIONS,
    EFC_FORCES,
    CONSTRAINT_FORCES,
    BODY_OF_GEOM,
    BODY_WELD,
    BODY_PARENT,
    BODY_ROOT,
    BODY_DOFS,
    BODY_FIRST_DOF,
    VELOCITIES,
    AXIS_DERIVATIVES,
    BODY_VELOCITIES,
    SUBTREE_COM,
    TIMESTEP,
    REGULARIZATION,
    SOLREF,
    DISTANCE,
) = range(len(MujocoLayout._fields))


def mujoco_pipeline_function(name: str) -> Any:
    """An engine function of (model, data), callable from kernels by their addresses."""
    return types.ExternalFunction(name, types.void(types.intp, types.intp))


def mujoco_ray_function(name: str) -> Any:
    """An engine function of (model, data, geom, origin, direction, normal) that gives a distance, by addresses."""
    word = types.intp
    return types.ExternalFunction(name, types.float64(word, word, types.int32, word, word, word))


def mujoco_object_function(name: str) -> Any:
    """An engine function of (model, data, kind, number, six numbers to be written, in its own frame), by addresses."""
    word = types.intp
    return types.ExternalFunction(name, types.void(word, word, types.int32, types.int32, word, types.int32))


@intrinsic  # type: ignore[untyped-decorator]
def _to_pointer(typing: Any, address: Any) -> Any:
    """An address as a pointer to bytes."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(address), codegen


@kernel(inline="always")
def read_int32(address: int) -> int:
    """The number at an address."""
    return carray(_to_pointer(address), (1,), np.int32)[0]  # type: ignore[no-any-return]


@kernel(inline="always")
def read_int64(address: int) -> int:
    """The number at an address."""
    return carray(_to_pointer(address), (1,), np.int64)[0]  # type: ignore[no-any-return]


@kernel(inline="always")
def view_int32(address: int, count: int) -> NDArray[np.int32]:
    """``count`` numbers at an address."""
    return carray(_to_pointer(address), (count,), np.int32)  # type: ignore[no-any-return]


@kernel(inline="always")
def view_float64(address: int, count: int) -> NDArray[np.float64]:
    """``count`` numbers at an address."""
    return carray(_to_pointer(address), (count,), np.float64)  # type: ignore[no-any-return]


@kernel(inline="always")
def write_int32(address: int, value: int) -> None:
    """Write a number at an address."""
    carray(_to_pointer(address), (1,), np.int32)[0] = value
