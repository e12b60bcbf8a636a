"""FLOPs of training, compared with a table and with PyTorch's counter, and peaks of devices."""

from __future__ import annotations

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from bioshards.train.batch import BatchCounts
from bioshards.train.config.model_config import ModelConfig
from bioshards.train.models import flops
from bioshards.train.models.adversarial_objective import AdversarialObjective
from bioshards.train.models.factory import build_objective
from bioshards.train.models.objective import Objective
from tests.support.train.synthetic_batches import (
    FAMILIES,
    LENGTH,
    DatasetInfo,
    make_objective,
    make_padded_batch,
    random_masked_rows,
)

SHAPES = {
    "electra-small": ModelConfig("electra", 256, 12, 4, 1024, 128),
    "electra-base": ModelConfig("electra", 768, 12, 12, 3072, 768, generator_hidden_fraction=1 / 3),
    "bert-base": ModelConfig("bert", 768, 12, 12, 3072, 768),
    "albert-base": ModelConfig("albert", 768, 12, 12, 3072, 128),
}
TABLE = {
    "electra-small": (70, 76, 88),
    "electra-base": (611, 630, 668),
    "bert-base": (545, 560, 588),
    "albert-base": (528, 542, 570),
}
"""MFLOPs per token at lengths 128, 256 and 512 with 15 % masked tokens, computed by hand."""


def build_on_meta(shape: ModelConfig, vocabulary: int) -> Objective:
    with torch.device("meta"):
        return build_objective(shape, DatasetInfo(vocabulary_size=vocabulary, labelled=False))


@pytest.mark.parametrize("name", SHAPES)
def test_flops_per_token_equal_the_table(name: str) -> None:
    model = build_on_meta(SHAPES[name], 30_000 if name == "albert-base" else 30_522)
    for length, expected in zip((128, 256, 512), TABLE[name], strict=True):
        counts = BatchCounts(100, 100 * length, 15 * length, 0, 100 * length**2)
        assert round(model.count_training_flops(counts) / (100 * length) / 1e6) == expected


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("labelled", [True, False])
def test_flops_of_a_step_equal_those_counted_by_pytorch(family: str, labelled: bool) -> None:
    """Rows have no padding, and the math backend is used, as PyTorch does not count fused CPU attention."""
    rows = random_masked_rows(51, lengths=[LENGTH] * 4)
    batch = make_padded_batch(rows)._replace(labels=torch.zeros(4, dtype=torch.int64))
    counts = BatchCounts(4, 4 * LENGTH, len(batch.masked_positions), 4 if labelled else 0, 4 * LENGTH**2)
    model = make_objective(family, labelled)
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        model(batch)
    pooled = 0 if family == "electra" else 2 * 32**2  # the library's own, of the first token alone
    assert model.count_training_flops(counts) == flops.TRAINING_TO_FORWARD_RATIO * (
        counter.get_total_flops() - pooled
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_adversarial_step_costs_two_more_encoder_passes(family: str) -> None:
    counts = BatchCounts(4, 160, 24, 4, 6400)
    model = make_objective(family)
    plain_flops, adversarial_flops = (
        model.count_training_flops(counts),
        AdversarialObjective(model).count_training_flops(counts),
    )
    assert 1.5 * plain_flops < adversarial_flops < (1 + 5 / 3) * plain_flops


def test_empty_batch_has_no_flops() -> None:
    for family in FAMILIES:
        assert make_objective(family).count_training_flops(BatchCounts(0, 0, 0, 0, 0)) == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA H100 NVL", 835e12),
        ("NVIDIA H200", 989e12),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("NVIDIA L40S", 362e12),
        ("NVIDIA L4", 121e12),
    ],
)
def test_known_gpu_has_the_peak_of_its_data_sheet(
    name: str, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: name)
    assert flops.get_peak(torch.device("cuda"), torch.bfloat16) == expected


def test_peak_of_another_device_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA GeForce RTX 2070")
    monkeypatch.setattr(flops, "measure_peak", lambda device, dtype: 7.0)
    assert flops.get_peak(torch.device("cuda"), torch.bfloat16) == 7
    assert flops.get_peak(torch.device("cpu"), torch.float32) == 7


def test_measured_peak_is_plausible() -> None:
    assert 1e8 < flops.measure_peak(torch.device("cpu"), torch.float32, 128) < 1e14
