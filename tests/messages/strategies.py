"""Messages of any type, from the fields its definition lists."""

import numpy as np
from hypothesis import strategies as st

from roboyard.messages import action_type, message_type, names, service_type
from roboyard.messages.layout import definition_of
from roboyard.messages.structure import DTYPES, EMPTY_MEMBER


def all_wire_types():
    """Names of everything that travels: messages, and the parts of services and actions."""
    types = names("msg")
    for name in names("srv"):
        service = service_type(name)
        types += [service.Request.__msgtype__, service.Response.__msgtype__]
    for name in names("action"):
        action = action_type(name)
        parts = [action.Goal, action.Result, action.Feedback, action.FeedbackMessage]
        parts += [
            part for service in (action.SendGoal, action.GetResult) for part in (service.Request, service.Response)
        ]
        types += [part.__msgtype__ for part in parts]
    return types


def messages(name):
    """Messages of a type, all fields drawn."""
    fields = {f.attribute: values(f) for f in definition_of(name).fields if f.name != EMPTY_MEMBER}
    return st.builds(message_type(name), **fields)


def values(field):
    if field.kind == "one":
        return single(field)
    low, high = (field.size, field.size) if field.kind == "array" else (0, min(field.size or 3, 3))
    if field.primitive:
        dtype = np.dtype(DTYPES[field.type])
        return st.binary(min_size=low * 8, max_size=high * 8).map(lambda raw: numbers(raw, dtype, low))
    return st.lists(single(field), min_size=low, max_size=high)


def numbers(raw, dtype, low):
    """An array of whatever the bytes give: every bit pattern may come, NaN aside."""
    if dtype.kind == "b":
        return (np.frombuffer(raw[:: 8 if low else 1][: max(low, 3)], np.uint8) & 1).astype(bool)
    count = len(raw) // 8
    array = np.frombuffer(raw[: count * dtype.itemsize], dtype).copy()
    return np.nan_to_num(array, nan=0.5) if dtype.kind == "f" else array


def single(field):
    if field.nested:
        return messages(field.type)
    if field.type == "string":
        return st.text(st.characters(exclude_categories=["Cs"]), max_size=min(field.bound or 6, 6)).filter(
            lambda text: not field.bound or len(text.encode()) <= field.bound
        )
    if field.type == "bool":
        return st.booleans()
    if field.type == "byte":
        return st.integers(0, 127)  # rosbags, which we compare with, takes it for signed
    if field.type == "float32":
        return st.floats(width=32, allow_nan=False)
    if field.type == "float64":
        return st.floats(allow_nan=False)
    limits = np.iinfo(DTYPES[field.type])
    return st.integers(int(limits.min), int(limits.max))
