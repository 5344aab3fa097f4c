"""The mean: one bit of each device, whose debiased average is the average place in the range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.decode.estimates import Number
from hubbub.collector.decode.interval import exact_interval, guaranteed_error

if TYPE_CHECKING:
    from hubbub.collector.decode.noise import Noise
    from hubbub.collector.tally import Tally
    from hubbub.shared.encode import Rounding


def mean(noise: Noise, tally: Tally, encoding: Rounding, confidence: float) -> Number:
    """Estimate the mean (Ding, Kulkarni and Yekhanin 2017): bits that are averaged before they are debiased."""
    reports, count = float(tally.n.sum()), float(tally.counts.sum())
    share = (count / reports - noise.lie) / noise.slope
    low, high = exact_interval(noise, count, reports, confidence)
    error = float(np.sqrt(noise.variance(np.clip(share, 0, 1)) / noise.devices(np.array(reports))))
    reach = guaranteed_error(noise, reports, confidence)
    width = encoding.high - encoding.low
    places = [encoding.low + width * place for place in (share, low, high, share - reach, share + reach)]
    return Number(places[0], width * error, *places[1:])
