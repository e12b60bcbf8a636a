"""The arithmetic of training: against a table, against what PyTorch counts, and what a device can do."""

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
"""MFLOP a token at lengths of 128, 256 and 512, 15 % of the tokens masked; worked out by hand."""


def on_meta(shape: ModelConfig, vocabulary: int) -> Objective:
    with torch.device("meta"):
        return build_objective(shape, DatasetInfo(vocabulary_size=vocabulary, labelled=False))


@pytest.mark.parametrize("name", SHAPES)
def test_flop_a_token_are_those_of_the_table(name: str) -> None:
    model = on_meta(SHAPES[name], 30_000 if name == "albert-base" else 30_522)
    for length, expected in zip((128, 256, 512), TABLE[name], strict=True):
        counts = BatchCounts(100, 100 * length, 15 * length, 0, 100 * length**2)
        assert round(model.count_training_flops(counts) / (100 * length) / 1e6) == expected


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("labelled", [True, False])
def test_flop_of_a_step_are_those_that_pytorch_counts(family: str, labelled: bool) -> None:
    """Of rows without padding, by plain products: PyTorch does not count its fused attention on a CPU."""
    given_rows = random_masked_rows(51, lengths=[LENGTH] * 4)
    batch = make_padded_batch(given_rows)._replace(labels=torch.zeros(4, dtype=torch.int64))
    counts = BatchCounts(4, 4 * LENGTH, len(batch.masked_positions), 4 if labelled else 0, 4 * LENGTH**2)
    model = make_objective(family, labelled)
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        model(batch)
    pooled = 0 if family == "electra" else 2 * 32**2  # the library's own, of the first token alone
    assert model.count_training_flops(counts) == flops.TRAINING_TO_FORWARD_RATIO * (
        counter.get_total_flops() - pooled
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_an_adversarial_step_is_dearer_by_two_passes_of_what_is_kept(family: str) -> None:
    counts = BatchCounts(4, 160, 24, 4, 6400)
    model = make_objective(family)
    own, whole = (
        model.count_training_flops(counts),
        AdversarialObjective(model).count_training_flops(counts),
    )
    assert 1.5 * own < whole < (1 + 5 / 3) * own


def test_nothing_takes_nothing() -> None:
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
def test_a_known_gpu_has_the_peak_of_its_data_sheet(
    name: str, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: name)
    assert flops.get_peak(torch.device("cuda"), torch.bfloat16) == expected


def test_another_device_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA GeForce RTX 2070")
    monkeypatch.setattr(flops, "measure_peak", lambda device, dtype: 7.0)
    assert flops.get_peak(torch.device("cuda"), torch.bfloat16) == 7
    assert flops.get_peak(torch.device("cpu"), torch.float32) == 7


def test_what_is_measured_is_what_a_computer_can_do() -> None:
    assert 1e8 < flops.measure_peak(torch.device("cpu"), torch.float32, 128) < 1e14
