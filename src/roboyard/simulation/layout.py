"""Where the engine keeps a few of its numbers, so that compiled code can read them between steps.

The offsets come from the engine's own description of its structures and are checked against what its Python binding
says, so a build that lays them out otherwise is found at once.
"""

from __future__ import annotations

import ctypes
import pathlib
import re
from functools import lru_cache
from typing import Any, NamedTuple

import mujoco
from mujoco.introspect import structs

from roboyard.errors import RunError

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
    """Byte offsets in the engine's data: number of contacts, pointer to them, arena size and its most used part, the
    first of three divergence counters, and the pointer to the constraints' reference accelerations; then a contact's
    size, its two geoms, its first solver row, its dimension and its friction coefficients; in the engine's model the
    choice of solver and the bound of its iterations; and in the data how many it took."""

    ncon: int
    contact: int
    narena: int
    maxuse_arena: int
    diverged: int
    aref: int
    contact_size: int
    geom1: int
    geom2: int
    row: int
    dim: int
    friction: int
    solver: int
    iterations: int
    taken: int


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
        RunError: the engine's own description does not fit what it does.
    """
    data, contact, warning = _struct("mjData"), _struct("mjContact"), _struct("mjWarningStat")
    model, option = _struct("mjModel"), _struct("mjOption")
    position = int(mujoco.mjtWarning.mjWARN_BADQPOS)  # velocity and acceleration follow
    quiet_engine()
    found = Layout(
        data.ncon.offset,
        data.contact.offset,
        data.narena.offset,
        data.maxuse_arena.offset,
        data.warning.offset + position * ctypes.sizeof(warning) + warning.number.offset,
        data.efc_aref.offset,
        ctypes.sizeof(contact),
        contact.geom.offset,
        contact.geom.offset + ctypes.sizeof(ctypes.c_int),
        contact.efc_address.offset,
        contact.dim.offset,
        contact.friction.offset,
        model.opt.offset + option.solver.offset,
        model.opt.offset + option.iterations.offset,
        data.solver_niter.offset,
    )
    _check(found)
    return found


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
    return ctypes.c_int  # an enumeration


def _check(found: Layout) -> None:
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 0.05'><freejoint/>"
        "<geom name='b' type='box' size='.1 .1 .1'/></body></worldbody></mujoco>"
    )
    model.opt.solver = mujoco.mjtSolver.mjSOL_CG
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    base = data._address
    contacts = ctypes.c_void_p.from_address(base + found.contact).value or 0
    geoms = data.contact.geom.__array_interface__
    stated = (
        data.ncon,
        geoms["data"][0],
        geoms["strides"][0],
        data.narena,
        data.contact.geom[0].tolist(),
        int(data.contact.efc_address[-1]),
        int(data.contact.dim[-1]),
        float(data.contact.friction[-1][0]),
        float(data.efc_aref[1]),
        int(model.opt.solver),
        int(model.opt.iterations),
        int(data.solver_niter[0]),
    )
    last = contacts + (data.ncon - 1) * found.contact_size
    read = (
        ctypes.c_int.from_address(base + found.ncon).value,
        contacts + found.geom1,
        found.contact_size,
        ctypes.c_int64.from_address(base + found.narena).value,
        [ctypes.c_int.from_address(contacts + offset).value for offset in (found.geom1, found.geom2)],
        ctypes.c_int.from_address(last + found.row).value,
        ctypes.c_int.from_address(last + found.dim).value,
        ctypes.c_double.from_address(last + found.friction).value,
        ctypes.c_double.from_address((ctypes.c_void_p.from_address(base + found.aref).value or 0) + 8).value,
        ctypes.c_int.from_address(model._address + found.solver).value,
        ctypes.c_int.from_address(model._address + found.iterations).value,
        ctypes.c_int.from_address(base + found.taken).value,
    )
    if read != stated:
        raise RunError(
            f"mujoco {mujoco.__version__} lays out its data otherwise than it says ({read} instead of {stated})",
            valid="the pinned version of mujoco-core",
        )
