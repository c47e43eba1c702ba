"""Load a robot by name, YAML file or bare description, with its stored calibration applied."""

from __future__ import annotations

from pathlib import Path

from roboyard.bringup.catalog import find_catalog_file
from roboyard.bringup.robot_config import RobotConfig, RobotPackage
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
    """A robot's package, from its name, its YAML, or a bare description (then its nodes are derived from that).

    With ``repair`` faults of a bare description that can be mended do not keep it from being read.  The drive's stored
    calibration is in its nodes, unless ``use_calibration`` is False.

    Raises:
        UnknownNameError, InputError: as `find_catalog_file`; ConfigError, DescriptionError: the file is not right.
    """
    from roboyard.bringup.calibration_store import apply_calibration

    path = find_catalog_file("robot", name, base_folder)
    if path.suffix in (".yaml", ".yml"):
        package = load_robot_file(path)
    else:
        from roboyard.bringup.derivation import derive_package

        package = derive_package(path, arguments or {}, repair=repair)
    return apply_calibration(package) if use_calibration else package


def load_robot_file(path: Path) -> RobotPackage:
    """Read a robot's YAML.

    Raises:
        ConfigError: it cannot be read or says something it may not, or its description is not there.
    """

    document = read_yaml(path)
    config = load(RobotConfig, document)
    if config.extends is not None:
        base_path = path.parent / config.extends
        if not base_path.is_file():
            raise ConfigError(
                f"there is no file {config.extends}", location=f"{path}, extends", valid="a path beside this file"
            )
        base_config = load(RobotConfig, base_path)
        if base_config.extends is not None:
            raise ConfigError(
                f"{config.extends} extends another one", location=f"{path}, extends", valid="the file of that one"
            )
        try:
            config = config.merge_onto(base_config, document.to_data())
        except ConfigError as error:
            raise ConfigError(error.message, location=f"{path}, {error.location}", valid=error.valid) from None
    package = RobotPackage(path.stem, config, path, loader=ModelLoader(path.parent / config.description))
    if not package.description.is_file():
        raise ConfigError(
            f"there is no file {config.description}", location=f"{path}, description", valid="a path beside this file"
        )
    return package
