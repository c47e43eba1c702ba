"""Nav2's map_server and map_saver: one publishes a map from a file, the other saves published maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from roboyard.bus import Future, Node
from roboyard.config import Config, parameter
from roboyard.errors import InputError, RoboyardError
from roboyard.grids import OccupancyGrid
from roboyard.mapping.map_files import MapMode, load_map, save_map
from roboyard.messages import msg, srv
from roboyard.messages.convert.grids import occupancy_grid_from_msg, occupancy_grid_to_msg


class MapServerNodeConfig(Config):
    """Configuration of `MapServerNode`."""

    map_file: str = parameter("", doc="YAML file of the map to begin with; empty: none.")
    map_frame: str = parameter("map", doc="Frame of the map.")


class MapServerNode(Node[MapServerNodeConfig]):
    """Publishes the map of a file.

    out: map (nav_msgs/OccupancyGrid), map_metadata (nav_msgs/MapMetaData), both latched
    services: static_map, ~/map (nav_msgs/GetMap), ~/load_map (nav2_msgs/LoadMap)
    """

    state_fields = ("_path",)

    def setup(self) -> None:
        """Create publishers and services, and load the first map."""
        self._path = ""
        self._map_message: Any = None
        self._publisher = self.publisher("map", msg.OccupancyGrid, latched=True)
        self._metadata = self.publisher("map_metadata", msg.MapMetaData, latched=True)
        for name in ("static_map", "~/map"):
            self.service(name, srv.GetMap, self._on_get)
        self.service("~/load_map", srv.nav2_msgs.LoadMap, self._on_load)
        if self.config.map_file:
            self._load_and_publish(self.config.map_file)

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave: the map is read from its file again."""
        super().load_state(state)
        if self._path:
            self._map_message = occupancy_grid_to_msg(load_map(self._path), self.config.map_frame, self.now_ns)

    def _load_and_publish(self, path: str | Path) -> None:
        grid = load_map(path)
        self._path = str(path)
        self._map_message = occupancy_grid_to_msg(grid, self.config.map_frame, self.now_ns)
        self._publisher.publish(self._map_message)
        self._metadata.publish(self._map_message.info)
        rows, columns = grid.geometry.shape
        self.report_health("ok", f"map of {columns} x {rows} cells of {grid.geometry.resolution:g} m")

    def _on_get(self, request: Any) -> Any:
        if self._map_message is None:
            raise InputError("there is no map yet", location=f"node {self.full_name}", valid="load one first")
        return srv.GetMap.Response(map=self._map_message)

    def _on_load(self, request: Any) -> Any:
        response = srv.nav2_msgs.LoadMap.Response
        try:
            path = path_from_url(request.map_url)
            if not path.is_file():
                self.log.error(f"there is no map {path.name}")
                return response(result=response.RESULT_MAP_DOES_NOT_EXIST)
            self._load_and_publish(path)
        except InputError as error:
            self.log.error(f"the map was not loaded: {error.message}")
            return response(result=_result_code(error, response))
        return response(map=self._map_message, result=response.RESULT_SUCCESS)


class MapSaverNodeConfig(Config):
    """Configuration of `MapSaverNode`."""

    map_topic: str = parameter("map", runtime=True, doc="Topic of the map when the request names none.")
    save_map_timeout: float = parameter(2.0, unit="s", low=0.0, high=1e6, runtime=True, doc="Longest wait for a map.")


class MapSaverNode(Node[MapSaverNodeConfig]):
    """Saves maps of topics into files.

    services: ~/save_map (nav2_msgs/SaveMap): waits for a message on the topic it names, and writes it into files
    """

    def setup(self) -> None:
        """Create the service."""
        self.service("~/save_map", srv.nav2_msgs.SaveMap, self._on_save)

    def _on_save(self, request: Any) -> Any:
        path_from_url(request.map_url)  # refuses at once what is no file
        response = Future("saved map")
        received: list[Any] = []

        def on_map(message: Any) -> None:
            if not received:
                received.append(message)
                response.set_result(self._save(message, request))

        subscription = self.subscribe(request.map_topic or self.config.map_topic, msg.OccupancyGrid, on_map)

        def on_timeout() -> None:
            if not received:
                received.append(None)
                self.log.error("no map was published in time")
                response.set_result(srv.nav2_msgs.SaveMap.Response(result=False))
            self.release_endpoint(subscription)

        self.call_after(self.config.save_map_timeout, on_timeout)
        return response

    def _save(self, message: Any, request: Any) -> Any:
        response = srv.nav2_msgs.SaveMap.Response
        try:
            grid: OccupancyGrid = occupancy_grid_from_msg(message)
            save_requested_map(grid, request)
        except RoboyardError as error:
            self.log.error(f"the map was not saved: {error}")
            return response(result=False)
        return response(result=True)


def _result_code(error: InputError, response: Any) -> int:
    """Return the code of the service's result: the image, or the YAML file, is invalid."""
    is_image_error = error.location is not None and not error.location.split(":")[0].split(",")[0].endswith(
        (".yaml", ".yml")
    )
    return int(response.RESULT_INVALID_MAP_DATA if is_image_error else response.RESULT_INVALID_MAP_METADATA)


def path_from_url(url: str) -> Path:
    """Return the path of a service's ``map_url``: a path, also as ``file://``.

    Raises:
        InputError: another kind of address, or nothing.
    """
    path = url.removeprefix("file://")
    if not path or "://" in path or "\0" in path:
        raise InputError(f"'{url[:200]}' is no file", valid="a path, or file:///…")
    return Path(path)


def save_requested_map(grid: OccupancyGrid, request: Any) -> Path:
    """Save a map as a nav2_msgs/SaveMap request asks; what it leaves open is chosen.

    Raises:
        InputError: it cannot be written that way.
    """
    modes = {mode.value: mode for mode in MapMode}
    if request.map_mode and request.map_mode not in modes:
        raise InputError(f"no map mode '{request.map_mode[:40]}'", valid=", ".join(modes))
    mode = modes.get(request.map_mode, MapMode.TRINARY)
    is_trinary = mode is MapMode.TRINARY  # thresholds mean nothing in the other modes
    return save_map(
        path_from_url(request.map_url),
        grid,
        mode,
        image_format=request.image_format,
        occupied_thresh=_optional_threshold(request.occupied_thresh) if is_trinary else None,
        free_thresh=_optional_threshold(request.free_thresh) if is_trinary else None,
    )


def _optional_threshold(threshold: float) -> float | None:
    return round(float(threshold), 6) if threshold else None
