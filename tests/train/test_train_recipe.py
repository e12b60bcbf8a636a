"""Training recipes: options, TOML files, presets, and parameter counts of the presets' models."""

from __future__ import annotations

import dataclasses
import os
import shlex
import subprocess
import typing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bioshards.train.__main__ import main
from bioshards.train.models.objectives import ElectraObjective
from bioshards.train.models.weights import build_objective
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
    assert all(name in stdout for name in PRESETS)
    for field in dataclasses.fields(TrainRecipe):
        assert f"--{field.name.replace('_', '-')}" in stdout
        # argparse breaks lines at hyphens too
        help_text = FIELDS[field.name][1].replace("%%", "%")
        assert f"{help_text} (default: {field.default})".replace(" ", "") in stdout.replace(" ", "")


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

SHARED = {
    "beta1": 0.9,
    "beta2": 0.999,
    "epsilon": 1e-6,
    "weight_decay": 0.01,
    "grad_clip": 1.0,
    "mask_rate": 0.15,
    "final_mask_rate": 0,
    "max_positions": 512,
    "adversarial_weight": 0,
}
OF_FAMILY: dict[str, dict[str, Any]] = {
    # google-research/electra: optimization.py, pretrain_helpers.py, configure_pretraining.py
    "electra": {
        "optimizer": "adam",
        "schedule": "electra",
        "mask_unit": "token",
        "max_predictions_per_seq": 0,
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "bias_correction": False,
        "layer_decay": 1.0,
        "generator_layers_fraction": 1.0,
    },
    # Gu et al. 2020, section 4.1; google-research/bert for what it leaves open; no limit of predictions
    "bert": {
        "optimizer": "adam",
        "schedule": "triangular",
        "mask_unit": "word",
        "max_predictions_per_seq": 0,
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "bias_correction": False,
    },
    # google-research/albert, optimization.py and the configurations of its second version
    "albert": {
        "optimizer": "lamb",
        "schedule": "bert",
        "mask_unit": "ngram",
        "max_predictions_per_seq": 20,
        "dropout": 0,
        "attention_dropout": 0,
    },
}
COLUMNS = (
    "family",
    "hidden_size",
    "num_layers",
    "num_heads",
    "intermediate_size",
    "embedding_size",
    "batch_size",
    "learning_rate",
    "steps",
    "warmup",
    "start_from",
)
PUBLISHED = """
electra-small        electra   256  12   4  1024  128   128  5e-4     1_000_000  10_000  random
electra-base         electra   768  12  12  3072  768   256  2e-4     1_000_000  10_000  random
bio-electra          electra   256  12   4  1024  128    64  5e-4     1_800_000  10_000  random
bio-electra-pp       electra   256  12   4  1024  128    64  5e-4     3_600_000  10_000  run
electramed           electra   768  12  12  3072  768   256  2e-4     1_000_000  10_000  random
pubmedbert           bert      768  12  12  3072  768  8192  6e-4        62_500     0.1  random
pubmedbert-pmc       bert      768  12  12  3072  768  8192  6e-4        62_500     0.1  random
pubmedbert-pmc-100k  bert      768  12  12  3072  768  8192  6e-4       100_000     0.1  random
bioalbert            albert    768  12  12  3072  128  1024  0.00176    200_000    3125  checkpoint
bioalbert-pmc        albert    768  12  12  3072  128  1024  0.00176    470_000    3125  run
bioalbert-large      albert   1024  24  16  4096  128   256  0.00062    200_000    3125  checkpoint
bioalbert-large-pmc  albert   1024  24  16  4096  128   256  0.00062    470_000    3125  run
""".strip().splitlines()
"""Values of :data:`COLUMNS` by preset.  Sources:

Clark et al. 2020; Ozyurt 2020 and its repository, pmc_config.json.example and pmc_config_v2.json.example;
Miolo et al. 2021, table 1; Gu et al. 2020, sections 4.1 and 5: the same steps on abstracts and articles, and
60 % more; Naseem et al. 2020, tables I and II: 270,000 steps on PMC after 200,000 on PubMed.
"""


