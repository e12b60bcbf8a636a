"""Adversarial pretraining (ALUM): make predictions robust to small perturbations of the input embeddings.

Liu et al. 2020, arXiv:2004.08994; used in PubMedBERT's paper, section 2.1.4.  One gradient ascent step from
random noise finds the perturbation that changes the predictions most.  The divergence between the predictions
with and without it is an additional loss.  The gradient inside the forward pass splits the graph of
``torch.compile``.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import PreTrainedModel

from bioshards.train.batch import Batch
from bioshards.train.models.objectives import ForwardOutput, Objective


class AdversarialObjective(Objective):
    """Wrapper that adds the loss ``adversarial`` to an objective.

    The defaults are those of alum/adv_masked_lm_task.py in namisan/mt-dnn (``adv_alpha``, ``noise_var``,
    ``adv_step_size``).  The gradient is divided by its maximum norm per token, as in alum/adv_masked_lm.py,
    which divides the perturbed embedding.  The 1e-6 that the reference adds to the norm is omitted, because
    gradients near the start are of that size themselves.

    Attributes:
        objective: the wrapped objective.
        noise_std: standard deviation of the random start.
        step_size: maximum norm of the ascent step of a token.
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
        """Return the perturbation [T, E] of word embeddings that changes predictions most, detached."""
        noise = self.noise_std * torch.randn_like(word_embeddings)
        with torch.enable_grad():  # also inside torch.no_grad()
            noise.requires_grad_()
            clean_log_probs = self.log_probabilities(outputs.logits.detach())
            noisy_log_probs = self.log_probabilities(
                self.predict(outputs.encoder_batch, word_embeddings + noise)
            )
            (gradient,) = torch.autograd.grad(
                kl_divergence(clean_log_probs, noisy_log_probs, outputs.loss_mask), noise
            )
        max_norm = gradient.abs().amax(-1, keepdim=True)
        direction = gradient / max_norm.clamp(
            min=torch.finfo(gradient.dtype).tiny
        )  # the gradient of padding is 0
        return noise.detach() + self.step_size * direction

    def predict(self, batch: Batch, embeds: Tensor | None = None) -> Tensor:
        return self.objective.predict(batch, embeds)

    def log_probabilities(self, logits: Tensor) -> Tensor:
        return self.objective.log_probabilities(logits)

    def compute_metrics(self, totals: Mapping[str, float], counts: Mapping[str, float]) -> dict[str, float]:
        return self.objective.compute_metrics(totals, counts)

    def describe_heads(self) -> list[str]:
        return self.objective.describe_heads()

    def save(self, folder: str) -> None:
        self.objective.save(folder)


def kl_divergence(log_p: Tensor, log_q: Tensor, loss_mask: Tensor) -> Tensor:
    """Return the Kullback-Leibler divergence KL(p || q), summed over tokens of the loss mask.

    Args:
        log_p, log_q: log-probabilities [N, classes].
        loss_mask: bool[N].
    """
    per_token = F.kl_div(log_q, log_p, reduction="none", log_target=True).sum(-1)
    return per_token.where(loss_mask, 0).sum()
