"""The control table: items do not overlap, and signed values survive the encoding."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from roboyard.hardware.dynamixel.control_table import (
    ITEMS,
    TABLE_SIZE,
    decode_signed_magnitude,
    encode_signed_magnitude,
)


@given(value=st.integers(-1023, 1023))
def test_signed_values_survive_the_servo_encoding(value: int) -> None:
    assert decode_signed_magnitude(encode_signed_magnitude(value)) == value


def test_control_table_items_do_not_overlap() -> None:
    addresses = [address for item in ITEMS for address in range(item.address, item.address + item.size)]
    assert len(addresses) == len(set(addresses))
    assert max(addresses) == TABLE_SIZE - 1
