"""Messages from the command line into a live run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from roboyard.cli.lookup import LiveSource, absolute, new_name
from roboyard.cli.values import parse
from roboyard.errors import InputError
from roboyard.messages.from_data import message_from_data

if TYPE_CHECKING:
    from collections.abc import Iterator

_TYPE = re.compile(r"[A-Za-z]\w*(/\w+){0,2}")


def type_and_values(words: Sequence[str]) -> tuple[str | None, Any]:
    """What ``[TYPE] [VALUES]`` on the command line say.

    Raises:
        InputError: more than two words.
        ConfigError: the values are no YAML.
    """
    rest = list(words)
    kind = rest.pop(0) if rest and _TYPE.fullmatch(rest[0]) else None
    if len(rest) > 1:
        raise InputError(f"{len(words)} words after the name", valid="a type and values, the values in quotes")
    return kind, parse(rest[0]) if rest else {}


def message_for(source: LiveSource, topic: str, words: Sequence[str]) -> tuple[str, Any]:
    """Absolute name of the topic, and the message to publish on it.

    Raises:
        InputError: the topic is new and no type is named or its name is none, or it carries another type.
        MessageError: unknown type, or values that do not fit.
    """
    from roboyard.messages import full_name, message_type

    name = absolute(topic)
    kind, data = type_and_values(words)
    carried = {view.name: view.type for view in source.topics()}.get(name)
    if kind is None and carried is None:
        raise InputError(f"topic {name} is new and has no type", location=source.where, valid=f"pub {name} TYPE VALUES")
    if carried is None:
        new_name(topic)
    wanted = full_name(kind) if kind is not None else str(carried)
    if carried is not None and wanted != carried:
        raise InputError(f"topic {name} carries {carried}, not {wanted}", location=source.where)
    return name, message_from_data(message_type(wanted), data)


def repeat(source: LiveSource, topic: str, message: Any, publisher: str, rate: float, times: int | None) -> int:
    """Publish until ``times`` is reached, the run ends, or somebody interrupts; gives how often.

    Args:
        source: The run.
        topic: Absolute name.
        message: What.
        publisher: In whose name.
        rate: Per simulated second; kept on average, since the run's clock is heard ten times a second.
        times: How often; None for no end.

    Raises:
        InputError: the rate is not positive.
    """
    if not rate > 0.0:
        raise InputError(f"rate {rate:g}", location="--rate", valid="more than 0 Hz")
    source.connection.publish(topic, message, publisher)
    sent = 1
    if times != 1:
        for due in _ticks(source, rate):
            for _ in range(due if times is None else min(due, times - sent)):
                source.connection.publish(topic, message, publisher)
                sent += 1
            if sent == times:
                break
    if sent == times:
        source.connection.graph()  # the answer shows that everything before it has arrived
    return sent


def _ticks(source: LiveSource, rate: float) -> Iterator[int]:
    """At each tick of the run's clock, how many periods have passed since the one before."""
    start_ns: int | None = None
    told = 0
    for heard in source.messages(["/clock"]):
        start_ns = heard.time_ns if start_ns is None else start_ns
        passed = int((heard.time_ns - start_ns) * 1e-9 * rate)
        yield passed - told
        told = passed
