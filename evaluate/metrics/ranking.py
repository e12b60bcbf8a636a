"""Mean reciprocal rank of ranked candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.metrics.metric import Metric, Numbers, align, make_stats_array, ratio


def mean_reciprocal_rank() -> Metric:
    """Return the mean reciprocal rank of the first relevant candidate; 0 for questions without one.

    Gold is (question id, is relevant) of each candidate, predicted its score; a row of statistics is a
    question. SOURCE: show_reranker_performance.py of SciCrunch/bio_electra: consecutive candidates of one
    question form a group, and ties keep their order.
    """
    stat_names = ("reciprocal rank", "questions")

    def compute_stats(gold: Sequence[tuple[str, bool]], predicted: Sequence[float]) -> Numbers:
        candidates = align(gold, predicted)
        if any(math.isnan(score) for score in predicted):
            raise InvalidValueError("a score is not a number: has the training diverged?")
        questions = groupby(candidates, key=lambda candidate: candidate[0][0])
        return make_stats_array(((_reciprocal_rank(list(group)), 1) for _, group in questions), stat_names)

    return Metric("mean reciprocal rank", "MRR", stat_names, compute_stats, _scores_from_totals)


def _scores_from_totals(totals: Numbers) -> Mapping[str, Numbers]:
    return {"MRR": ratio(totals[..., 0], totals[..., 1])}


def _reciprocal_rank(candidates: list[tuple[tuple[str, bool], float]]) -> float:
    ranked = sorted(candidates, key=lambda candidate: -candidate[1])
    return next((1 / rank for rank, ((_, relevant), _) in enumerate(ranked, 1) if relevant), 0)
