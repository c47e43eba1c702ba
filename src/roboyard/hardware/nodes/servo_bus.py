"""Publishes diagnostics of servos and their bus; ends the run when servos were stopped."""

from __future__ import annotations

from roboyard.bus import FAULT, Node, resource
from roboyard.config import Config, parameter
from roboyard.hardware.dynamixel.control_table import describe_errors
from roboyard.hardware.dynamixel.hardware import DynamixelHardware
from roboyard.hardware.dynamixel.thread import ServoThread
from roboyard.messages import msg
from roboyard.messages.time import time_to_msg

_OK, _WARN = 0, 1
_WARNING_MARGIN = 10.0
"""So near to its limit a servo is called warm [°C]."""


class ServoBusNodeConfig(Config):
    """Configuration of `ServoBusNode`."""

    rate: float = parameter(50.0, unit="Hz", low=1.0, high=200.0, doc="how often faults are looked for")


class ServoBusNode(Node[ServoBusNodeConfig]):
    """Publishes the state of the bus and of its servos once a second; ends the run with the reason when servos stop.

    out: /diagnostics (diagnostic_msgs/DiagnosticArray: position, load, voltage, temperature of each servo)
    """

    hardware: DynamixelHardware = resource(DynamixelHardware)
    loop: ServoThread | None = resource(ServoThread, optional=True)

    def setup(self) -> None:
        """Look at once, and before other nodes: what they would say of a stopped servo explains nothing."""
        self._publisher = self.publisher("/diagnostics", msg.DiagnosticArray)
        self.timer(rate=self.config.rate, callback=self.hardware.check, immediate=True, priority=FAULT)
        self.timer(1.0, self._publish_diagnostics)

    def _publish_diagnostics(self) -> None:
        count, loop, hardware = self.hardware.port.statistics, self.loop, self.hardware
        lost = count.timeouts + count.corrupt
        details = {
            "requests": count.sent, "timeouts": count.timeouts, "corrupt": count.corrupt,
            "latency_ms": f"{1e3 * count.mean_latency:.2f}", "max_latency_ms": f"{1e3 * count.max_latency:.2f}",
            "clamped_commands": hardware.clamped_commands,
        }  # fmt: skip
        if loop is not None and loop.cycles:
            details |= {"late_cycles": loop.late, "cycle_ms": f"{1e3 * loop.busy / loop.cycles:.2f}"}
        summary = f"{lost} of {count.sent} requests unanswered" if lost else "all servos answer"
        self.report_health("warn" if lost else "ok", summary, **details)
        message = msg.DiagnosticArray(header=msg.Header(stamp=time_to_msg(self.now_ns)))
        warning_temperature = hardware.settings.fault_limits.max_temperature - _WARNING_MARGIN
        for joint, servo in zip(hardware.servos.joints, hardware.servos.ids, strict=True):
            state = hardware.states[servo]
            is_warm = state.temperature >= warning_temperature
            values = {
                "position_ticks": state.ticks, "load": f"{state.load:.3f}", "voltage": f"{state.voltage:.1f}",
                "temperature": f"{state.temperature:.0f}",
            }  # fmt: skip
            message.status.append(
                msg.DiagnosticStatus(
                    level=_WARN if is_warm or state.errors else _OK,
                    name=f"{self.full_name}/{joint}",
                    hardware_id=str(servo),
                    message=describe_errors(state.errors) or ("warm" if is_warm else "ok"),
                    values=[msg.KeyValue(key=key, value=str(value)) for key, value in values.items()],
                )
            )
        self._publisher.publish(message)
