"""Training recipes: options, TOML files, presets, and parameter counts of the presets' models."""

from __future__ import annotations

import dataclasses
import os
import shlex
import subprocess
import typing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AlbertForPreTraining, BertForPreTraining, ElectraForPreTraining

from bioshards.corpus.ui.options import from_toml
from bioshards.train.__main__ import main
from bioshards.train.data.masking import MaskingConfig
from bioshards.train.models.objectives import ElectraObjective, MlmObjective
from bioshards.train.models.weights import build_objective
from bioshards.train.optim import learning_rate
from bioshards.train.options import TrainJob
from bioshards.train.presets import PRESETS, describe_set_differences
from bioshards.train.recipe import FAMILIES, TrainRecipe
from tests.support.paths import REPOSITORY

Capture = pytest.CaptureFixture[str]
FIELDS = {
    name: typing.get_args(kind)
    for name, kind in typing.get_type_hints(TrainRecipe, include_extras=True).items()
}
"""The type and the help of every field."""


@pytest.fixture
def parse_recipe(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Function that returns the recipe of a command line."""
    jobs: list[TrainJob] = []

    def record_job(job: TrainJob, *_: object) -> str:
        jobs.append(job)
        return ""

    def call(*args: object) -> TrainRecipe:
        monkeypatch.setattr("bioshards.train.train.train", record_job)
        assert main(["DATA", "--output", "RUN", *map(str, args)]) == 0
        return jobs[-1].recipe

    return call


@pytest.fixture
def read_parse_error(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> Any:
    """Function that returns the error message of a command line with an invalid recipe."""

    def call(*args: object) -> str:
        monkeypatch.setattr("bioshards.train.train.train", lambda *_: pytest.fail("it was begun"))
        try:
            code = main(["DATA", "--output", "RUN", *map(str, args)])
        except SystemExit as error:  # argparse's own
            code = error.code  # type: ignore[assignment]
        stderr = capsys.readouterr().err
        assert code == 2
        assert "Traceback" not in stderr
        return stderr

    return call


def write_toml(folder: Path, *lines: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


# Options


def test_every_field_is_an_option_with_its_help(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["--help"])
    assert exit_info.value.code == 0
    stdout = " ".join(capsys.readouterr().out.split())
    for field in dataclasses.fields(TrainRecipe):
        assert f"--{field.name.replace('_', '-')}" in stdout
        # argparse breaks lines at hyphens too
        help_text = FIELDS[field.name][1].replace("%%", "%")
        assert f"{help_text} (default: {field.default})".replace(" ", "") in stdout.replace(" ", "")


@pytest.mark.parametrize("name", FIELDS)
def test_an_option_sets_its_field_and_no_other(name: str, parse_recipe: Any) -> None:
    field_type, _ = FIELDS[name]
    special_values: dict[str, Any] = {"hidden_size": 64, "num_heads": 4, "start_from": "run"}
    value = special_values.get(name)
    flag = f"--{name.replace('_', '-')}"
    if field_type is bool:
        value = not getattr(TrainRecipe(), name)
        args = [flag if value else f"--no-{flag[2:]}"]
    else:
        if value is None and typing.get_origin(field_type) is Literal:
            value = typing.get_args(field_type)[-1]
            value = value if value != getattr(TrainRecipe(), name) else typing.get_args(field_type)[0]
        elif value is None:
            value = 7 if field_type is int else 0.25
            value = value if value != getattr(TrainRecipe(), name) else 0.5
        args = [flag, str(value)]
    changes: dict[str, Any] = {name: value}
    assert parse_recipe(*args) == dataclasses.replace(TrainRecipe(), **changes)


def test_options_override_config_file_and_config_file_overrides_preset(
    parse_recipe: Any, tmp_path: Path
) -> None:
    path = write_toml(
        tmp_path, "batch_size = 32", "learning_rate = 1e-4", 'mask_unit = "word"', "compile = true"
    )
    recipe = parse_recipe("--preset", "electramed", "--config", path, "--batch-size", 64, "--no-compile")
    assert recipe == dataclasses.replace(
        PRESETS["electramed"], batch_size=64, learning_rate=1e-4, mask_unit="word", compile=False
    )
    assert parse_recipe() == TrainRecipe()
    assert parse_recipe("--preset", "pubmedbert") == PRESETS["pubmedbert"]


def test_only_the_combined_recipe_is_validated(parse_recipe: Any, tmp_path: Path) -> None:
    """100 steps are fewer than the preset's warm-up, which the command line overrides."""
    path = write_toml(tmp_path, "steps = 100")
    recipe = parse_recipe("--preset", "electra-small", "--config", path, "--warmup", 10)
    assert (recipe.steps, recipe.warmup) == (100, 10)


# TOML files


def test_config_file_with_every_field(tmp_path: Path) -> None:
    recipe = PRESETS["bioalbert-large"].to_dict()
    lines = [
        f"{name} = {str(value).lower() if isinstance(value, bool) else repr(value)}"
        for name, value in recipe.items()
    ]
    assert (
        TrainRecipe(**from_toml(str(write_toml(tmp_path, *lines)), TrainRecipe)) == PRESETS["bioalbert-large"]
    )


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["stepps = 10"], "recipe.toml: unknown field stepps (did you mean steps?)"),
        (["learning-rate = 1"], "unknown field learning-rate (did you mean learning_rate?)"),
        (["zzz = 1"], "unknown field zzz; fields: family, hidden_size, num_layers"),
        (["[train]", "steps = 1"], "unknown field train"),
        (["steps = 10.5"], "recipe.toml: --steps 10.5 is not of type int"),
        (['steps = "10"'], "recipe.toml: --steps '10' is not of type int"),
        (["steps = true"], "recipe.toml: --steps True is not of type int"),
        (["learning_rate = [1]"], "recipe.toml: --learning-rate [1] is not of type float"),
        (["[steps]", "a = 1"], "recipe.toml: --steps {'a': 1} is not of type int"),
        (["compile = 1"], "recipe.toml: --compile 1 is not of type bool"),
        (['family = "gpt"'], "recipe.toml: --family gpt is not one of auto, electra, bert, albert"),
        (["family = [1]"], "recipe.toml: --family [1] is not one of auto"),
        (["steps = 0"], "--steps 0 is below 1"),
        (["learning_rate = nan"], "--learning-rate nan is negative or not finite"),
        (["steps 10"], "recipe.toml is not valid TOML ("),
        (["steps = 1", "steps = 2"], "recipe.toml is not valid TOML ("),
    ],
)
def test_invalid_config_files_are_refused(
    lines: list[str], message: str, read_parse_error: Any, tmp_path: Path
) -> None:
    assert message in read_parse_error("--config", write_toml(tmp_path, *lines))


