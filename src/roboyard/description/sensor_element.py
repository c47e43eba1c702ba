"""A `<sensor>` element with its context, and readers for noise and probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass

from roboyard.description.reader_context import ReaderContext
from roboyard.description.sensors import Noise
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import child_number, child_text, error_at, quote

_MAX_NOISE = 1e9  # in any unit


@dataclass(frozen=True, slots=True)
class SensorElement:
    """A ``<sensor>`` element and the sensor it defines.

    Attributes:
        node: The ``<sensor>``.
        body: The element of the sensor's kind inside, if there is one.
        name: Name of the sensor.
        joint: Joint that contains the sensor, if any.
        kind: Kind of the sensor.
        type_text: Type as written in the file.
    """

    node: XmlNode
    body: XmlNode | None
    name: str
    joint: str
    kind: str = ""
    type_text: str = ""


def read_noise(context: ReaderContext, node: XmlNode | None) -> Noise:
    """Read a ``<noise>`` element; None is ideal. Raises DescriptionError for a negative standard deviation."""
    if node is None:
        return Noise()
    kind = (node.get("type") or child_text(node, "type", "gaussian")).strip().lower()
    if kind == "none":
        return Noise()
    if kind not in ("gaussian", "gaussian_quantized"):
        context.warn(node, f"unknown noise type {quote(kind)}: no noise is used")
        return Noise()

    def value(tag: str, minimum: float = 0.0) -> float:
        number = child_number(node, tag, 0.0, minimum=minimum)
        if abs(number) > _MAX_NOISE:
            raise error_at(f"<{tag}> is {number:g}", node.child(tag) or node, f"at most {_MAX_NOISE:g}")
        return number

    return Noise(
        mean=value("mean", -math.inf),
        stddev=value("stddev"),
        bias_mean=value("bias_mean", -math.inf),
        bias_stddev=value("bias_stddev"),
        dynamic_bias_stddev=value("dynamic_bias_stddev"),
        dynamic_bias_correlation_time=value("dynamic_bias_correlation_time"),
        precision=value("precision") if kind == "gaussian_quantized" else 0.0,
    )


def read_probability(node: XmlNode | None, tag: str) -> float:
    """Read a number from 0 to 1 from the child; 0 without a child. Raises DescriptionError."""
    value = child_number(node, tag, 0.0, minimum=0.0)
    if value > 1.0 and node is not None:
        raise error_at(f"<{tag}> is {value:g}", node, "a probability from 0 to 1")
    return value
