"""Where a sensor is read from, and what all kinds read alike: noise and probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass

from roboyard.description.fields import number_of, text_of
from roboyard.description.noise import Noise
from roboyard.description.reading import Reading
from roboyard.description.values import fault, shown
from roboyard.description.xml import Node

_LOUDEST = 1e9  # noise of any unit


@dataclass(frozen=True, slots=True)
class Place:
    """Where a kind is read from.

    Attributes:
        node: The ``<sensor>``.
        body: The element of its kind inside, if there is one.
        name: The sensor's name.
        joint: The joint it stands in, if any.
        kind: Of the sensor.
        written: What the file calls that kind.
    """

    node: Node
    body: Node | None
    name: str
    joint: str
    kind: str = ""
    written: str = ""


def read_noise(reading: Reading, node: Node | None) -> Noise:
    """A ``<noise>`` element; None is ideal. Raises DescriptionError for a negative spread."""
    if node is None:
        return Noise()
    kind = (node.get("type") or text_of(node, "type", "gaussian")).strip().lower()
    if kind == "none":
        return Noise()
    if kind not in ("gaussian", "gaussian_quantized"):
        reading.note(node, f"noise type {shown(kind)} is not understood: no noise")
        return Noise()

    def value(tag: str, low: float = 0.0) -> float:
        found = number_of(node, tag, 0.0, low=low)
        if abs(found) > _LOUDEST:
            raise fault(f"<{tag}> is {found:g}", node.child(tag) or node, f"at most {_LOUDEST:g}")
        return found

    return Noise(
        mean=value("mean", -math.inf),
        stddev=value("stddev"),
        bias_mean=value("bias_mean", -math.inf),
        bias_stddev=value("bias_stddev"),
        dynamic_bias_stddev=value("dynamic_bias_stddev"),
        dynamic_bias_correlation_time=value("dynamic_bias_correlation_time"),
        precision=value("precision") if kind == "gaussian_quantized" else 0.0,
    )


def probability(node: Node | None, tag: str) -> float:
    """A number from 0 to 1 in the child; 0 if there is none. Raises DescriptionError."""
    value = number_of(node, tag, 0.0, low=0.0)
    if value > 1.0 and node is not None:
        raise fault(f"<{tag}> is {value:g}", node, "a probability from 0 to 1")
    return value
