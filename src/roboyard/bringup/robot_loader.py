"""Load a robot by name, YAML file or bare description, with its stored calibration applied."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from roboyard.bringup.calibration_store import apply_calibration
from roboyard.bringup.catalog import NODES, ROBOTS
from roboyard.bringup.derivation import derive_package
from roboyard.bringup.robot_config import ConfigSource, RobotConfig, RobotPackage
from roboyard.config import load, read_yaml
from roboyard.description import ModelLoader
from roboyard.errors import ConfigError


def load_robot(
    name: str,
    base_folder: Path | None = None,
    arguments: dict[str, str] | None = None,
    *,
    repair: bool = False,
    use_calibration: bool = True,
) -> RobotPackage:
    """Load a robot's package: from its YAML file, or derived from a bare description.

    Args:
        name: Name of an installed robot, or path to a robot's YAML file or to a bare description.
        base_folder: Folder that a relative path starts from, before the working directory.
        arguments: Values for ``<xacro:arg>`` of a bare description.
        repair: Repair what can be repaired in a bare description, instead of refusing it.
        use_calibration: Apply the drive's stored calibration, if there is a valid one.

    Raises:
        UnknownNameError: There is no robot of this name.
        InputError: There is no such file.
        ConfigError: The YAML file or a file that it names is invalid.
        DescriptionError: A bare description is invalid.
    """
    path = ROBOTS.resolve(name, base_folder)
    if path.suffix in (".yaml", ".yml"):
        package = load_robot_file(path)
    else:
        package = derive_package(path, arguments or {}, repair=repair)
    package = replace(package, is_installed=ROBOTS.has_path(path))
    return apply_calibration(package) if use_calibration else package


def load_robot_file(path: Path) -> RobotPackage:
    """Load a robot's YAML file, without its stored calibration.

    Raises:
        ConfigError: It cannot be read or is invalid, or there is no such description.
    """
    document = read_yaml(path)
    sources: tuple[ConfigSource, ...] = (ConfigSource(document),)
    config = load(RobotConfig, document)
    if config.extends is not None:
        base_path = path.parent / config.extends
        if not base_path.is_file():
            raise ConfigError(
                f"there is no file {config.extends}", location=f"{path}, extends", valid="a path beside this file"
            )
        base_document = read_yaml(base_path)
        sources = (ConfigSource(base_document), *sources)
        base_config = load(RobotConfig, base_document)
        if base_config.extends is not None:
            raise ConfigError(
                f"{config.extends} extends a third file", location=f"{path}, extends", valid="a file without `extends`"
            )
        try:
            config = config.merge_onto(base_config, document.to_data())
        except ConfigError as error:
            location = next(filter(None, (one.locate(error.location or "") for one in reversed(sources))), str(path))
            raise ConfigError(error.message, location=location, valid=error.valid) from None
    package = RobotPackage(
        path.stem,
        config,
        path,
        loader=ModelLoader(path.parent / config.description),
        node_registry=NODES,
        config_sources=sources,
    )
    if not package.description.is_file():
        raise ConfigError(
            f"there is no file {config.description}", location=f"{path}, description", valid="a path beside this file"
        )
    return package
