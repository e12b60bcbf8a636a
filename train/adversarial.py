"""Adversarial pretraining: the encoder's predictions are to stand small changes of its input's embeddings.

PubMedBERT's paper has it (section 2.1.4, after Liu et al. 2020, arXiv:2004.08994, "ALUM"): find the change
that moves predictions most, by one step up the gradient from a random start, and let the distance between
the predictions with and without it be one more loss.  The search takes a gradient in the middle of a forward
pass, at which ``torch.compile`` cuts it into several graphs.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import PreTrainedModel

from .batch import Batch
from .objective import Clean, Objective


class Adversarial(Objective):
    """An objective with the loss ``adversarial`` beside its own.

    The numbers are the defaults of alum/adv_masked_lm_task.py in namisan/mt-dnn (``adv_alpha``,
    ``noise_var``, ``adv_step_size``).  A step is of the gradient over its largest number in each token: the
    norm by which alum/adv_masked_lm.py divides too, but it divides the changed embedding.  What it adds to
    the norm, 1e-6, is left out: so near to the start, gradients are no larger themselves.

    Attributes:
        sigma: the standard deviation of the start.
        eta: the length of the step: the largest number of a token's.
    """

    def __init__(
        self, objective: Objective, alpha: float = 1.0, sigma: float = 1e-5, eta: float = 1e-3
    ) -> None:
        super().__init__()
        self.objective, self.judged = objective, objective.judged
        self.losses = {**objective.losses, "adversarial": (alpha, objective.judged)}
        self.sigma, self.eta = sigma, eta

    @property
    def encoder(self) -> PreTrainedModel:
        return self.objective.encoder

    def clean(self, batch: Batch) -> Clean:
        clean = self.objective.clean(batch)
        words = self.encoder.get_input_embeddings()(clean.seen.ids)
        change = self.perturbation(clean, words.detach())
        there = self.log_probabilities(self.predict(clean.seen, words + change))
        here = self.log_probabilities(clean.logits)
        distance = divergence(here.detach(), there, clean.counted)
        distance = distance + divergence(there.detach(), here, clean.counted)
        return clean._replace(sums={**clean.sums, "adversarial": distance})

    def perturbation(self, clean: Clean, words: Tensor) -> Tensor:
        """The change [T, E] of the words' embeddings that moves predictions most, without a gradient."""
        start = self.sigma * torch.randn_like(words)
        with torch.enable_grad():  # in validation too
            start.requires_grad_()
            here = self.log_probabilities(clean.logits.detach())
            there = self.log_probabilities(self.predict(clean.seen, words + start))
            (gradient,) = torch.autograd.grad(divergence(here, there, clean.counted), start)
        largest = gradient.abs().amax(-1, keepdim=True)
        direction = gradient / largest.clamp(min=torch.finfo(gradient.dtype).tiny)  # padding has no gradient
        return start.detach() + self.eta * direction

    def predict(self, seen: Batch, embeds: Tensor | None = None) -> Tensor:
        return self.objective.predict(seen, embeds)

    def log_probabilities(self, logits: Tensor) -> Tensor:
        return self.objective.log_probabilities(logits)

    def figures(self, totals: Mapping[str, float], counts: Mapping[str, float]) -> dict[str, float]:
        return self.objective.figures(totals, counts)

    def save(self, folder: str) -> None:
        self.objective.save(folder)


def divergence(here: Tensor, there: Tensor, counted: Tensor) -> Tensor:
    """Kullback and Leibler's divergence of ``there`` from ``here``, summed over what counts.

    Args:
        here, there: [N, classes], logarithms of probabilities.
        counted: bool[N].
    """
    each = F.kl_div(there, here, reduction="none", log_target=True).sum(-1)
    return each.where(counted, 0).sum()
