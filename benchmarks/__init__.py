"""Benchmarks: ratios measured side by side in one run, because machines are noisy and absolute numbers age."""
