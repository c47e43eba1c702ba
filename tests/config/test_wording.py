"""Names that error messages suggest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from roboyard.config.wording import did_you_mean
from roboyard.errors import similar_names

NAMES = st.lists(st.text("abcdef_", min_size=1, max_size=8), max_size=12)


@given(st.text("abcdef_", min_size=1, max_size=8), NAMES, st.integers(1, 5), st.floats(0.0, 1.0))
def test_similar_names_are_names_that_exist_and_do_not_depend_on_their_order(
    name: str, names: list[str], count: int, cutoff: float
) -> None:
    found = similar_names(name, names, count, cutoff)
    assert len(found) <= count
    assert set(found) <= set(names)
    assert found == similar_names(name, names[::-1], count, cutoff)


@given(st.text("abcdef_", min_size=1, max_size=8), NAMES)
def test_equal_name_is_the_most_similar_one(name: str, names: list[str]) -> None:
    assert similar_names(name, [*names, name])[0] == name


@given(st.text("abcdef_", min_size=1, max_size=8), NAMES)
def test_hint_names_the_most_similar_name_or_is_empty(name: str, names: list[str]) -> None:
    found = similar_names(name, names)
    assert did_you_mean(name, names) == (f"; did you mean {found[0]!r}?" if found else "")


def test_hint_of_a_name_with_a_swapped_letter_is_the_right_name() -> None:
    assert did_you_mean("duratoin", ["distance", "duration"]) == "; did you mean 'duration'?"
