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

    normal_factor_a: float = parameter(
        0.000611,
        unit="m",
        low=0.0,
        high=1.0,
        doc="Coefficient a of the standard deviation along the ray, a + b (depth - c)².",
    )
    normal_factor_b: float = parameter(
        0.003587, unit="1/m", low=0.0, high=1.0, doc="Coefficient b of the standard deviation along the ray."
    )
    normal_factor_c: float = parameter(
        0.3515, unit="m", low=0.0, high=10.0, doc="Coefficient c of the standard deviation along the ray."
    )
    lateral_factor: float = parameter(
        0.0013765, low=0.0, high=1.0, doc="Standard deviation across the ray per distance."
    )
    cutoff_min_depth: float = parameter(0.2, unit="m", low=0.0, high=100.0, doc="Depth below which points are ignored.")
    cutoff_max_depth: float = parameter(
        3.0, unit="m", low=0.0, high=100.0, doc="Depth beyond which points are ignored."
    )

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

    resolution: float = parameter(0.02, unit="m", low=0.002, high=10.0, doc="Edge of a cell.")
    length_in_x: float = parameter(
        3.2, unit="m", low=0.1, high=1000.0, doc="Length along x of the window that moves with the robot."
    )
    length_in_y: float = parameter(3.2, unit="m", low=0.1, high=1000.0, doc="Length along y of that window.")
    min_variance: float = parameter(9e-6, unit="m²", low=1e-12, high=1.0, doc="Smallest variance of a height.")
    max_variance: float = parameter(
        0.01, unit="m²", low=1e-12, high=100.0, doc="Variance from which a height is forgotten."
    )
    mahalanobis_distance_threshold: float = parameter(
        2.5, low=0.1, high=100.0, doc="Distance from which heights contradict each other."
    )
    patience: int = parameter(
        3, low=1, high=1000, doc="Number of successive contradicting clouds after which a cell begins anew."
    )
    upright: float = parameter(0.87, unit="rad", low=0.01, high=1.57, doc="Slope from which a surface is not ground.")
    coverage: float = parameter(
        0.4, low=0.0, high=1.0, doc="Share of a cell's edges along which ground is seen, from which it is known."
    )
    step: float = parameter(
        0.02, unit="m", low=0.0, high=10.0, doc="Height above the ground from which something stands upright on it."
    )
    enable_visibility_cleanup: bool = parameter(True, doc="Remove what rays pass through.")
    sensor_processor: SensorProcessor = parameter(SensorProcessor(), doc="Uncertainty of the points.")

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
