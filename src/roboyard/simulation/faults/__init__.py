"""What can go wrong with a simulated robot and the ground it stands on: sensors, joints, power, friction.

`Simulation.faults` begins and ends them; scenarios schedule them.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.simulation.faults.kinds import Fault, GroundFault, JointFault, PowerFault, SensorFault
    from roboyard.simulation.faults.table import FaultTable

__all__ = ["Fault", "FaultTable", "GroundFault", "JointFault", "PowerFault", "SensorFault"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "kinds": ("Fault", "GroundFault", "JointFault", "PowerFault", "SensorFault"),
    "table": ("FaultTable",),
})  # fmt: skip
