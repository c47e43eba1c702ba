"""State from one compiled world to the next, by name: what was there goes on as if nothing had happened."""

from __future__ import annotations

import mujoco

from roboyard.description.joint_interfaces import initial_positions
from roboyard.simulation.assembly import Assembled
from roboyard.simulation.loops import close_up

_WIDTHS = {  # positions and velocities of a joint, by its type
    int(mujoco.mjtJoint.mjJNT_FREE): (7, 6),
    int(mujoco.mjtJoint.mjJNT_BALL): (4, 3),
    int(mujoco.mjtJoint.mjJNT_SLIDE): (1, 1),
    int(mujoco.mjtJoint.mjJNT_HINGE): (1, 1),
}


def set_initial(assembled: Assembled, data: mujoco.MjData) -> None:
    """Put joints where their descriptions start them, or the nearest limit is; loops closed."""
    for placement in assembled.placements.values():
        model = placement.entry.model
        starts = {interface.joint: dict(interface.initial) for interface in model.interfaces}
        positions = initial_positions(model, ((place.name, place.axis.limits) for place in placement.joints))
        for place in placement.joints:
            data.qpos[place.qpos] = positions[place.name]
            data.qvel[place.dof] = starts.get(place.name, {}).get("velocity", data.qvel[place.dof])
    close_up(assembled, data)


def carry_over(old: Assembled, old_data: mujoco.MjData, new: Assembled, data: mujoco.MjData) -> None:
    """Copy positions, velocities, warm starts, controls and applied forces of everything both worlds hold."""
    for joint in range(new.model.njnt):
        name = new.model.joint(joint).name
        before = mujoco.mj_name2id(old.model, mujoco.mjtObj.mjOBJ_JOINT, name)
        if before < 0:
            continue
        positions, velocities = _WIDTHS[int(new.model.jnt_type[joint])]
        _copy(data.qpos, new.model.jnt_qposadr[joint], old_data.qpos, old.model.jnt_qposadr[before], positions)
        for field in ("qvel", "qacc_warmstart", "qfrc_applied"):
            there, here = getattr(old_data, field), getattr(data, field)
            _copy(here, new.model.jnt_dofadr[joint], there, old.model.jnt_dofadr[before], velocities)
    for actuator in range(new.model.nactuator):
        name = new.model.actuator(actuator).name
        before = mujoco.mj_name2id(old.model, mujoco.mjtObj.mjOBJ_ACTUATOR, name)
        if before >= 0:
            width = int(new.model.actuator_ctrlnum[actuator])
            source = old.model.actuator_ctrladr[before]
            _copy(data.ctrl, new.model.actuator_ctrladr[actuator], old_data.ctrl, source, width)
    for body in range(new.model.nbody):
        before = mujoco.mj_name2id(old.model, mujoco.mjtObj.mjOBJ_BODY, new.model.body(body).name)
        if before >= 0:
            data.xfrc_applied[body] = old_data.xfrc_applied[before]


def _copy(target, at, source, start, width) -> None:  # type: ignore[no-untyped-def]
    target[at : at + width] = source[start : start + width]
