"""Where the engine keeps a few of its numbers, so that compiled code can read them between steps.

The offsets come from the engine's own description of its structures and are checked against what its Python binding
says, so a build that lays them out otherwise is found at once.
"""

from __future__ import annotations

import ctypes
import pathlib
import re
from functools import lru_cache
from typing import Any, Final, NamedTuple

import mujoco
from mujoco.introspect import structs

from roboyard.errors import RunError

_VERSIONS: Final = "pip install 'mujoco-core>=4.0,<4.1'"
_SIMPLE: dict[str, Any] = {
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


class Layout(NamedTuple):
    """Byte offsets.

    In the engine's data: number of contacts, pointer to them, arena size and its most used part, and the first of three
    divergence counters.  Then a contact's size, its two geoms, its first solver row, its dimension, its friction
    coefficients and the regularised one.  In the engine's model the choice of solver and the bound of its iterations.
    Last what Newton's method reads: in the data the number of constraint rows and pointers to their reference
    accelerations, Jacobian, stiffness, dry friction, kinds and owners; pointers to the unconstrained accelerations, to
    the solver's starting point, and to the inertia; whether soft bodies change it; in the model its size, its sparsity,
    and its mean.  For surfaces that move or are slippery, a contact's position and frame, and in the data a pointer to
    the rows' stiffness and damping; for surfaces with a grain a pointer to the
    bodies' orientations; and where solutions go: accelerations, the rows' forces, those of the joints.

    For bodies that meet in the model pointers to the geoms' bodies, to what bodies are welded to, hang on and belong
    to, to their degrees of freedom and the first of them; in the data to speeds, to how the joints' axes turn, to the
    bodies' motions and to the centres of mass that these are about; the step; in the data a pointer to the rows'
    softness, in a contact its stiffness or time constant, and how far the two are apart.
    """

    ncon: int
    contact: int
    narena: int
    maxuse_arena: int
    diverged: int
    contact_size: int
    geom1: int
    geom2: int
    row: int
    dim: int
    friction: int
    mu: int
    solver: int
    iterations: int
    rows: int
    aref: int
    jacobian: int
    stiffness: int
    dryness: int
    kinds: int
    ids: int
    free: int
    start: int
    inertia: int
    effective: int
    dofs: int
    inertia_lengths: int
    inertia_starts: int
    inertia_columns: int
    mean_inertia: int
    position: int
    frame: int
    gains: int
    rotations: int
    accelerations: int
    efc_forces: int
    constraint_forces: int
    body_of_geom: int
    body_weld: int
    body_parent: int
    body_root: int
    body_dofs: int
    body_first_dof: int
    speeds: int
    turning_axes: int
    motions: int
    centres: int
    timestep: int
    softness: int
    bounce: int
    distance: int


@lru_cache(maxsize=1)
def library() -> str:
    """Path of the engine's shared library."""
    return str(next(pathlib.Path(mujoco.__file__).parent.glob("libmujoco.so*")))


@lru_cache(maxsize=1)
def quiet_engine() -> None:
    """Tell the engine not to write its warnings to MUJOCO_LOG.TXT in whatever folder this is, and not to time itself at
    every step (4 % of a rover's)."""
    config = _struct("mjLogConfig")()
    config.logto_console, config.logto_file = 1, 0
    set_config = ctypes.CDLL(library()).mju_setLogConfig
    set_config.argtypes, set_config.restype = [type(config)], None
    set_config(config)
    ctypes.c_void_p.in_dll(ctypes.CDLL(library()), "mjcb_time").value = None


@lru_cache(maxsize=1)
def layout() -> Layout:
    """The offsets of this build.

    Raises:
        RunError: the engine's own description does not fit what it does, or this version of it has other fields.
    """
    quiet_engine()
    try:
        found = _offsets()
    except (AttributeError, KeyError) as error:
        raise RunError(
            f"mujoco {mujoco.__version__} does not keep its numbers where compiled code reads them: {error}",
            valid=_VERSIONS,
        ) from error
    _check(found)
    return found


def _offsets() -> Layout:
    data, contact, warning = _struct("mjData"), _struct("mjContact"), _struct("mjWarningStat")
    model, option = _struct("mjModel"), _struct("mjOption")
    position = int(mujoco.mjtWarning.mjWARN_BADQPOS)  # velocity and acceleration follow
    return Layout(
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
        model.stat.offset + _struct("mjStatistic").meaninertia.offset,
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
def _struct(name: str) -> Any:
    fields = [(field.name, _ctype(str(field.type))) for field in structs.STRUCTS[name].fields]
    return type(name, (ctypes.Structure,), {"_fields_": fields})


def _ctype(text: str) -> Any:
    if text.endswith("*"):
        return ctypes.c_void_p
    array = re.fullmatch(r"(\w+) \[(\d+)\]", text)
    if array:
        return _ctype(array[1]) * int(array[2])
    if text in _SIMPLE:
        return _SIMPLE[text]
    if text in structs.STRUCTS:
        return _struct(text)
    nameless = re.fullmatch(r"struct \{(.*)\}", text)
    if nameless:
        members = re.findall(r"([^;]+?) (\w+)(?: ?\[(\d+)\])?;", nameless[1])
        fields = [(name, _ctype(kind.strip()) * int(n) if n else _ctype(kind.strip())) for kind, name, n in members]
        return type("nameless", (ctypes.Structure,), {"_fields_": fields})
    return ctypes.c_int  # an enumeration


def _check(found: Layout) -> None:
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 0.05'><freejoint/>"
        "<geom name='b' type='box' size='.1 .1 .1'/></body></worldbody></mujoco>"
    )
    model.opt.solver = mujoco.mjtSolver.mjSOL_CG
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    at_data, at_model = data._address, model._address
    contacts = _pointer(at_data + found.contact)
    geoms = data.contact.geom.__array_interface__
    stated: tuple[Any, ...] = (
        data.ncon, geoms["data"][0], geoms["strides"][0], data.narena, data.contact.geom[0].tolist(),
        int(data.contact.efc_address[-1]), int(data.contact.dim[-1]), float(data.contact.friction[-1][0]),
        float(data.contact.mu[-1]), int(model.opt.solver), int(model.opt.iterations), data.nefc, data.nefmL, model.nv,
        float(model.stat.meaninertia), float(model.opt.timestep),
        float(data.contact.solref[-1][0]), float(data.contact.pos[-1][0]), float(data.contact.frame[-1][2]),
        float(data.contact.dist[-1]),
    )  # fmt: skip
    last = contacts + (data.ncon - 1) * found.contact_size
    read: tuple[Any, ...] = (
        _int(at_data + found.ncon), contacts + found.geom1, found.contact_size,
        ctypes.c_int64.from_address(at_data + found.narena).value,
        [_int(contacts + offset) for offset in (found.geom1, found.geom2)],
        _int(last + found.row), _int(last + found.dim), _float(last + found.friction), _float(last + found.mu),
        _int(at_model + found.solver), _int(at_model + found.iterations), _int(at_data + found.rows),
        _int(at_data + found.effective), ctypes.c_int64.from_address(at_model + found.dofs).value,
        _float(at_model + found.mean_inertia), _float(at_model + found.timestep), _float(last + found.bounce),
        _float(last + found.position), _float(last + found.frame + 16), _float(last + found.distance),
    )  # fmt: skip
    arrays = {
        at_data + found.aref: data.efc_aref, at_data + found.jacobian: data.efc_J,
        at_data + found.stiffness: data.efc_D, at_data + found.dryness: data.efc_frictionloss,
        at_data + found.kinds: data.efc_type, at_data + found.ids: data.efc_id,
        at_data + found.free: data.qacc_smooth, at_data + found.start: data.qacc_warmstart,
        at_data + found.gains: data.efc_KBIP, at_data + found.rotations: data.xmat,
        at_data + found.accelerations: data.qacc, at_data + found.efc_forces: data.efc_force,
        at_data + found.constraint_forces: data.qfrc_constraint, at_data + found.inertia: data.M,
        at_data + found.softness: data.efc_R, at_data + found.speeds: data.qvel,
        at_data + found.turning_axes: data.cdof_dot,
        at_data + found.motions: data.cvel, at_data + found.centres: data.subtree_com,
        at_model + found.body_of_geom: model.geom_bodyid, at_model + found.body_weld: model.body_weldid,
        at_model + found.body_parent: model.body_parentid, at_model + found.body_root: model.body_rootid,
        at_model + found.body_dofs: model.body_dofnum, at_model + found.body_first_dof: model.body_dofadr,
        at_model + found.inertia_lengths: model.M_rownnz,
        at_model + found.inertia_starts: model.M_rowadr, at_model + found.inertia_columns: model.M_colind,
    }  # fmt: skip
    read += tuple(_pointer(place) for place in arrays)
    stated += tuple(array.__array_interface__["data"][0] for array in arrays.values())
    if read != stated:
        raise RunError(
            f"mujoco {mujoco.__version__} lays out its data otherwise than it says ({read} instead of {stated})",
            valid=_VERSIONS,
        )


def _int(address: int) -> int:
    return ctypes.c_int.from_address(address).value


def _float(address: int) -> float:
    return ctypes.c_double.from_address(address).value


def _pointer(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0
