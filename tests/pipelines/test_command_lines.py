"""Wrong command lines: every command of every program answers in one line, before a slow import."""

from __future__ import annotations

import json
import subprocess
import sys
import typing
from collections.abc import Mapping

import pytest

from bioshards.corpus import __main__ as corpus_command
from bioshards.corpus.document_presets import PMC_PRESETS, PUBMED_PRESETS, TEXT_PRESETS
from bioshards.evaluate import __main__ as evaluate_command
from bioshards.pipelines.cli import PIPELINES
from bioshards.pipelines.pmc_to_shards import PmcOptions
from bioshards.pipelines.pubmed_to_shards import PubMedOptions
from bioshards.pipelines.shards_to_pretraining import PretrainingOptions
from bioshards.pipelines.text_to_shards import TextOptions
from bioshards.train.presets import PRESETS as TRAIN_PRESETS
from bioshards.vocab import __main__ as vocab_command
from bioshards.vocab.options import PRESETS as VOCABULARY_PRESETS
from bioshards.vocab.options import BuildOptions
from bioshards.vocab.pretraining.example_recipes import PRESETS as EXAMPLE_PRESETS

SLOW_LIBRARIES = {
    "apache_beam",
    "torch",
    "transformers",
    "pyarrow",
    "numpy",
    "requests",
    "lxml",
    "tokenizers",
}
PROGRAMS = {
    "corpus": list(corpus_command.COMMANDS),
    "evaluate": list(evaluate_command.COMMANDS),
    "vocab": list(vocab_command.COMMANDS),
    "run": list(PIPELINES),
}
WRONG_OPTIONS = [
    ["train", "DATA", "--outptu", "RUN"],
    ["doctor", "--outptu", "X"],
    ["fetch", "--inptu", "pubmed:"],
    ["run", "fetch", "--inptu", "pubmed:"],
    *(
        [program, name, "--outptu", "X"]
        for program, names in PROGRAMS.items()
        for name in names
        if name != "fetch"
    ),
]
ABSENT_PRESETS = {
    "pubmed_to_shards": ("bio-electra-pp", "its text is of articles: pmc_to_shards has it"),
    "pmc_to_shards": ("electramed", "its text is of abstracts: pubmed_to_shards has it"),
    "text_to_shards": ("pubmedbert-pmc", "a model of pubmedbert: give that"),
    "shards_to_pretraining": ("bioalbert-large-pmc", "a model of bioalbert: give that"),
}
OTHER_MISTAKES = [
    *(
        (
            ["run", name, "--preset", preset],
            f"argument --preset: {preset} is not here ({reason}); choose from ",
        )
        for name, (preset, reason) in ABSENT_PRESETS.items()
    ),
    (
        ["vocab", "build", "X", "--output", "V", "--preset", "bio-electra-pp"],
        "argument --preset: bio-electra-pp is not here (it has bio-electra's vocabulary: give that); choose ",
    ),
    (["doctor", "gpu"], "invalid choice: 'gpu'"),
    (["trian"], "unknown command 'trian' (did you mean train?)"),
    (["run", "pubmed_to_shard"], "unknown pipeline 'pubmed_to_shard' (did you mean pubmed_to_shards?)"),
    *(
        ([program, f"{name}x"], f"unknown command '{name}x' (did you mean {name}?)")
        for program, names in PROGRAMS.items()
        if program != "run"
        for name in names
    ),
    (["train", "DATA"], "the following arguments are required: --output"),
    (["train", "DATA", "--output"], "argument --output: expected one argument"),
    (["train", "DATA", "--output", "R", "--steps", "x"], "argument --steps: invalid int value: 'x'"),
    (
        ["train", "DATA", "--output", "R", "--preset", "bioalbrt"],
        "argument --preset: invalid choice: 'bioalbrt' (did you mean bioalbert?); choose from tiny, ",
    ),
    (["vocab", "build"], "the following arguments are required: "),
    (["vocab", "build", "X", "--output", "V", "--size", "x"], "argument --size: invalid "),
]
HELP = [
    ["list"],
    ["--help"],
    *([name, "--help"] for name in ("corpus", "vocab", "train", "evaluate")),
    *(["run", name, "--help"] for name in PIPELINES),
]
REFUSED_RUNS = [
    "pubmed_to_shards --max-shard-mb none",
    "pubmed_to_shards --input a.xml b.xml --output o",
    "pubmed_to_shards --output o --runner=DirectRunner b.xml",
    "text_to_shards --input a.txt",
    "shards_to_words --output o",
    "shards_to_pretraining --input a --output o",
    "fetch --input file.xml",
]
SCRIPT = """
import contextlib, io, json, sys
from bioshards.__main__ import main
answers = []
for words in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as error:
            code = error.code
    answers.append([code, out.getvalue(), err.getvalue()])
json.dump([answers, sorted(sys.modules)], sys.stdout)
"""