def test_unreadable_config_files_are_refused(read_parse_error: Any, tmp_path: Path) -> None:
    path = tmp_path / "gone.toml"
    assert f"cannot read --config {path}: No such file" in read_parse_error("--config", path)
    assert f"cannot read --config {tmp_path}: Is a directory" in read_parse_error("--config", tmp_path)
    path.write_bytes(b"steps = \xff\n")
    assert "is not valid TOML" in read_parse_error("--config", path)


# Values


@pytest.mark.parametrize(
    ("args", "message"),
    [
        *(
            (f"--{name} 0", f"--{name} 0 is below 1")
            for name in (
                "steps",
                "batch-size",
                "hidden-size",
                "num-layers",
                "num-heads",
                "intermediate-size",
                "embedding-size",
                "max-positions",
            )
        ),
        *((f"--{name} x", "invalid int value: 'x'") for name in ("steps", "seed", "max-predictions-per-seq")),
        ("--steps 1e6", "invalid int value: '1e6'"),
        *((f"--{name} x", "invalid float value: 'x'") for name in ("grad-clip", "mask-rate", "warmup")),
        *(
            (f"--{name} {value}", f"--{name} {float(value)} is not above 0 and at most 1")
            for name in ("layer-decay", "generator-hidden-fraction", "generator-layers-fraction")
            for value in ("0", "1.01", "-0.5", "nan")
        ),
        *((f"--mask-rate {value}", "is not between 0 and 1") for value in ("0", "1", "-0.1", "nan")),
        *(
            (f"--{name} {value}", f"--{name} {float(value)} is not from 0 to below 1")
            for name in ("final-mask-rate", "dropout", "attention-dropout", "beta1", "beta2")
            for value in ("-0.1", "1", "nan")
        ),
        *(
            (f"--{name} {value}", f"--{name} {float(value)} is negative or not finite")
            for name in (
                "adversarial-weight",
                "learning-rate",
                "warmup",
                "epsilon",
                "weight-decay",
                "grad-clip",
            )
            for value in ("-1", "inf", "nan")
        ),
        ("--max-predictions-per-seq -1", "--max-predictions-per-seq -1 is negative"),
        ("--seed -1", "--seed -1 is negative"),
        (f"--seed {1 << 64}", "is not below 2^63"),
        ("--epsilon 0", "--epsilon 0 is not above 0"),
        ("--hidden-size 130 --num-heads 4", "--hidden-size 130 is not a multiple of --num-heads 4"),
        ("--schedule cosine", "invalid choice: 'cosine'"),
        ("--optimizer sgd", "invalid choice: 'sgd'"),
        ("--precision float8", "invalid choice: 'float8'"),
        ("--preset biobert", "invalid choice: 'biobert'"),
        ("--no-such-thing 1", "unknown option --no-such-thing"),
    ],
)
def test_invalid_values_are_refused(args: str, message: str, read_parse_error: Any) -> None:
    assert message in read_parse_error(*args.split())


