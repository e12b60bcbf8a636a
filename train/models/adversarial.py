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
from torch import Tensor, nn

from bioshards.train.batch import Batch
from bioshards.train.models.objectives import ForwardOutput, Objective


class AdversarialObjective(nn.Module):
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
        self.objective, self.noise_std, self.step_size = objective, noise_std, step_size
        self.losses = {**objective.losses, "adversarial": (weight, objective.logits_count_field)}

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Return the objective's sums over a batch, and that of the loss ``adversarial``."""
        outputs, objective = self.objective.compute_outputs(batch), self.objective
        word_embeddings = objective.encoder.get_input_embeddings()(outputs.encoder_batch.ids)
        perturbation = self.find_perturbation(outputs, word_embeddings.detach())
        perturbed = self._compute_log_probs(outputs, word_embeddings + perturbation)
        clean = objective.log_probabilities(outputs.logits)
        divergence = kl_divergence(clean.detach(), perturbed, outputs.loss_mask)
        divergence = divergence + kl_divergence(perturbed.detach(), clean, outputs.loss_mask)
        return {**outputs.sums, "adversarial": divergence}

    def compute_loss(self, sums: Mapping[str, Tensor], counts: Mapping[str, float]) -> Tensor:
        """Return the weighted sum of the losses, each divided by its count, as :class:`Objective` does."""
        weight, count = self.losses["adversarial"]
        loss = self.objective.compute_loss(sums, counts)
        return loss + weight / max(counts[count], 1) * sums["adversarial"]

    def find_perturbation(self, outputs: ForwardOutput, word_embeddings: Tensor) -> Tensor:
        """Return the perturbation [T, E] of word embeddings that changes predictions most, detached."""
        noise = self.noise_std * torch.randn_like(word_embeddings)
        with torch.enable_grad():  # also inside torch.no_grad()
            noise.requires_grad_()
            clean = self.objective.log_probabilities(outputs.logits.detach())
            noisy = self._compute_log_probs(outputs, word_embeddings + noise)
            (gradient,) = torch.autograd.grad(kl_divergence(clean, noisy, outputs.loss_mask), noise)
        max_norm = gradient.abs().amax(-1, keepdim=True)
        # The gradient of padding is 0.
        direction = gradient / max_norm.clamp(min=torch.finfo(gradient.dtype).tiny)
        return noise.detach() + self.step_size * direction

    def _compute_log_probs(self, outputs: ForwardOutput, embeds: Tensor) -> Tensor:
        return self.objective.log_probabilities(self.objective.predict(outputs.encoder_batch, embeds))


def kl_divergence(log_p: Tensor, log_q: Tensor, loss_mask: Tensor) -> Tensor:
    """Return the Kullback-Leibler divergence KL(p || q), summed over tokens of the loss mask.

    Args:
        log_p, log_q: log-probabilities [N, classes].
        loss_mask: bool[N].
    """
    per_token = F.kl_div(log_q, log_p, reduction="none", log_target=True).sum(-1)
    return per_token.where(loss_mask, 0).sum()
