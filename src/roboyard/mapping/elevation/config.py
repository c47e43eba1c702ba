"""How an elevation map learns from clouds; names are those of ANYbotics' elevation_mapping, for what is the same."""

from __future__ import annotations

from dataclasses import dataclass

from roboyard.config import check, parameter
from roboyard.errors import ConfigError


@dataclass(frozen=True)
class SensorProcessor:
    """How sure a camera of structured light is of a point (Nguyen et al., 3DIMPVT 2012; Fankhauser et al., ICAR 2015).

    The standard deviation along the ray is a + b (d - c)² at a distance d, across it lateral_factor d.

    Raises:
        ConfigError: a number out of range, or cut-offs that are not ascending.
    """

    normal_factor_a: float = parameter(0.000611, unit="m", low=0.0, high=1.0, doc="a")
    normal_factor_b: float = parameter(0.003587, unit="1/m", low=0.0, high=1.0, doc="b")
    normal_factor_c: float = parameter(0.3515, unit="m", low=0.0, high=10.0, doc="c")
    lateral_factor: float = parameter(0.0013765, low=0.0, high=1.0, doc="across the ray, of the distance")
    cutoff_min_depth: float = parameter(0.2, unit="m", low=0.0, high=100.0, doc="nearer points are left out")
    cutoff_max_depth: float = parameter(3.0, unit="m", low=0.0, high=100.0, doc="farther points are left out")

    def __post_init__(self) -> None:
        check(self, "sensor_processor")
        if not self.cutoff_min_depth < self.cutoff_max_depth:
            raise ConfigError(
                f"depths {self.cutoff_min_depth} to {self.cutoff_max_depth} m", location="sensor_processor",
                valid="ascending",
            )  # fmt: skip


@dataclass(frozen=True)
class ElevationConfig:
    """Of an `ElevationMap`.

    Raises:
        ConfigError: a number out of range, variances that are not ascending, or a map of too many cells.
    """

    resolution: float = parameter(0.02, unit="m", low=0.002, high=10.0, doc="edge of a cell")
    length_in_x: float = parameter(3.2, unit="m", low=0.1, high=1000.0, doc="of the window that goes with the robot")
    length_in_y: float = parameter(3.2, unit="m", low=0.1, high=1000.0, doc="likewise")
    min_variance: float = parameter(9e-6, unit="m²", low=1e-12, high=1.0, doc="no height is surer")
    max_variance: float = parameter(0.01, unit="m²", low=1e-12, high=100.0, doc="what is less sure is forgotten")
    mahalanobis_distance_threshold: float = parameter(2.5, low=0.1, high=100.0, doc="heights farther apart contradict")
    patience: int = parameter(
        3, low=1, high=1000, doc="after so many clouds in a row that contradict it a cell begins anew"
    )
    upright: float = parameter(0.87, unit="rad", low=0.01, high=1.57, doc="steeper surfaces are no ground")
    coverage: float = parameter(
        0.4, low=0.0, high=1.0, doc="share of a cell's edges along which ground is seen, if known"
    )
    step: float = parameter(0.02, unit="m", low=0.0, high=10.0, doc="what stands upright on ground is higher than that")
    enable_visibility_cleanup: bool = parameter(True, doc="what is seen through is gone")
    sensor_processor: SensorProcessor = parameter(SensorProcessor(), doc="how sure points are")

    def __post_init__(self) -> None:
        check(self, "elevation")
        if not self.min_variance < self.max_variance:
            raise ConfigError(
                f"variances {self.min_variance} to {self.max_variance} m²", location="elevation", valid="ascending"
            )
        if self.length_in_x * self.length_in_y > 4e6 * self.resolution**2:
            raise ConfigError(
                f"{self.length_in_x} x {self.length_in_y} m of {self.resolution} m", location="elevation",
                valid="4 million cells or fewer",
            )  # fmt: skip

    @property
    def shape(self) -> tuple[int, int]:
        """Rows along y and columns along x."""
        return max(round(self.length_in_y / self.resolution), 1), max(round(self.length_in_x / self.resolution), 1)
