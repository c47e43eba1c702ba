"""All settings of graph SLAM."""

from __future__ import annotations

from dataclasses import dataclass, field

from roboyard.mapping.anywhere import AnywhereConfig
from roboyard.mapping.local import LocalConfig
from roboyard.mapping.loops import LoopConfig
from roboyard.mapping.matching.refine import RefineConfig
from roboyard.mapping.motion import MotionConfig
from roboyard.mapping.optimise import OptimiseConfig
from roboyard.mapping.preparation import PreparationConfig
from roboyard.mapping.submaps import SubmapConfig


@dataclass(frozen=True, slots=True)
class GraphSlamConfig:
    """All that can be set; one set serves very different logs.

    Attributes:
        preparation: Of scans.
        refining: Of matches.
        motion: What is believed about motion.
        local: Placing scans in submaps.
        submaps: Their size.
        loops: Finding loops.
        optimising: Solving the graph.
        step: Way after which a scan becomes a node [m].
        turn: Turn after which it does [rad].
        anywhere: Finding a scan in a whole map.
        growth: The graph is solved anew when it has grown by this share since, so that solving costs the same for each
            scan, however large the map.
        rounds: Times that ``finish`` ties all submaps that overlap and solves.
        ties: Submaps tied to a node then, at most.
        patience: Scans in a row that fit nowhere, without odometry, after which a new part of the map begins.
    """

    preparation: PreparationConfig = field(default_factory=PreparationConfig)
    refining: RefineConfig = field(default_factory=RefineConfig)
    motion: MotionConfig = field(default_factory=MotionConfig)
    local: LocalConfig = field(default_factory=LocalConfig)
    submaps: SubmapConfig = field(default_factory=SubmapConfig)
    loops: LoopConfig = field(default_factory=LoopConfig)
    optimising: OptimiseConfig = field(default_factory=OptimiseConfig)
    anywhere: AnywhereConfig = field(default_factory=AnywhereConfig)
    step: float = 0.2
    turn: float = 0.15
    growth: float = 0.1
    rounds: int = 2
    ties: int = 5
    patience: int = 5
