"""One score: a model fine-tuned on a task with a seed, what it predicts, and what that comes to."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy
import tokenizers
import torch
import transformers

from bioshards import __version__
from bioshards.evaluate.metrics.metric import Metric, Numbers

from . import encoder, legacy, recipes, results
from .answering import Answering, by_group
from .encoder import Checkpoint
from .finetune import Epoch, FineTuning, Model
from .prepare import Prepared
from .records import Question, Record, Relation, Sentence
from .relation_inputs import special_tokens
from .results import Result
from .tasks import Legacy
from .tokens import Tokens

Say = Callable[[str], None]


def headed(say: Say, head: str) -> Say:
    """What says each line after a head."""
    return lambda line: say(head + line)


@dataclass(frozen=True, slots=True)
class Trial:
    """What is fine-tuned on what.

    Attributes:
        ways: of reading and counting that papers had (legacy.py).
        say: takes a line of progress.
    """

    checkpoint: Checkpoint
    prepared: Prepared
    seed: int
    device: torch.device
    ways: Sequence[Legacy]
    say: Say

    @property
    def metric(self) -> Metric:
        """What is measured."""
        return self.prepared.planned.task.counted(self.ways)


@dataclass(slots=True)
class Tuned:
    """A fine-tuned model.

    Attributes:
        best: the number of the epoch whose weights it has.
        dev: its figures on dev, where it was chosen by them.
    """

    trial: Trial
    tuning: FineTuning
    tokens: Tokens
    epochs: list[Epoch]
    best: int
    dev: dict[str, float] | None


def tune(trial: Trial) -> Tuned:
    """Fine-tune a model on a task's training part; on SQuAD before or with it, where the recipe says so.

    Raises:
        NaNLossError: the loss is none.
        ModelError: the checkpoint cannot be loaded.
    """
    planned, parts = trial.prepared.planned, trial.prepared.parts
    recipe, train = planned.recipe, list(parts["train"])
    tokens = trial.checkpoint.tokens()
    if any(isinstance(one, Relation) for one in train):
        tokens.tokenizer.add_tokens(list(special_tokens(recipe.entities)))
    problem = planned.task.problem(tokens, recipe, train, trial.ways)
    torch.manual_seed(trial.seed)
    body = encoder.load(trial.checkpoint, len(tokens.tokenizer))
    model = Model(body, problem.head(body.width)).to(trial.device)
    padding = tokens.tokenizer.pad_token_id or 0
    if recipe.squad == "first":
        first = replace(recipes.SQUAD, precision=recipe.precision)
        reader = Answering(tokens, first, by_question=False)
        before = FineTuning(model, reader, first, padding, trial.device, headed(trial.say, "SQuAD, "))
        before.learn(trial.prepared.squad, trial.seed, None)
    elif recipe.squad == "joint":
        train += trial.prepared.squad
    tuned = Tuned(
        trial, FineTuning(model, problem, recipe, padding, trial.device, trial.say), tokens, [], 0, None
    )
    seen: list[dict[str, float]] = []

    def dev() -> float:
        seen.append(trial.metric.of(units(tuned, parts["dev"])))
        return seen[-1][trial.metric.main]

    chosen = recipe.keep == "best"
    tuned.epochs, tuned.best = tuned.tuning.learn(train, trial.seed, dev if chosen else None)
    tuned.dev = seen[tuned.best - 1] if chosen else None
    return tuned


def units(tuned: Tuned, records: Sequence[Record]) -> Numbers:
    """What the score of records is made of."""
    return tuned.trial.metric.units(*_sides(tuned, records))


def _sides(tuned: Tuned, records: Sequence[Record]) -> tuple[list[Any], list[Any]]:
    """What is right and what is predicted; with ELECTRA's truncation, only of the words that it would
    have read."""
    gold, predicted = tuned.tuning.problem.gold(records), tuned.tuning.predict(records)
    if "electra-truncation" not in tuned.trial.ways:
        return gold, predicted
    sentences = [one for one in records if isinstance(one, Sentence)]
    plain = "lower-case" in tuned.trial.ways
    pieces = tuned.tokens.words([one.words for one in sentences], plain)
    kept = []
    for one, of_words in zip(sentences, pieces, strict=True):
        sizes = {word: len(ids) for word, ids in zip(one.words, of_words, strict=True)}
        kept.append(legacy.words_kept(one.words, sizes.__getitem__, tuned.tuning.recipe.length))
    return tuple([tags[:end] for tags, end in zip(side, kept, strict=True)] for side in (gold, predicted))  # type: ignore[return-value]


def identity(trial: Trial) -> dict[str, Any]:
    """What must be the same for a result not to be made again."""
    prepared = trial.prepared
    return {
        "task": prepared.planned.task.name,
        "suite": prepared.planned.suite,
        "seed": trial.seed,
        "settings": prepared.planned.recipe.as_dict(),
        "sampled": prepared.sampled,
        "legacy": list(trial.ways),
        "data": prepared.data,
    }


def score(tuned: Tuned, began: float) -> tuple[Result, bytes]:
    """The result of a fine-tuned model, and its predictions: a line of JSON for each of the test
    examples."""
    trial, metric = tuned.trial, tuned.trial.metric
    test = trial.prepared.parts["test"]
    gold, predicted = _sides(tuned, test)
    found = metric.units(gold, predicted)
    names = _names(test, len(gold))
    lines = [
        json.dumps({"id": name, "gold": _told(right), "predicted": _told(guess)}, ensure_ascii=False)
        for name, right, guess in zip(names, gold, predicted, strict=True)
    ]
    model = tuned.tuning.model.encoder.model
    result = {
        "format": results.FORMAT,
        "model": {
            "name": trial.checkpoint.name,
            "path": trial.checkpoint.folder,
            "type": trial.checkpoint.type,
            "parameters": sum(one.numel() for one in model.parameters()),
            "sha256": trial.checkpoint.sha256,
        },
        **identity(trial),
        "metric": metric.name,
        "main": metric.main,
        "scores": {
            **({"dev": tuned.dev} if tuned.dev else {}),
            "test": metric.of(found) | _by_batch(metric, found, test),
        },
        "units": {
            "names": list(metric.statistics),
            "test": [[_whole(number) for number in column] for column in found.T.tolist()],
            "ids": _sha256(names, gold),
            **_documents(test, len(found)),
        },
        "epochs": [asdict(one) for one in tuned.epochs],
        "best_epoch": tuned.best,
        "seconds": round(time.monotonic() - began, 1),
        "device": device_name(trial.device),
        "versions": versions(),
    }
    return result, "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")  # type: ignore[return-value]


def _documents(records: Sequence[Record], examples: int) -> dict[str, list[int]]:
    """The number of each example's document, where all records name one and each is an example."""
    names = [one.document for one in records]
    if len(names) != examples or not all(names):
        return {}
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return {"documents": [numbers[name] for name in names]}


