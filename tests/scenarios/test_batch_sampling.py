"""Varied values of batches: distributions, designs, and one error for each mistake."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.errors import InputError
from roboyard.scenarios.batch.sampling import parse_distribution, parse_distributions, parse_scalar, plan_trials

PROBABILITIES = st.floats(0.0, 1.0, exclude_max=True)
BOUNDS = st.tuples(st.floats(0.001, 1000.0), st.floats(0.001, 1000.0)).filter(lambda b: b[0] < 0.99 * b[1])


@given(
    kind=st.sampled_from(["uniform", "loguniform"]),
    bounds=BOUNDS,
    probabilities=st.lists(PROBABILITIES, min_size=2, max_size=5),
)
def test_values_lie_within_bounds_and_increase(
    kind: str, bounds: tuple[float, float], probabilities: list[float]
) -> None:
    low, high = bounds
    sampled = parse_distribution(f"key={kind}:{low!r},{high!r}")
    values = [float(sampled.quantile(u)) for u in sorted(probabilities)]
    assert values == sorted(values)
    assert all(low * (1 - 1e-5) <= value <= high * (1 + 1e-5) for value in values)
    center = 0.5 * (low + high) if kind == "uniform" else math.sqrt(low * high)
    assert float(sampled.quantile(0.5)) == pytest.approx(center, rel=1e-5)


@given(mean=st.floats(-10, 10), deviation=st.floats(0.1, 5), u=st.floats(0.001, 0.999))
def test_normal_values_are_quantiles(mean: float, deviation: float, u: float) -> None:
    from statistics import NormalDist

    sampled = float(parse_distribution(f"k=normal:{mean!r},{deviation!r}").quantile(u))
    assert sampled == pytest.approx(NormalDist(mean, deviation).inv_cdf(u), rel=1e-5, abs=1e-4)


@given(first=st.integers(-500, 500), count=st.integers(1, 300))
def test_whole_numbers_are_equally_likely(first: int, count: int) -> None:
    sampled = parse_distribution(f"k=integer:{first},{first + count - 1}")
    values = [int(sampled.quantile((k + 0.5) / count)) for k in range(count)]
    assert values == list(range(first, first + count))


@given(runs=st.integers(1, 60), first=st.integers(0, 1000))
def test_latin_hypercube_samples_each_part_once(runs: int, first: int) -> None:
    varied = parse_distributions(["a=uniform:0,1", "b=loguniform:1,10"])
    trials = plan_trials(varied, "lhs", first, runs)
    for key, fraction in (("a", lambda v: v), ("b", math.log10)):
        parts = sorted(min(int(fraction(float(dict(t.varied_values)[key])) * runs + 1e-4), runs - 1) for t in trials)
        # values are written with six digits, so that one may fall onto the edge of its part
        assert all(abs(part - k) <= 1 for k, part in enumerate(parts))
    assert [t.seed for t in trials] == list(range(first, first + runs))


@given(runs=st.integers(1, 30), more=st.integers(0, 30), first=st.integers(0, 1000))
def test_random_values_depend_on_seed_and_key_alone(runs: int, more: int, first: int) -> None:
    trials = plan_trials(parse_distributions(["a=uniform:0,1"]), "random", first, runs)
    more_trials = plan_trials(parse_distributions(["b=x,y", "a=uniform:0,1"]), "random", first, runs + more)
    assert [dict(t.varied_values)["a"] for t in trials] == [dict(t.varied_values)["a"] for t in more_trials[:runs]]
    assert plan_trials(parse_distributions(["a=uniform:0,1"]), "random", first, runs) == trials


@given(sizes=st.lists(st.integers(2, 4), min_size=1, max_size=3), runs=st.integers(1, 3))
def test_grid_has_every_combination_with_the_same_seeds(sizes: list[int], runs: int) -> None:
    varied = parse_distributions([f"k{i}=range:0,1,{size}" for i, size in enumerate(sizes)])
    trials = plan_trials(varied, "grid", 7, runs)
    combinations = itertools.product(*(one.values for one in varied))
    assert {(t.seed, tuple(v for _, v in t.varied_values)) for t in trials} == set(
        itertools.product(range(7, 7 + runs), combinations)
    )
    assert len({t.name for t in trials}) == len(trials) == runs * math.prod(sizes)


def test_bracketed_values_stay_whole_and_numbers_are_parsed() -> None:
    assert parse_distribution("at=[1, 2],{a: [3, 4]}").values == ("[1, 2]", "{a: [3, 4]}")
    assert parse_distribution("method=own").values == ("own",)
    assert [parse_scalar(text) for text in ("3", "3.5", "own", "1e3", "nan", "[1]")] == [
        3,
        3.5,
        "own",
        1000.0,
        "nan",
        "[1]",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "has no key or no distribution"),
        ("a=", "has no key or no distribution"),
        ("=1,2", "has no key or no distribution"),
        ("a=unifrom:1,2", "no distribution 'unifrom'.*did you mean 'uniform'"),
        ("a=uniform:2,1", "uniform:low,high"), ("a=uniform:1", "uniform:low,high"),
        ("a=uniform:x,y", "uniform:low,high"),
        ("a=uniform:0,inf", "uniform:low,high"), ("a=loguniform:0,1", "0 < low"), ("a=normal:0,0", "deviation"),
        ("a=integer:1.5,3", "integer:first,last"), ("a=range:0,1", "low,high,count"),
        ("a=range:0,1,1", "low,high,count"),
        ("a=x,x", "choice:value,value"), ("a=choice:", "choice:value,value"),
    ],
)  # fmt: skip
def test_invalid_distributions_are_refused_with_the_valid_form(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"--vary.*{message}"):
        parse_distribution(text)


def test_invalid_designs_are_refused() -> None:
    with pytest.raises(InputError, match="varies twice"):
        parse_distributions(["a=1,2", "a=3,4"])
    with pytest.raises(InputError, match=r"no end of values.*range:low,high,count"):
        plan_trials(parse_distributions(["a=uniform:0,1"]), "grid", 0, 1)
    with pytest.raises(InputError, match="random, lhs, grid"):
        plan_trials(parse_distributions(["a=1,2"]), "sobol", 0, 1)  # type: ignore[arg-type]
