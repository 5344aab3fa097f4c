"""What a device spends over a year: bounds that hold, and add up."""

import math

import pytest

from hubbub.shared.bernoulli import ONE
from hubbub.shared.budget import cost_of_changes, metric_year, year
from hubbub.shared.privacy import promise
from shared.brute_force import transition
from shared.registries import example, one_metric

MINUTES = {"kind": '"mean"', "every": '"day"', "low": "0", "high": "480", "privacy": "{ report = 1, lifetime = 2 }"}
DAILY_FLAG = {"kind": '"flag"', "every": '"day"', "privacy": "{ report = 1.0, lifetime = 2.0 }"}


def test_a_year_of_the_example() -> None:
    years = {each.name: each for each in year(example().values()).metrics}
    assert (years["homepage"].reports, years["homepage"].values) == (366, 8)
    assert years["homepage"].epsilon == pytest.approx(8 * 4, abs=0.01)
    assert (years["theme"].reports, years["theme"].values) == (53, 4)
    assert years["language"].reports == years["language"].values == 1
    assert years["language"].epsilon == pytest.approx(4.3944, abs=1e-4)
    # Unlimited values: a new one every day, which costs no more than a day's report each.
    assert years["homepage_classic"].epsilon == pytest.approx(366 * 1.0743, rel=1e-3)


def test_all_metrics_together_are_the_sum() -> None:
    spent = year(example().values())
    assert spent.total.method == "basic"
    assert spent.total.epsilon == pytest.approx(sum(each.epsilon for each in spent.metrics))


def test_a_delta_buys_a_smaller_total_for_many_small_ones() -> None:
    metrics = [one_metric(**DAILY_FLAG | {"privacy": "{ report = 0.05, lifetime = 0.1 }"})] * 200
    pure, relaxed = year(metrics).total, year(metrics, 1e-6).total
    assert pure.epsilon == pytest.approx(200 * 2 * 0.1, rel=0.01)
    assert relaxed.method == "exact"
    assert relaxed.epsilon < pure.epsilon / 3
    assert set(relaxed.totals) == {"basic", "exact", "renyi", "zcdp"}


def test_a_report_may_cost_more_beside_others_than_alone_is_provided_for() -> None:
    """Per report the year counts the largest share that a report can have in any number of them."""
    for metric in example().values():
        spent = metric_year(metric)
        for reports in (1, 2, 3, 10, spent.reports):
            if reports <= spent.reports:
                assert metric.epsilon(reports) <= spent.epsilon + 1e-12


def test_two_values_cost_at_most_two_lifetimes_by_enumeration() -> None:
    """A flag that is true on some days and false on others, against the opposite: F8 of the design, w = 2."""
    metric = one_metric(**DAILY_FLAG)
    response = metric.response
    permanent = transition(response.p1, response.q1, 1)
    instantaneous = transition(response.p2, response.q2, 1)
    days = 4
    worst = 0.0
    for pattern in range(1 << days):
        for outputs in range(1 << days):
            chances = []
            for flipped in (0, 1):
                chance = 1.0
                for value in (0, 1):
                    truth = value ^ flipped
                    chance *= sum(
                        permanent[truth, remembered]
                        * math.prod(
                            instantaneous[remembered, outputs >> day & 1]
                            for day in range(days)
                            if pattern >> day & 1 == value
                        )
                        for remembered in (0, 1)
                    )
                chances.append(chance)
            worst = max(worst, abs(math.log(chances[0] / chances[1])))
    assert worst <= 2 * metric.epsilon(days) <= metric_year(metric).epsilon
    assert worst > metric.epsilon(days)


def test_the_changes_of_a_mean_cost_more_than_its_values() -> None:
    """480 and 0 in turns, against 240 every day: after 30 days the reports tell them apart by epsilon 20.9.

    480 is rounded up and 0 down, by any device; 240 is rounded up by one device in two, every day alike. The year
    printed 4.0 for it, which is the cost of the values. The cost of the changes covers it.
    """
    metric = one_metric(**MINUTES)
    response = metric.response
    p1, q1, p2, q2 = (part / ONE for part in (response.p1, response.q1, response.p2, response.q2))

    def chance(ones: int, answer: int) -> float:
        """Of some ones on 15 given days, under a permanent answer."""
        rate = p2 if answer else q2
        return rate**ones * (1 - rate) ** (15 - ones)

    def alternating(up: int, down: int) -> float:
        return (p1 * chance(up, 1) + (1 - p1) * chance(up, 0)) * (q1 * chance(down, 1) + (1 - q1) * chance(down, 0))

    def steady(up: int, down: int) -> float:
        one = (p1 + q1) / 2
        return one * chance(up, 1) * chance(down, 1) + (1 - one) * chance(up, 0) * chance(down, 0)

    worst = max(abs(math.log(alternating(up, down) / steady(up, down))) for up in range(16) for down in range(16))
    assert worst == pytest.approx(20.9, abs=0.1)
    assert metric.max_epsilon == pytest.approx(4.0, abs=1e-3)
    assert worst <= cost_of_changes(metric, 30)


def test_a_change_is_not_hidden_where_a_bit_is_never_flipped() -> None:
    assert cost_of_changes(one_metric(**DAILY_FLAG | {"privacy": "{ f = 0.5, p = 0.0, q = 0.75 }"}), 2) == math.inf
    assert cost_of_changes(example()["newcomer"], 1) == example()["newcomer"].epsilon(1)


def test_promise_holds_the_exact_numbers() -> None:
    told = promise(example()["homepage_classic"], reports=2)
    assert (told.p1, told.p1_exact) == (0.75, "49152/65536")
    assert (told.q2, told.q2_exact) == (0.5, "32768/65536")
    assert told.epsilon_report == pytest.approx(1.0743, abs=1e-4)
    assert told.epsilon_after == pytest.approx(2.017, abs=1e-3)
    assert told.epsilon_lifetime == pytest.approx(4.3944, abs=1e-4)
    assert told.variance_per_report == pytest.approx(7.875)
    assert (told.bits, told.hashes, told.cohorts, told.lifetime_values) == (128, 2, 64, None)


@pytest.mark.parametrize(
    ("name", "variance"),
    [
        ("theme", 4 * math.e / (math.e - 1) ** 2),
        ("startup_ms", 10 / 4 * 4 * math.e / (math.e - 1) ** 2),
        ("minutes_used", 1440**2 / 4 / ((1 - 2 * 0.1) * (math.e - 1) / (math.e + 1)) ** 2),
        ("newcomer", math.e / (math.e - 1) ** 2),
    ],
)
def test_variance_of_each_kind(name: str, variance: float) -> None:
    assert promise(example()[name]).variance_per_report == pytest.approx(variance, rel=1e-3)