@given(st.sampled_from(sorted(FIELDS)), st.sampled_from([None, "x", b"x", [], {}, 1j, 2.5]))
def test_values_of_another_type_are_refused(name: str, value: Any) -> None:
    if FIELDS[name][0] is float and isinstance(value, float):
        return
    with pytest.raises(ValueError, match=name.replace("_", "-")):
        dataclasses.replace(TrainRecipe(), **{name: value})


def test_warmup_is_a_number_of_steps_or_a_fraction() -> None:
    warmup_steps = [
        dataclasses.replace(TrainRecipe(), steps=62_500, warmup=warmup).warmup_steps
        for warmup in (0, 0.1, 1, 10_000)
    ]
    assert warmup_steps == [0, 6_250, 1, 10_000]


# Presets

_ELECTRA = {
    # google-research/electra: optimization.py, pretrain_helpers.py, configure_pretraining.py
    "family": "electra",
    "optimizer": "adam",
    "bias_correction": False,
    "schedule": "electra",
    "beta1": 0.9,
    "beta2": 0.999,
    "epsilon": 1e-6,
    "weight_decay": 0.01,
    "grad_clip": 1.0,
    "layer_decay": 1.0,
    "warmup": 10_000,
    "mask_rate": 0.15,
    "final_mask_rate": 0,
    "mask_unit": "token",
    "max_predictions_per_seq": 0,
    "dropout": 0.1,
    "attention_dropout": 0.1,
    "max_positions": 512,
    "generator_layers_fraction": 1.0,
    "adversarial_weight": 0,
    "num_layers": 12,
}
_SMALL = {
    **_ELECTRA,
    "hidden_size": 256,
    "num_heads": 4,
    "intermediate_size": 1024,
    "embedding_size": 128,
    "generator_hidden_fraction": 0.25,
    "learning_rate": 5e-4,
}
_BASE = {
    **_ELECTRA,
    "hidden_size": 768,
    "num_heads": 12,
    "intermediate_size": 3072,
    "embedding_size": 768,
    "generator_hidden_fraction": 1 / 3,
    "batch_size": 256,
    "steps": 1_000_000,
    "learning_rate": 2e-4,
    "start_from": "random",
}
_BIOALBERT = {
    # Naseem et al. 2020, tables I and II; google-research/albert, optimization.py and the configurations of
    # its second version
    "family": "albert",
    "embedding_size": 128,
    "max_positions": 512,
    "dropout": 0,
    "attention_dropout": 0,
    "start_from": "checkpoint",
    "optimizer": "lamb",
    "schedule": "bert",
    "warmup": 3125,
    "steps": 200_000,
    "mask_unit": "ngram",
    "mask_rate": 0.15,
    "final_mask_rate": 0,
    "max_predictions_per_seq": 20,
    "beta1": 0.9,
    "beta2": 0.999,
    "epsilon": 1e-6,
    "weight_decay": 0.01,
    "grad_clip": 1.0,
    "adversarial_weight": 0,
}
PUBLISHED: dict[str, dict[str, Any]] = {
    "electra-small": {**_SMALL, "batch_size": 128, "steps": 1_000_000, "start_from": "random"},
    "electra-base": _BASE,
    # Ozyurt 2020 and its repository, pmc_config.json.example and pmc_config_v2.json.example
    "bio-electra": {**_SMALL, "batch_size": 64, "steps": 1_800_000, "start_from": "random"},
    "bio-electra-pp": {**_SMALL, "batch_size": 64, "steps": 3_600_000, "start_from": "run"},
    # Miolo et al. 2021, table 1
    "electramed": _BASE,
    # Gu et al. 2020, section 4.1; google-research/bert for what it leaves open; no limit of predictions
    "pubmedbert": {
        "family": "bert",
        "hidden_size": 768,
        "num_layers": 12,
        "num_heads": 12,
        "intermediate_size": 3072,
        "max_positions": 512,
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "start_from": "random",
        "mask_unit": "word",
        "mask_rate": 0.15,
        "final_mask_rate": 0,
        "max_predictions_per_seq": 0,
        "optimizer": "adam",
        "bias_correction": False,
        "schedule": "triangular",
        "warmup": 0.1,
        "steps": 62_500,
        "batch_size": 8_192,
        "learning_rate": 6e-4,
        "adversarial_weight": 0,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-6,
        "weight_decay": 0.01,
        "grad_clip": 1.0,
    },
    "bioalbert": {
        **_BIOALBERT,
        "hidden_size": 768,
        "num_layers": 12,
        "num_heads": 12,
        "intermediate_size": 3072,
        "batch_size": 1024,
        "learning_rate": 0.00176,
    },
    "bioalbert-large": {
        **_BIOALBERT,
        "hidden_size": 1024,
        "num_layers": 24,
        "num_heads": 16,
        "intermediate_size": 4096,
        "batch_size": 256,
        "learning_rate": 0.00062,
    },
}
# Gu et al. 2020, sections 4.1 and 5: the same steps on abstracts and articles, and 60 % more
PUBLISHED["pubmedbert-pmc"] = PUBLISHED["pubmedbert"]
PUBLISHED["pubmedbert-pmc-100k"] = {**PUBLISHED["pubmedbert"], "steps": 100_000}
# Naseem et al. 2020: 270,000 steps on PMC after 200,000 on PubMed
for _name in ("bioalbert", "bioalbert-large"):
    PUBLISHED[f"{_name}-pmc"] = {
        **PUBLISHED[_name],
        "steps": 470_000,
        "start_from": "run",
    }