def test_preset_names() -> None:
    assert PRESETS.keys() == {"tiny", *(line.split()[0] for line in PUBLISHED)}


@pytest.mark.parametrize("line", PUBLISHED, ids=lambda line: line.split()[0])
def test_preset_values_are_as_published(line: str) -> None:
    preset, *values = line.split()
    recipe = PRESETS[preset].to_dict()
    for name, value in zip(COLUMNS, values, strict=True):
        assert recipe[name] == (value if isinstance(recipe[name], str) else float(value)), name
    fixed = {**SHARED, **OF_FAMILY[recipe["family"]]}
    assert {name: recipe[name] for name in fixed} == fixed
    machine_fields = {"precision", "compile", "seed"}
    other_fields = {
        "generator_hidden_fraction",
        "generator_layers_fraction",
        "bias_correction",
        "layer_decay",
    }
    assert machine_fields <= recipe.keys() - fixed.keys() - {*COLUMNS} <= machine_fields | other_fields


def test_replacement_fractions_of_families() -> None:
    """ELECTRA: 85 % [MASK] and no random tokens. BERT and ALBERT: 80 % and 10 %."""
    fractions = {
        name: (family.mask_token_fraction, family.random_token_fraction) for name, family in FAMILIES.items()
    }
    assert fractions == {"electra": (0.85, 0.0), "bert": (0.8, 0.1), "albert": (0.8, 0.1)}


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


def build_on_meta(recipe: TrainRecipe, vocabulary: int) -> Any:
    """Build the models of a recipe on the meta device."""
    special = {"[PAD]": 0, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
    dataset_info = SimpleNamespace(
        vocabulary_size=vocabulary, special_ids=special, labelled=True, most_frequent_id=5
    )
    with torch.device("meta"):
        return build_objective(recipe, dataset_info)


def count_parameters(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("preset", "vocabulary", "num_parameters", "num_millions"),
    [
        # millions of parameters in the papers: ELECTRA table 1, BERT section 3, ALBERT table 1
        ("electra-small", 30_522, 13_549_057, 14),
        ("bio-electra", 31_620, 13_689_601, 14),
        ("electra-base", 30_522, 109_483_009, 110),
        ("electramed", 31_090, 109_919_233, 110),
        ("pubmedbert", 30_522, 109_482_240, 110),
        ("bioalbert", 30_000, 11_683_584, 12),
        ("bioalbert-large", 30_000, 17_683_968, 18),
    ],
)
def test_models_of_presets_have_published_parameter_counts(
    preset: str, vocabulary: int, num_parameters: int, num_millions: int
) -> None:
    """Count the discriminator with its head, and the encoder of BERT and ALBERT."""
    objective = build_on_meta(PRESETS[preset], vocabulary)
    model = objective.discriminator if isinstance(objective, ElectraObjective) else objective.encoder
    assert count_parameters(model) == num_parameters
    assert num_parameters / 1e6 == pytest.approx(num_millions, rel=0.035)


@pytest.mark.parametrize(
    ("preset", "sizes", "num_parameters"),
    [("bio-electra", (64, 1, 12, 256), 648_260), ("electramed", (256, 4, 12, 1024), 9_904_516)],
)
def test_generators_of_presets_are_fractions_of_the_discriminator(
    preset: str, sizes: tuple[int, ...], num_parameters: int
) -> None:
    """Their embeddings are the discriminator's (google-research/electra, configure_pretraining.py)."""
    objective = build_on_meta(PRESETS[preset], 31_620)
    config = objective.generator.config
    assert (
        *(config.hidden_size, config.num_attention_heads, config.num_hidden_layers),
        config.intermediate_size,
    ) == sizes
    assert count_parameters(objective) - count_parameters(objective.discriminator) == num_parameters


def test_default_model_is_small() -> None:
    recipe = dataclasses.replace(TrainRecipe(), family="electra")
    assert count_parameters(build_on_meta(recipe, 30_522)) < 5e6
