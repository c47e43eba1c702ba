"""Quality of service as ``ros2 bag`` keeps it per recorded topic, so that playing latches what was latched."""

from __future__ import annotations

_INFINITE = "sec: 9223372036\n    nsec: 854775807"


def offered_qos_profiles(latched: bool) -> str:
    """Value of a channel's ``offered_qos_profiles``: one reliable publisher, transient local when ``latched``.

    The numbers are rmw's enumerations (history keep last = 1; reliable = 1; transient local = 1, volatile = 2;
    liveliness automatic = 1), the form that rosbag2 of Humble, Iron, Jazzy and later all read from a file whose
    ``rosbag2`` metadata record names a distribution only; the words that Jazzy itself writes stop Humble's player.
    """
    return (
        f"- history: 1\n  depth: {1 if latched else 10}\n  reliability: 1\n  durability: {1 if latched else 2}\n"
        f"  deadline:\n    {_INFINITE}\n  lifespan:\n    {_INFINITE}\n"
        f"  liveliness: 1\n  liveliness_lease_duration:\n    {_INFINITE}\n  avoid_ros_namespace_conventions: false"
    )


def is_latched(profiles: str) -> bool:
    """Whether ``offered_qos_profiles`` (numbers or words) names a transient local publisher."""
    return any(line.strip(" -") in ("durability: 1", "durability: transient_local") for line in profiles.splitlines())
