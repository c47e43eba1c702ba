"""Grasp constraints: which compliant body holds which object, the object's target pose, and the force of the grasp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry.arrays import Array
from roboyard.physics.kernels import grasps as grasp_kernels
from roboyard.physics.world import PhysicsWorld

DEFAULT_GRIP_FORCE = 60.0
"""Force of a hand that grips an object between fingers and thumb [N]: below the 100 to 110 N that adults reach with the
palm (more than 300 N with the fist; Mathiowetz et al., Grip and Pinch Strength: Normative Data for Adults, 1985)."""


@dataclass(frozen=True, slots=True)
class GraspConstraint:
    """An object that a body part grips.

    Attributes:
        model: Name of the model that grips, such as a person.
        link: Link of the model that grips, such as a hand.
        object_name: Name of the model that is gripped.
        point: Grasp point in the frame of the link [m].
        max_force: Maximum force of the grasp [N]; under a larger load the object lags behind its target.
    """

    model: str
    link: str
    object_name: str
    point: tuple[float, float, float]
    max_force: float = DEFAULT_GRIP_FORCE


class GraspConstraints:
    """All grasps of a simulation.

    Args:
        world: The world that the grasps act in, until `bind` names its successor.

    Attributes:
        table: (n, `GRASP_COLUMNS`), which the step loop reads and writes.
    """

    def __init__(self, world: PhysicsWorld) -> None:
        self._world = world
        self.table: Array = np.zeros((0, grasp_kernels.GRASP_COLUMNS))
        self._grasps: list[GraspConstraint] = []

    def grasped_objects(self, model: str) -> dict[str, str]:
        """Return the objects that a model grips, by link."""
        if not self._grasps:  # every person reads this in every step
            return {}
        return {
            grasp.link: grasp.object_name
            for grasp, row in zip(self._grasps, self.table, strict=True)
            if grasp.model == model and row[grasp_kernels.MAX_FORCE] > 0.0
        }

    def reserved_objects(self, model: str) -> dict[str, str]:
        """Return the objects that the links of a model have reserved, whether gripped or not."""
        return {grasp.link: grasp.object_name for grasp in self._grasps if grasp.model == model}

    def reserve(self, grasp: GraspConstraint) -> None:
        """Reserve an object for a hand: contacts between the person and the object exert no force from now on.

        Raises:
            UnknownNameError: no such person or object.
            InputError: the hand has reserved another object, another hand has reserved this object, or the object
                cannot be moved.
        """
        for other in self._grasps:
            if (other.model, other.link) == (grasp.model, grasp.link) and other.object_name != grasp.object_name:
                raise InputError(
                    f"{grasp.link} of {grasp.model} has reserved {other.object_name}", valid="one object for each link"
                )
            if other.object_name == grasp.object_name and (other.model, other.link) != (grasp.model, grasp.link):
                raise InputError(
                    f"{grasp.object_name} is reserved by {other.link} of {other.model}", valid="an object that is free"
                )
        if grasp not in self._grasps:
            row = self._make_row(grasp)
            self._grasps.append(grasp)
            self.table = np.concatenate([self.table, row[None]])

    def attach(self, grasp: GraspConstraint, offset: Array, orientation: Array) -> None:
        """Attach an object to a hand from now on.

        Args:
            grasp: Who, and what.
            offset: (3,) from the grasp point to the object's origin, in the world [m].
            orientation: (4,) target orientation of the object.

        Raises:
            UnknownNameError, InputError: as `reserve`.
        """
        self.reserve(grasp)
        row = self.table[self._grasps.index(grasp)]
        (
            row[grasp_kernels.OFFSET : grasp_kernels.OFFSET + 3],
            row[grasp_kernels.TARGET_ORIENTATION : grasp_kernels.TARGET_ORIENTATION + 4],
        ) = offset, orientation
        row[grasp_kernels.PREVIOUS_TARGET : grasp_kernels.PREVIOUS_TARGET + 3] = self._grasp_point(row) + offset
        row[grasp_kernels.MAX_FORCE] = grasp.max_force

    def move_target(self, model: str, link: str, offset: Array, orientation: Array) -> None:
        """Move the target pose of a held object: see `attach`. Raises UnknownNameError."""
        row = self.table[self._index_of(model, link)]
        (
            row[grasp_kernels.OFFSET : grasp_kernels.OFFSET + 3],
            row[grasp_kernels.TARGET_ORIENTATION : grasp_kernels.TARGET_ORIENTATION + 4],
        ) = offset, orientation

    def detach(self, model: str, link: str) -> None:
        """Release the object; contacts with the person exert no force until `remove`. Raises UnknownNameError."""
        row = self.table[self._index_of(model, link)]
        self._world.data.xfrc_applied[int(row[grasp_kernels.BODY])] = 0.0
        row[grasp_kernels.MAX_FORCE] = 0.0
        row[grasp_kernels.FORCE : grasp_kernels.FORCE + 3] = 0.0

    def remove(self, model: str, link: str) -> None:
        """Remove the reservation of an object; it is released first. Raises UnknownNameError."""
        index = self._index_of(model, link)
        self.detach(model, link)
        self.table = np.delete(self.table, index, axis=0)
        del self._grasps[index]

    def force(self, model: str, link: str) -> Array:
        """Return the force (3,) of the grasp on the object, in the world, without the object's weight [N].

        Raises:
            UnknownNameError: the link has not reserved an object.
        """
        return self.table[self._index_of(model, link), grasp_kernels.FORCE : grasp_kernels.FORCE + 3].copy()

    def bind(self, world: PhysicsWorld) -> None:
        """Find all addresses in ``world``, the successor of the world so far; grasps of models that it lacks end."""
        self._world = world
        models = world.compiled.addresses
        grasps, rows = [], []
        for grasp, previous_row in zip(self._grasps, self.table, strict=True):
            if grasp.model in models and grasp.object_name in models:
                row = self._make_row(grasp)
                row[grasp_kernels.OFFSET : grasp_kernels.MASS], row[grasp_kernels.MAX_FORCE :] = (
                    previous_row[grasp_kernels.OFFSET : grasp_kernels.MASS],
                    previous_row[grasp_kernels.MAX_FORCE :],
                )
                grasps.append(grasp)
                rows.append(row)
        self._grasps, self.table = grasps, np.array(rows).reshape(-1, grasp_kernels.GRASP_COLUMNS)

    def _index_of(self, model: str, link: str) -> int:
        for index, grasp in enumerate(self._grasps):
            if (grasp.model, grasp.link) == (model, link):
                return index
        descriptions = ", ".join(f"{grasp.link} of {grasp.model}" for grasp in self._grasps)
        raise UnknownNameError(
            f"link {link!r} of model {model!r} has not reserved an object",
            valid=f"links with objects: {descriptions or 'none'}",
        )

    def _make_row(self, grasp: GraspConstraint) -> Array:
        world = self._world
        part_rows = world.compliant_bodies.rows.get(grasp.model, {})
        if grasp.link not in part_rows:
            raise UnknownNameError(
                f"model {grasp.model!r} has no compliant link {grasp.link!r}",
                valid=f"compliant links: {', '.join(part_rows) or 'none'}",
            )
        qpos_address, dof_address = world.free_joint(grasp.object_name)
        addresses = world.addresses(grasp.object_name)
        body, model = addresses.links[addresses.root].body, world.model
        row = np.zeros(grasp_kernels.GRASP_COLUMNS)
        row[[grasp_kernels.PART_ROW, grasp_kernels.FIRST_PART, grasp_kernels.END_PART]] = (
            part_rows[grasp.link],
            min(part_rows.values()),
            max(part_rows.values()) + 1,
        )
        row[[grasp_kernels.BODY, grasp_kernels.QPOS_ADDRESS, grasp_kernels.DOF_ADDRESS]] = (
            body,
            qpos_address,
            dof_address,
        )
        row[grasp_kernels.GRASP_POINT : grasp_kernels.GRASP_POINT + 3] = grasp.point
        row[grasp_kernels.MASS] = model.body_subtreemass[body]
        row[grasp_kernels.WEIGHT_MASS] = row[grasp_kernels.MASS] - sum(
            model.body_mass[other] * model.body_gravcomp[other]
            for other in range(model.nbody)
            if model.body_gravcomp[other] and model.body_rootid[other] == body
        )
        matrix = np.zeros(9)
        mujoco.mju_quat2Mat(matrix, model.body_iquat[body])
        axes = matrix.reshape(3, 3)
        row[grasp_kernels.INERTIA : grasp_kernels.INERTIA + 3] = np.diag(
            axes @ np.diag(model.body_inertia[body]) @ axes.T
        )
        row[grasp_kernels.COM : grasp_kernels.COM + 3] = model.body_ipos[body]
        return row

    def _grasp_point(self, row: Array) -> Array:
        bodies, part = self._world.compliant_bodies, int(row[grasp_kernels.PART_ROW])
        matrix = np.zeros(9)
        mujoco.mju_quat2Mat(matrix, bodies.orientations[part])
        return np.asarray(
            bodies.positions[part]
            + matrix.reshape(3, 3) @ row[grasp_kernels.GRASP_POINT : grasp_kernels.GRASP_POINT + 3]
        )

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state from which `load_state` continues."""
        return {
            "grasps": [
                [grasp.model, grasp.link, grasp.object_name, list(grasp.point), grasp.max_force]
                for grasp in self._grasps
            ],
            "table": self.table.tolist(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Continue from a state of `save_state`."""
        self._grasps = [
            GraspConstraint(model, link, object_name, (x, y, z), max_force)
            for model, link, object_name, (x, y, z), max_force in saved["grasps"]
        ]
        self.table = np.array(saved["table"], float).reshape(-1, grasp_kernels.GRASP_COLUMNS)