def test_preset_names() -> None:
    assert PRESETS.keys() == {"tiny", *PUBLISHED}


@pytest.mark.parametrize(
    ("preset", "field", "value"),
    [(preset, field, value) for preset, fields in PUBLISHED.items() for field, value in fields.items()],
)
def test_preset_values_are_as_published(preset: str, field: str, value: object) -> None:
    assert getattr(PRESETS[preset], field) == value


@pytest.mark.parametrize("preset", PUBLISHED)
def test_unpublished_fields_are_those_of_the_machine_or_other_families(preset: str) -> None:
    unpublished = {name for name in TrainRecipe().to_dict() if name not in PUBLISHED[preset]}
    machine_fields = {"precision", "compile", "seed"}
    family_fields = {
        "generator_hidden_fraction",
        "generator_layers_fraction",
        "bias_correction",
        "layer_decay",
        "embedding_size",
    }
    assert machine_fields <= unpublished <= machine_fields | family_fields


def test_replacement_fractions_of_families() -> None:
    """ELECTRA: 85 % [MASK] and no random tokens. BERT and ALBERT: 80 % and 10 %."""
    fractions = {
        name: (family.mask_token_fraction, family.random_token_fraction) for name, family in FAMILIES.items()
    }
    assert fractions == {"electra": (0.85, 0.0), "bert": (0.8, 0.1), "albert": (0.8, 0.1)}


