"""Messages, services and actions of ROS 2, without ROS: one class per type, CDR serialization, conversion to arrays.

``ry.msg.Twist``, ``ry.srv.SetBool``, ``ry.action.NavigateToPose``; arrays and poses: `convert`.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.messages import action, msg, srv
    from roboyard.messages.cdr import deserialize, serialize
    from roboyard.messages.classes import (
        ActionType,
        ServiceType,
        action_type,
        full_name,
        message_type,
        register,
        register_folder,
        service_type,
        type_name,
        type_names,
    )
    from roboyard.messages.immutability import fingerprint, freeze
    from roboyard.messages.schema import schema, type_hash
    from roboyard.messages.time import duration_to_msg, time_to_msg, to_nanoseconds, to_seconds

__all__ = [
    "ActionType",
    "ServiceType",
    "action",
    "action_type",
    "deserialize",
    "duration_to_msg",
    "fingerprint",
    "freeze",
    "full_name",
    "message_type",
    "msg",
    "register",
    "register_folder",
    "schema",
    "serialize",
    "service_type",
    "srv",
    "time_to_msg",
    "to_nanoseconds",
    "to_seconds",
    "type_hash",
    "type_name",
    "type_names",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "cdr": ("deserialize", "serialize"),
    "classes": ("ActionType", "ServiceType", "action_type", "full_name", "message_type", "register",
        "register_folder", "service_type", "type_name", "type_names"),
    "immutability": ("fingerprint", "freeze"),
    "schema": ("schema", "type_hash"),
    "time": ("duration_to_msg", "time_to_msg", "to_nanoseconds", "to_seconds"),
}, submodules=("action", "msg", "srv"))  # fmt: skip