@pytest.fixture(scope="module")
def answers() -> dict[tuple[str, ...], tuple[int, str, str]]:
    """Exit code, standard output and error of every wrong command line, all in one new process."""
    lines = [
        *HELP,
        *(["run", *line.split()] for line in REFUSED_RUNS),
        *WRONG_OPTIONS,
        *(words for words, _ in OTHER_MISTAKES),
    ]
    completed = subprocess.run(
        [sys.executable, "-c", SCRIPT], input=json.dumps(lines), capture_output=True, text=True, check=True
    )
    found, modules = json.loads(completed.stdout)
    assert not SLOW_LIBRARIES & set(modules)
    return {tuple(words): tuple(answer) for words, answer in zip(lines, found, strict=True)}


def test_help_and_refused_runs_wait_for_no_slow_import(
    answers: dict[tuple[str, ...], tuple[int, str, str]],
) -> None:
    assert {answers[tuple(words)][0] for words in HELP} == {0}
    assert [line.split()[0] for line in answers["list",][1].splitlines()] == list(PIPELINES)
    assert "--min-abstract-words WORDS" in answers["run", "pubmed_to_shards", "--help"][1]
    assert {answers["run", *line.split()][0] for line in REFUSED_RUNS} == {2}


@pytest.mark.parametrize("words", WRONG_OPTIONS, ids=" ".join)
def test_misspelt_option_is_named_with_the_nearest_one(
    words: list[str], answers: dict[tuple[str, ...], tuple[int, str, str]]
) -> None:
    code, out, err = answers[tuple(words)]
    assert (code, out) == (2, "")
    [line] = err.splitlines()
    typed = " ".join(["bioshards", *(words[:2] if words[0] in PROGRAMS else words[:1])])
    assert line.startswith("bioshards: ")
    assert f"unknown option {words[-2]}" in line
    assert line.endswith(f"See {typed} --help")
    has_no_output = ("stats", "verify", "export", "report", "texts")
    assert "did you mean --" in line or words[0] == "doctor" or words[1] in has_no_output


@pytest.mark.parametrize(("words", "message"), OTHER_MISTAKES, ids=lambda value: str(value)[:60])
def test_mistake_is_answered_in_one_line(
    words: list[str], message: str, answers: dict[tuple[str, ...], tuple[int, str, str]]
) -> None:
    code, out, err = answers[tuple(words)]
    assert (code, out) == (2, "")
    [line] = err.splitlines()
    assert line.startswith("bioshards: ")
    assert message in line


@pytest.mark.parametrize(
    ("presets", "options_type"),
    [
        (PUBMED_PRESETS, PubMedOptions),
        (PMC_PRESETS, PmcOptions),
        (TEXT_PRESETS, TextOptions),
        (EXAMPLE_PRESETS, PretrainingOptions),
        (VOCABULARY_PRESETS, BuildOptions),
    ],
)
def test_every_preset_of_train_is_known_or_explained(
    presets: Mapping[str, object], options_type: type
) -> None:
    """Also: no command has a preset that train does not have."""
    (option,) = typing.get_type_hints(options_type, include_extras=True)["preset"].__metadata__
    assert {*presets} <= {*TRAIN_PRESETS}
    assert {*option.absent_choices, *presets} == {*TRAIN_PRESETS}
    assert not {*option.absent_choices} & {*presets}