@pytest.mark.parametrize(
    ("preset", "length", "num_predictions"),
    [
        ("bio-electra", 256, 38),
        ("electramed", 512, 77),
        ("pubmedbert", 128, 19),
        ("pubmedbert", 512, 77),
        ("bioalbert", 512, 20),
    ],
)
def test_number_of_predictions_per_row(preset: str, length: int, num_predictions: int) -> None:
    """ELECTRA: round(0.15 * length), at most int(0.155 * length)."""
    masking = MaskingConfig.of_recipe(PRESETS[preset], PRESETS[preset].mask_rate)
    assert masking.compute_budgets(np.array([length]), length)[0] == num_predictions


def test_bio_electra_pp_starts_at_half_its_learning_rate() -> None:
    """At 1.8 of 3.6 million steps the rate is 5e-4 * (1 - 1.8 / 3.6)."""
    recipe = PRESETS["bio-electra-pp"]
    first = PRESETS["bio-electra"].steps
    assert learning_rate(
        recipe.schedule, first, recipe.steps, recipe.warmup_steps, recipe.learning_rate
    ) == pytest.approx(2.5e-4)


@pytest.mark.parametrize(("name", "peak"), [("bioalbert", 0.00176), ("bioalbert-large", 0.00062)])
def test_bioalbert_pmc_goes_on_by_the_schedule_of_all_steps(name: str, peak: float) -> None:
    recipe, first = PRESETS[f"{name}-pmc"], PRESETS[name]
    assert dataclasses.replace(recipe, steps=first.steps, start_from=first.start_from) == first
    rate = learning_rate(recipe.schedule, first.steps, recipe.steps, recipe.warmup_steps, peak)
    assert rate == pytest.approx(peak * 270 / 470)


@pytest.mark.parametrize(
    ("preset", "own_steps", "all_steps"),
    [("bio-electra-pp", 1_800_000, 3_600_000), ("bioalbert-pmc", 270_000, 470_000)],
)
def test_second_stage_that_continues_no_run_has_its_own_steps(
    preset: str, own_steps: int, all_steps: int, parse_recipe: Any
) -> None:
    assert parse_recipe("--preset", preset, "--init-checkpoint", "X").steps == own_steps
    assert parse_recipe("--preset", preset, "--start-from", "random").steps == own_steps
    assert parse_recipe("--preset", preset, "--continue-from", "RUN").steps == all_steps
    assert parse_recipe("--preset", preset, "--init-checkpoint", "X", "--steps", 9).steps == 9


def test_preset_names_what_its_paper_had_otherwise() -> None:
    assert describe_set_differences("pubmedbert", "bert", 512) == []
    assert describe_set_differences("tiny", "plain", 7) == []
    objective, length = describe_set_differences("pubmedbert", "electra", 256)
    assert "sets of --objective bert, and this one has electra: it trains without the pair task" in objective
    assert "rows of up to 512 tokens, and this set has up to 256" in length


