"""Which quantities of a log are shown, and how they are called and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from .curves import MetricPath, RunLog, number_from_value

BASELINES: Final[dict[MetricPath, MetricPath]] = {("losses", "rtd"): ("metrics", "replaced_entropy")}
"""What a loss is compared with: here, the loss of who knows the share of replaced tokens and nothing else."""
SMOOTHING_DIVISOR: Final = 100
"""A drawn point is the mean of its neighbours on either side, a point in so many of the line's."""
_FRACTION_SUFFIXES: Final = (
    "accuracy",
    "precision",
    "recall",
    "replaced",
    "mfu",
    "data_wait_fraction",
    "mask_rate",
)
"""How the names of shares end; they are written as per cent."""
_METRIC_TITLES: Final[dict[MetricPath, str]] = {
    ("loss",): "loss (parts weighted, added up)",
    ("lr",): "learning rate",
    ("grad_norm",): "gradient norm before clipping",
    ("tokens_seen",): "tokens seen",
    ("tokens_per_second",): "tokens a second",
    ("mfu",): "model FLOP/s utilisation",
    ("data_wait_fraction",): "time spent waiting for data",
    ("metrics", "replaced"): "tokens replaced",
    ("elapsed_seconds",): "seconds of the last process",
}


@dataclass(frozen=True)
class Panel:
    """A quantity that is drawn.

    Attributes:
        scale: ``far`` may be logarithmic, ``share`` is shown as per cent.
        smoothed: noise hides its course.
    """

    metric: MetricPath
    unit: str = ""
    scale: Literal["far", "from zero", "share", "plain"] = "plain"
    is_smoothed: bool = True


def select_panels(runs: Sequence[RunLog]) -> list[Panel]:
    """A panel for every quantity that any of the runs knows a number of."""
    losses = [("loss",), *_list_metrics(runs, "losses")]
    metrics = [metric for metric in _list_metrics(runs, "metrics") if metric not in BASELINES.values()]
    candidates = [
        *(Panel(metric, "nats", "far") for metric in losses),
        *(Panel(metric, scale="share" if is_fraction(metric) else "plain") for metric in metrics),
        Panel(("lr",), scale="from zero", is_smoothed=False),
        Panel(("grad_norm",), scale="far"),
        Panel(("tokens_per_second",), scale="from zero"),
    ]
    return [panel for panel in candidates if any(_has_values(run, panel.metric) for run in runs)]


def format_title(metric: MetricPath) -> str:
    """What a quantity is called."""
    if metric in _METRIC_TITLES:
        return _METRIC_TITLES[metric]
    group, *_ = metric
    return f"loss: {_words_from_name(metric[-1])}" if group == "losses" else _words_from_name(metric[-1])


def format_value(metric: MetricPath, value: Any) -> str:
    """A value as text; a dash where there is none."""
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
    """Whether a quantity is from 0 to 1."""
    return metric[0] != "losses" and metric[-1].endswith(_FRACTION_SUFFIXES)


def _words_from_name(name: str) -> str:
    words = name.split("_")
    return " ".join(word.upper() if word in ("mlm", "rtd", "nsp", "sop") else word for word in words)


def _list_metrics(runs: Sequence[RunLog], group: str) -> list[MetricPath]:
    return list(dict.fromkeys(metric for run in runs for metric in run.list_metrics(group)))


def _has_values(run: RunLog, metric: MetricPath) -> bool:
    return any(np.isfinite(run.get_curve(split, metric)[1]).any() for split in run.entries)
