"""``<noise>`` elements."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from roboyard.description.noise import Noise
from roboyard.description.write.written import add_child


def add_noise(parent: ET.Element, noise: Noise) -> None:
    """The noise under a channel's element; nothing where there is none."""
    if noise == Noise():
        return
    node = add_child(parent, "noise", type="gaussian_quantized" if noise.precision else "gaussian")
    for tag in (
        "mean", "stddev", "bias_mean", "bias_stddev", "dynamic_bias_stddev", "dynamic_bias_correlation_time",
        "precision",
    ):  # fmt: skip
        if getattr(noise, tag) or tag in ("mean", "stddev"):
            add_child(node, tag, getattr(noise, tag))
