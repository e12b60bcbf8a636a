"""Which quantities of a log are shown, and how they are called and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from .curves import Place, Run, number

CHANCE: Final[dict[Place, Place]] = {("losses", "rtd"): ("figures", "replaced_entropy")}
"""What a loss is compared with: here, the loss of who knows the share of replaced tokens and nothing else."""
SMOOTHED: Final = 100
"""A drawn point is the mean of its neighbours on either side, a point in so many of the line's."""
_SHARES: Final = ("accuracy", "precision", "recall", "replaced", "mfu", "waiting", "mask_rate")
"""How the names of shares end; they are written as per cent."""
_NAMES: Final[dict[Place, str]] = {
    ("loss",): "loss (parts weighted, added up)",
    ("lr",): "learning rate",
    ("grad_norm",): "gradient norm before clipping",
    ("tokens",): "tokens seen",
    ("tokens_per_s",): "tokens a second",
    ("mfu",): "model FLOP/s utilisation",
    ("waiting",): "time spent waiting for data",
    ("figures", "replaced"): "tokens replaced",
    ("seconds",): "seconds of the last process",
}


@dataclass(frozen=True)
class Panel:
    """A quantity that is drawn.

    Attributes:
        scale: ``far`` may be logarithmic, ``share`` is shown as per cent.
        smoothed: noise hides its course.
    """

    place: Place
    unit: str = ""
    scale: Literal["far", "from zero", "share", "plain"] = "plain"
    smoothed: bool = True


def panels(runs: Sequence[Run]) -> list[Panel]:
    """A panel for every quantity that any of the runs knows a number of."""
    losses = [("loss",), *_places(runs, "losses")]
    figures = [place for place in _places(runs, "figures") if place not in CHANCE.values()]
    found = [
        *(Panel(place, "nats", "far") for place in losses),
        *(Panel(place, scale="share" if is_share(place) else "plain") for place in figures),
        Panel(("lr",), scale="from zero", smoothed=False),
        Panel(("grad_norm",), scale="far"),
        Panel(("tokens_per_s",), scale="from zero"),
    ]
    return [panel for panel in found if any(_is_known(run, panel.place) for run in runs)]


def named(place: Place) -> str:
    """What a quantity is called."""
    if place in _NAMES:
        return _NAMES[place]
    head, *_ = place
    return f"loss: {_spoken(place[-1])}" if head == "losses" else _spoken(place[-1])


def written(place: Place, value: Any) -> str:
    """A value as text; a dash where there is none."""
    if value is None:
        return "–"
    if isinstance(value, bool | str) or np.isnan(as_number := number(value)):
        return str(value)
    if is_share(place):
        return f"{100 * as_number:.4g} %"
    if isinstance(value, int) or place == ("tokens_per_s",):
        return f"{value:,.0f}"
    return f"{as_number:.4g}"


def is_share(place: Place) -> bool:
    """Whether a quantity is from 0 to 1."""
    return place[0] != "losses" and place[-1].endswith(_SHARES)


def _spoken(name: str) -> str:
    words = name.split("_")
    return " ".join(word.upper() if word in ("mlm", "rtd", "nsp", "sop") else word for word in words)


def _places(runs: Sequence[Run], part: str) -> list[Place]:
    return list(dict.fromkeys(place for run in runs for place in run.places(part)))


def _is_known(run: Run, place: Place) -> bool:
    return any(np.isfinite(run.curve(kind, place)[1]).any() for kind in run.lines)
