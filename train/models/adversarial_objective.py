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

from bioshards.train.batch import Batch

from .objective import ForwardOutput, Objective


class AdversarialObjective(Objective):
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
        self, objective: Objective, weight: float = 1.0, noise_std: float = 1e-5, step_size: float = 1e-3
    ) -> None:
        super().__init__()
        self.objective, self.logits_count_field = objective, objective.logits_count_field
        self.losses = {**objective.losses, "adversarial": (weight, objective.logits_count_field)}
        self.noise_std, self.step_size = noise_std, step_size

    @property
    def encoder(self) -> PreTrainedModel:
        return self.objective.encoder

    def compute_outputs(self, batch: Batch) -> ForwardOutput:
        outputs = self.objective.compute_outputs(batch)
        word_embeddings = self.encoder.get_input_embeddings()(outputs.encoder_batch.ids)
        perturbation = self.find_perturbation(outputs, word_embeddings.detach())
        perturbed_log_probs = self.log_probabilities(
            self.predict(outputs.encoder_batch, word_embeddings + perturbation)
        )
        clean_log_probs = self.log_probabilities(outputs.logits)
        divergence_sum = kl_divergence(clean_log_probs.detach(), perturbed_log_probs, outputs.loss_mask)
        divergence_sum = divergence_sum + kl_divergence(
            perturbed_log_probs.detach(), clean_log_probs, outputs.loss_mask
        )
        return outputs._replace(sums={**outputs.sums, "adversarial": divergence_sum})

    def find_perturbation(self, outputs: ForwardOutput, word_embeddings: Tensor) -> Tensor:
        """The change [T, E] of the words' embeddings that moves predictions most, without a gradient."""
        noise = self.noise_std * torch.randn_like(word_embeddings)
        with torch.enable_grad():  # in validation too
            noise.requires_grad_()
            clean_log_probs = self.log_probabilities(outputs.logits.detach())
            noisy_log_probs = self.log_probabilities(
                self.predict(outputs.encoder_batch, word_embeddings + noise)
            )
            (gradient,) = torch.autograd.grad(
                kl_divergence(clean_log_probs, noisy_log_probs, outputs.loss_mask), noise
            )
        max_norm = gradient.abs().amax(-1, keepdim=True)
        direction = gradient / max_norm.clamp(min=torch.finfo(gradient.dtype).tiny)  # padding has no gradient
        return noise.detach() + self.step_size * direction

    def predict(self, batch: Batch, embeds: Tensor | None = None) -> Tensor:
        return self.objective.predict(batch, embeds)

    def log_probabilities(self, logits: Tensor) -> Tensor:
        return self.objective.log_probabilities(logits)

    def compute_metrics(self, totals: Mapping[str, float], counts: Mapping[str, float]) -> dict[str, float]:
        return self.objective.compute_metrics(totals, counts)

    def save(self, folder: str) -> None:
        self.objective.save(folder)


def kl_divergence(log_p: Tensor, log_q: Tensor, loss_mask: Tensor) -> Tensor:
    """Kullback and Leibler's divergence of ``log_q`` from ``log_p``, summed over what counts.

    Args:
        log_p, log_q: [N, classes], logarithms of probabilities.
        loss_mask: bool[N].
    """
    per_token = F.kl_div(log_q, log_p, reduction="none", log_target=True).sum(-1)
    return per_token.where(loss_mask, 0).sum()
