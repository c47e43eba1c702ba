"""Values from what people type."""

from __future__ import annotations

from typing import Any


def parse(text: str) -> Any:
    """YAML on the command line as plain data; empty text is an empty mapping.

    Raises:
        ConfigError: it is no YAML.
    """
    from roboyard.config import parse_yaml

    return parse_yaml(text, "the value").to_data() if text.strip() else {}
