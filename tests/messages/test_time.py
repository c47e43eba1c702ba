"""Conversion between nanoseconds and time or duration messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.errors import MessageError
from roboyard.messages import (
    duration_to_msg,
    time_to_msg,
    to_nanoseconds,
    type_name,
)


@given(st.integers(-(2**31) * 10**9, 2**31 * 10**9 - 1))
def test_times_convert_back_to_nanoseconds(time_ns):
    assert to_nanoseconds(time_to_msg(time_ns)) == to_nanoseconds(duration_to_msg(time_ns)) == time_ns
    assert 0 <= time_to_msg(time_ns).nanosec < 10**9
    assert type_name(duration_to_msg(time_ns)) == "builtin_interfaces/msg/Duration"


def test_stamp_out_of_range_is_refused():
    with pytest.raises(MessageError, match="out of range"):
        time_to_msg(2**31 * 10**9)
