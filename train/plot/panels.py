"""Panels of a plot: which metrics are shown, their titles and number formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from bioshards.train.plot.curves import MetricPath, RunLog, number_from_value

BASELINES: Final[dict[MetricPath, MetricPath]] = {
    ("losses", "rtd"): ("metrics", "replaced_entropy"),
    ("metrics", "mlm_accuracy"): ("metrics", "mlm_baseline"),
}
"""Baseline of a loss or an accuracy: that of a model that knows only frequencies.  RTD: the loss given the
fraction of replaced tokens; MLM: the accuracy of always predicting the most frequent token."""
SMOOTHING_DIVISOR: Final = 100
"""Half the smoothing window is the number of points divided by this."""
_FRACTION_SUFFIXES: Final = (
    "accuracy",
    "baseline",
    "precision",
    "recall",
    "replaced",
    "mfu",
    "data_wait_fraction",
    "mask_rate",
)
"""Suffixes of metrics in [0, 1], which are shown in per cent."""
_METRIC_TITLES: Final[dict[MetricPath, str]] = {
    ("loss",): "loss (weighted sum)",
    ("lr",): "learning rate",
    ("grad_norm",): "gradient norm before clipping",
    ("tokens_seen",): "tokens seen",
    ("tokens_per_second",): "tokens per second",
    ("mfu",): "model FLOP/s utilisation",
    ("data_wait_fraction",): "data wait (fraction of time)",
    ("device_memory_bytes",): "peak memory of a GPU, bytes",
    ("metrics", "replaced"): "tokens replaced",
    ("elapsed_seconds",): "elapsed seconds of the last process",
}


@dataclass(frozen=True)
class Panel:
    """Panel of one metric.

    Attributes:
        scale: ``log`` is logarithmic if values span a factor of 10; ``fraction`` is shown in per cent.
        is_smoothed: True for noisy metrics.
    """

    metric: MetricPath
    unit: str = ""
    scale: Literal["log", "from zero", "fraction", "plain"] = "plain"
    is_smoothed: bool = True


def select_panels(runs: Sequence[RunLog]) -> list[Panel]:
    """Return a panel for every metric of which any run has a finite value."""
    losses = [("loss",), *_list_metrics(runs, "losses")]
    metrics = [metric for metric in _list_metrics(runs, "metrics") if metric not in BASELINES.values()]
    candidates = [
        *(Panel(metric, "nats", "log") for metric in losses),
        *(Panel(metric, scale="fraction" if is_fraction(metric) else "plain") for metric in metrics),
        Panel(("lr",), scale="from zero", is_smoothed=False),
        Panel(("grad_norm",), scale="log"),
        Panel(("tokens_per_second",), scale="from zero"),
    ]
    return [panel for panel in candidates if any(_has_values(run, panel.metric) for run in runs)]


def format_title(metric: MetricPath) -> str:
    """Return the title of a metric."""
    if metric in _METRIC_TITLES:
        return _METRIC_TITLES[metric]
    group, *_ = metric
    return f"loss: {_words_from_name(metric[-1])}" if group == "losses" else _words_from_name(metric[-1])


def format_value(metric: MetricPath, value: Any) -> str:
    """Format a value; None is a dash."""
    if value is None:
        return "–"
    if isinstance(value, bool | str) or np.isnan(numeric_value := number_from_value(value)):
        return str(value)
    if is_fraction(metric):
        return f"{100 * numeric_value:.4g} %"
    if isinstance(value, int) or metric == ("tokens_per_second",):
        return f"{value:,.0f}"
    return f"{numeric_value:.4g}"


def is_fraction(metric: MetricPath) -> bool:
    """Return True if a metric is a fraction in [0, 1]."""
    return metric[0] != "losses" and metric[-1].endswith(_FRACTION_SUFFIXES)


def _words_from_name(name: str) -> str:
    words = name.split("_")
    return " ".join(word.upper() if word in ("mlm", "rtd", "nsp", "sop") else word for word in words)


def _list_metrics(runs: Sequence[RunLog], group: str) -> list[MetricPath]:
    return list(dict.fromkeys(metric for run in runs for metric in run.list_metrics(group)))


def _has_values(run: RunLog, metric: MetricPath) -> bool:
    return any(np.isfinite(run.get_curve(split, metric)[1]).any() for split in run.entries)
