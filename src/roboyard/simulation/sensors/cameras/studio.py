"""Where the cameras of a simulation have their pictures made: a thread of its own, with the renderers.

An OpenGL context belongs to the thread that made it, so all pictures are made in one.  They are made from a copy of
the state, which the cameras take at the moment of measuring; so physics goes on meanwhile, and nothing depends on
when the thread comes to it.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.errors import RunError
from roboyard.geometry import SE3, CameraModel
from roboyard.geometry.arrays import F32, U8
from roboyard.simulation.render.bent import Bend, bend_of, bent_colour, bent_depth
from roboyard.simulation.render.bodies import geom_colours
from roboyard.simulation.render.camera import Camera, Window
from roboyard.simulation.render.opening import Backend, chosen_backend
from roboyard.simulation.sensors.cameras.light import LINEAR
from roboyard.simulation.sensors.optics import MIRROR, OPAQUE, scene_optics

if TYPE_CHECKING:
    from roboyard.simulation.render.gl import GlRenderer
    from roboyard.simulation.render.plain_rays import PlainRayRenderer
    from roboyard.simulation.scene import Posture, Scene

R = TypeVar("R")
_Order = tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]
_MOST_SIZES = 6
"""Sizes of pictures that OpenGL keeps ready."""


@dataclass(frozen=True, slots=True)
class View:
    """What one lens sees of a state.

    Attributes:
        colour: (h, w, 3).
        depth: (h, w) along the axis [m], 0: nothing there.
        returned: (h, w) share of light that surfaces throw back, negative for mirrors; None where it was not asked for.
    """

    colour: U8
    depth: F32
    returned: F32 | None = None


class Studio:
    """Makes the pictures.

    Args:
        backend: "gl", "rays", or "auto": OpenGL where it works.

    Attributes:
        backend: "gl" or "rays", once a picture was asked for.
    """

    def __init__(self, backend: Backend = "auto") -> None:
        self._wish = backend
        self._orders: SimpleQueue[_Order | None] = SimpleQueue()
        self._thread: Thread | None = None
        # Whoever drops a studio ends it: the one thing that is safe to do from a garbage collector in any thread.
        # Not when the interpreter ends: it stops the thread, which must not wake up in what is left of it.
        weakref.finalize(self, self._orders.put, None).atexit = False

    @property
    def backend(self) -> str:
        """The kind of renderer that it uses. Raises ConfigError where "gl" was asked for and does not work."""
        return chosen_backend(self._wish)

    def submit(self, work: Callable[..., R], *args: Any) -> Future[R]:
        """Have ``work(room, *args)`` done in the studio's thread; ``room.view`` makes pictures there."""
        if self._thread is None:
            self._thread = Thread(target=_serve, args=(self._orders, self.backend), name="roboyard-studio", daemon=True)
            self._thread.start()
        found: Future[R] = Future()
        self._orders.put((found, work, args))
        return found

    def close(self) -> None:
        """Free renderers and end the thread; pictures under way are finished."""
        self._orders.put(None)
        if self._thread is not None:
            self._thread.join()


def _serve(orders: SimpleQueue[_Order | None], backend: str) -> None:
    """The thread's life."""
    room = _Room(backend)
    while (order := orders.get()) is not None:
        found, work, args = order
        if not found.set_running_or_notify_cancel():
            continue
        try:
            found.set_result(work(room, *args))
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            found.set_exception(error)
        del order, found, work, args  # or the last picture would live on
    room.leave()


