"""What can go wrong with a simulated robot and the ground it stands on: sensors, joints, power, friction.

`Simulation.faults` begins and ends them; scenarios schedule them.
"""

from roboyard.simulation.faults.kinds import Fault, GroundFault, JointFault, PowerFault, SensorFault
from roboyard.simulation.faults.table import FaultTable

__all__ = ["Fault", "FaultTable", "GroundFault", "JointFault", "PowerFault", "SensorFault"]