def test_make_train_has_a_recipe_for_the_preset_tiny_on_the_sample_alone(parse_recipe: Any) -> None:

    def read_options(*variables: str) -> list[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        completed = subprocess.run(
            ["make", "--dry-run", "train", *variables],
            cwd=REPOSITORY,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        [line] = [line for line in completed.stdout.splitlines() if "bioshards train" in line]
        return shlex.split(line.partition("--output")[2])[1:]

    recipe = parse_recipe(*read_options())
    assert (recipe.family, recipe.hidden_size, recipe.steps, recipe.dropout) == ("bert", 64, 1000, 0)
    assert not read_options("EXAMPLES=elsewhere")
    assert not read_options("MODEL=bio-electra")


# The presets' models


def count_layer(hidden: int, ffn: int) -> int:
    """Count a layer: four projections and a feed-forward block with biases, and two LayerNorms."""
    return 4 * hidden * (hidden + 1) + 2 * hidden * ffn + ffn + hidden + 4 * hidden


def count_embeddings(vocabulary: int, width: int) -> int:
    """Count the embeddings of words, 512 positions and two types, and their LayerNorm."""
    return (vocabulary + 512 + 2 + 2) * width


def count_dense(inner: int, outer: int) -> int:
    return (inner + 1) * outer


def count_electra(vocabulary: int, hidden: int, layers: int, ffn: int, width: int) -> int:
    """Count a discriminator with its head."""
    num_projection = count_dense(width, hidden) if width != hidden else 0
    head = count_dense(hidden, hidden) + count_dense(hidden, 1)
    return count_embeddings(vocabulary, width) + num_projection + layers * count_layer(hidden, ffn) + head


def count_bert(vocabulary: int, hidden: int, layers: int, ffn: int) -> int:
    """Count an encoder with its pooler."""
    return (
        count_embeddings(vocabulary, hidden) + layers * count_layer(hidden, ffn) + count_dense(hidden, hidden)
    )


def count_albert(vocabulary: int, hidden: int, ffn: int, width: int) -> int:
    """Count an encoder with one shared layer, and its pooler."""
    num_projection = count_dense(width, hidden)
    return (
        count_embeddings(vocabulary, width)
        + num_projection
        + count_layer(hidden, ffn)
        + count_dense(hidden, hidden)
    )


def count_parameters(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def build_on_meta(preset: str, vocabulary: int) -> ElectraObjective | MlmObjective:
    """Build the preset's models on the meta device."""
    special = {"[PAD]": 0, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
    dataset_info = SimpleNamespace(
        vocabulary_size=vocabulary, special_ids=special, labelled=True, most_frequent_id=5
    )
    with torch.device("meta"):
        objective = build_objective(PRESETS[preset], dataset_info)
    assert isinstance(objective, (ElectraObjective, MlmObjective))
    return objective


@pytest.mark.parametrize(
    ("preset", "vocabulary", "num_parameters", "num_millions"),
    [
        # millions of parameters in the papers: ELECTRA table 1, BERT section 3, ALBERT table 1
        ("electra-small", 30_522, count_electra(30_522, 256, 12, 1024, 128), 14),
        ("bio-electra", 31_620, count_electra(31_620, 256, 12, 1024, 128), 14),
        ("bio-electra-pp", 31_620, count_electra(31_620, 256, 12, 1024, 128), 14),
        ("electra-base", 30_522, count_electra(30_522, 768, 12, 3072, 768), 110),
        ("electramed", 31_090, count_electra(31_090, 768, 12, 3072, 768), 110),
        ("pubmedbert", 30_522, count_bert(30_522, 768, 12, 3072), 110),
        ("bioalbert", 30_000, count_albert(30_000, 768, 3072, 128), 12),
        ("bioalbert-large", 30_000, count_albert(30_000, 1024, 4096, 128), 18),
    ],
)
def test_models_of_presets_have_published_parameter_counts(
    preset: str, vocabulary: int, num_parameters: int, num_millions: int
) -> None:
    objective = build_on_meta(preset, vocabulary)
    model: torch.nn.Module
    if isinstance(objective, ElectraObjective):
        assert isinstance(objective.discriminator, ElectraForPreTraining)
        model = objective.discriminator
    else:
        assert isinstance(objective.model, (BertForPreTraining, AlbertForPreTraining))
        model = objective.encoder
    assert count_parameters(model) == num_parameters
    assert num_parameters / 1e6 == pytest.approx(num_millions, rel=0.035)


@pytest.mark.parametrize(
    ("preset", "hidden", "heads", "layers"), [("bio-electra", 64, 1, 12), ("electramed", 256, 4, 12)]
)
def test_generators_of_presets_are_fractions_of_the_discriminator(
    preset: str, hidden: int, heads: int, layers: int
) -> None:
    objective = build_on_meta(preset, 31_620)
    assert isinstance(objective, ElectraObjective)
    config = objective.generator.config
    assert (config.hidden_size, config.num_attention_heads, config.num_hidden_layers) == (
        hidden,
        heads,
        layers,
    )
    assert config.intermediate_size == 4 * hidden
    width = PRESETS[preset].embedding_size
    num_layer_parameters = (count_dense(width, hidden) if width != hidden else 0) + layers * count_layer(
        hidden, 4 * hidden
    )
    num_head_parameters = count_dense(hidden, width) + 2 * width + 31_620
    assert (
        count_parameters(objective)
        == count_parameters(objective.discriminator) + num_layer_parameters + num_head_parameters
    )


def test_default_model_is_small() -> None:
    recipe = dataclasses.replace(TrainRecipe(), family="electra")
    special = {"[PAD]": 0, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
    with torch.device("meta"):
        objective = build_objective(
            recipe,
            SimpleNamespace(vocabulary_size=30_522, special_ids=special, labelled=False, most_frequent_id=5),
        )
    assert count_parameters(objective) < 5e6