class _Room:
    """The renderers, in their thread."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self._scene: Scene | None = None
        self._gl: OrderedDict[tuple[int, int], GlRenderer] = OrderedDict()
        self._rays: PlainRayRenderer | None = None
        self._tables: dict[CameraModel, tuple[F32, Bend | None]] = {}

    def enter(self, scene: Scene, posture: Posture) -> None:
        """Pose the scene."""
        if scene is not self._scene:
            self.leave()
            self._scene, self._data = scene, mujoco.MjData(scene.model)
            self._return = np.append(_returned(scene), np.float32(1.0))
        posture.take(scene.model, self._data)

    @property
    def uneven(self) -> bool:
        """Whether some surfaces throw back so little or so otherwise that a projected pattern is lost on them."""
        return bool((self._return < 0.1).any())

    def view(
        self, lens: CameraModel, T_world_camera: SE3, near: float, *, colour: bool = True, returned: bool = False
    ) -> View:
        """What a lens sees of the scene that was entered last.

        Args:
            lens: The lens.
            T_world_camera: Its optical frame in the world.
            near: Nothing nearer is seen [m].
            colour: Whether the colours matter.
            returned: Whether ``View.returned`` is wanted.
        """
        rays, bend = self._table(lens)
        if self.backend == "gl" and (lens.is_undistorted or bend is not None):
            return self._drawn(lens, bend, T_world_camera, near, colour=colour, returned=returned)
        found, depth, geoms = self._caster().take(
            self._data, Camera(T_world_camera, near=near, window=Window.of(lens)), rays, colour=colour
        )
        seen = found if found is not None else np.zeros((lens.height, lens.width, 3), np.uint8)
        return View(seen, depth, self._returned(geoms) if returned else None)

    def _drawn(
        self, lens: CameraModel, bend: Bend | None, T: SE3, near: float, *, colour: bool, returned: bool
    ) -> View:
        window = Window.of(lens) if bend is None else bend.window
        width, height = (lens.width, lens.height) if bend is None else (bend.width, bend.height)
        renderer, camera = self._opened(width, height), Camera(T, near=near, window=window)
        geoms = None
        if colour:
            seen, depth = renderer.rgbd(self._data, camera)
            if bend is not None:
                seen = bent_colour(seen, bend)
        else:
            seen = np.zeros((lens.height, lens.width, 3), np.uint8)
            if returned and bend is None:
                depth, geoms = renderer.depth_and_geoms(self._data, camera)
            else:
                depth = renderer.depth(self._data, camera)
        if bend is not None:
            depth = bent_depth(depth, bend)
        if not returned:
            return View(seen, depth)
        return View(seen, depth, self._asked(lens, T, near) if geoms is None else self._returned(geoms))

    def _asked(self, lens: CameraModel, T: SE3, near: float) -> F32:
        """``View.returned`` by rays, one for each four pixels: beside colours, OpenGL would draw it all once more."""
        rays = np.ascontiguousarray(self._table(lens)[0][::2, ::2])
        _, _, geoms = self._caster().take(self._data, Camera(T, near=near), rays, colour=False)
        return self._returned(geoms).repeat(2, 0).repeat(2, 1)[: lens.height, : lens.width]

    def _returned(self, geoms: NDArray[np.int32]) -> F32:
        return self._return[geoms]  # the last is nothing's

    def _table(self, lens: CameraModel) -> tuple[F32, Bend | None]:
        if lens not in self._tables:
            rays = lens.pixel_rays().astype(np.float32)
            self._tables[lens] = rays, None if lens.is_undistorted or self.backend != "gl" else bend_of(lens, rays)
        return self._tables[lens]

    def _opened(self, width: int, height: int) -> GlRenderer:
        from roboyard.simulation.render.gl import GlRenderer

        size = width, height
        if size not in self._gl:
            if len(self._gl) >= _MOST_SIZES:
                self._gl.popitem(last=False)[1].close()
            self._gl[size] = GlRenderer(self._scene_now.model, width, height)
        self._gl.move_to_end(size)
        return self._gl[size]

    def _caster(self) -> PlainRayRenderer:
        from roboyard.simulation.render.plain_rays import PlainRayRenderer

        if self._rays is None:
            self._rays = PlainRayRenderer(self._scene_now.model)
        return self._rays

    @property
    def _scene_now(self) -> Scene:
        if self._scene is None:
            raise RunError("a picture is wanted of no scene", valid="enter one first")
        return self._scene

    def leave(self) -> None:
        """Free the renderers."""
        for renderer in self._gl.values():
            renderer.close()
        self._gl.clear()
        if self._rays is not None:
            self._rays.close()
        self._rays = self._scene = None


def _returned(scene: Scene) -> F32:
    """Share of infrared light that each geom throws back: its brightest colour's, linear; −1 for mirrors."""
    rgba = geom_colours(scene.model)
    share = LINEAR[np.round(255.0 * rgba[:, :3].max(axis=1)).astype(int)]
    optics = scene_optics(scene.assembled)
    textured = np.asarray(scene.model.geom_matid) >= 0
    if textured.any() and scene.model.ntex > 1:  # a picture's own darkness is not looked at
        share = np.where(textured, np.maximum(share, 0.2), share)
    return np.where(optics == MIRROR, np.float32(-1.0), np.where(optics == OPAQUE, share, 1.0)).astype(np.float32)