def _by_batch(metric: Metric, found: Numbers, records: Sequence[Record]) -> dict[str, float]:
    """Figures of each of several test batches, as BioASQ and ELECTRAMed (table 9) have them; none without."""
    questions = [one for one in records if isinstance(one, Question)]
    batches = [questions[members[0]].batch for members in by_group(questions).values()]
    if len(batches) != len(found) or not any(batches):
        return {}
    return {
        f"{name} of batch {batch}": figure
        for batch in sorted(set(batches))
        for name, figure in metric.of(found[[one == batch for one in batches]]).items()
    }


def device_name(device: torch.device) -> str:
    """``cpu``, or which GPU, and whether its float32 is rounded to TF32 in products."""
    if device.type != "cuda":
        return device.type
    rounded = ", TF32" if torch.get_float32_matmul_precision() == "high" else ""
    return f"{torch.cuda.get_device_name(device)}{rounded}"


def versions() -> dict[str, str]:
    """Of what has a say in the numbers."""
    libraries = {one.__name__: one.__version__ for one in (numpy, tokenizers, torch, transformers)}
    return {"bioshards": __version__, "python": platform.python_version(), **libraries}


def _sha256(names: Sequence[str], gold: Sequence[Any]) -> str:
    """Of examples' ids and what is right of each: an id may be no more than the number of a line."""
    lines = json.dumps([[name, _told(right)] for name, right in zip(names, gold, strict=True)])
    return hashlib.sha256(lines.encode()).hexdigest()


def _names(records: Sequence[Record], predicted: int) -> list[str]:
    """What each prediction is about: a record, or a question with all of its passages."""
    if predicted == len(records):
        return [one.id for one in records]
    return list(by_group([one for one in records if isinstance(one, Question)]))


def _told(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else value


def _whole(number: float) -> float:
    return int(number) if number == int(number) else number
