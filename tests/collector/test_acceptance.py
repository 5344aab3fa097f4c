"""Which reports count, and why others do not."""

from datetime import date, timedelta

import pytest

from hubbub.collector.acceptance import REASONS, Acceptance, Rejected
from hubbub.shared import Batch, Report
from shared.registries import example

TODAY = date(2026, 11, 19)  # a Thursday
MONDAY = date(2026, 11, 16)


def judge(*reports: Report, **options: int) -> list[str | None]:
    """Why each of some reports is rejected; None for those that count."""
    judged = Acceptance(example(), clock=lambda: TODAY, **options).judge(Batch("0" * 32, reports))
    reasons: list[str | None] = [None] * len(reports)
    for each in judged.rejected:
        reasons[each.index] = each.reason
    assert judged.indices == [index for index, reason in enumerate(reasons) if reason is None]
    assert judged.reports == [reports[index] for index in judged.indices]
    return reasons


def homepage(**changes: object) -> Report:
    fields = {"metric": "homepage", "version": 1, "period": TODAY, "cohort": 0, "bits": bytes(16)} | changes
    return Report(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (homepage(), None),
        (homepage(metric="nonsense"), "unknown_metric"),
        (homepage(version=2), "unknown_version"),
        (homepage(cohort=63), None),
        (homepage(cohort=64), "bad_cohort"),
        (homepage(bits=bytes(15)), "bad_bits"),
        (homepage(bits=bytes(17)), "bad_bits"),
        (homepage(metric="theme", period=MONDAY, bits=b"\x07"), None),
        (homepage(metric="theme", period=MONDAY, bits=b"\x08"), "bad_bits"),
        (homepage(metric="crashed", bits=b"\x01"), None),
        (homepage(metric="crashed", bits=b"\x01", cohort=1), "bad_cohort"),
        (homepage(metric="theme", period=TODAY, bits=b"\x01"), "bad_period"),
        (homepage(period=TODAY + timedelta(days=1)), None),
        (homepage(period=TODAY + timedelta(days=2)), "too_early"),
        (homepage(period=date.max), "too_early"),
        (homepage(metric="theme", period=date(9999, 12, 27), bits=b"\x01"), "too_early"),
        (homepage(period=date.min), "too_old"),
        (homepage(period=TODAY - timedelta(days=14)), None),
        (homepage(period=TODAY - timedelta(days=15)), "too_old"),
    ],
)
def test_a_report_counts_or_is_rejected_for_a_reason(report: Report, reason: str | None) -> None:
    assert judge(report) == [reason]


def test_a_week_is_accepted_as_long_after_its_end_as_a_day() -> None:
    """The week that began on 2 November ended on the 8th, eleven days ago; the one before ended 18 days ago."""
    weeks = [homepage(metric="theme", period=MONDAY - timedelta(days=days), bits=b"\x01") for days in (14, 21)]
    assert judge(*weeks) == [None, "too_old"]


def test_an_expired_metric_is_refused_for_periods_after_its_end_only() -> None:
    registry = example()
    late = date(2032, 1, 2)
    reports = [
        Report("language", 3, date(2032, 1, 1), 0, bytes(8)),
        Report("language", 3, date(2031, 12, 31), 0, bytes(8)),
    ]
    judged = Acceptance(registry, clock=lambda: late).judge(Batch("0" * 32, tuple(reports)))
    assert judged.rejected == [Rejected(0, "expired")]
    assert judged.reports == [reports[1]]


def test_a_device_has_one_report_for_a_metric_and_a_period() -> None:
    assert judge(homepage(), homepage(cohort=1), homepage(period=MONDAY), homepage(metric="crashed", bits=b"\0")) == [
        None,
        "repeated",
        None,
        None,
    ]


def test_a_rejected_report_does_not_stand_in_the_way_of_a_good_one() -> None:
    assert judge(homepage(cohort=64), homepage()) == ["bad_cohort", None]


def test_the_window_can_be_set() -> None:
    assert judge(homepage(period=TODAY - timedelta(days=2)), homepage(period=TODAY), days_back=1, days_ahead=0) == [
        "too_old",
        None,
    ]


def test_what_a_store_refuses_is_rejected_in_place() -> None:
    judged = Acceptance(example(), clock=lambda: TODAY).judge(
        Batch("0" * 32, (homepage(period=MONDAY), homepage(metric="nonsense"), homepage()))
    )
    judged.refuse_before(TODAY)
    assert judged.rejected == [Rejected(0, "too_old"), Rejected(1, "unknown_metric")]
    assert (judged.indices, judged.days, judged.reports) == ([2], [TODAY], [homepage()])


def test_reasons_are_words_that_clients_take() -> None:
    assert all(reason.replace("_", "").isalpha() and reason.islower() and len(reason) <= 40 for reason in REASONS)
