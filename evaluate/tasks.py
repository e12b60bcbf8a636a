"""What is asked of a model on a set: the kind of problem, its classes, and the measure. How it is
fine-tuned is recipes.py's, where the set lies sets/'s."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.metrics.classes import accuracy, micro_f1, positive_f1, yes_no
from bioshards.evaluate.metrics.correlation import pearson
from bioshards.evaluate.metrics.metric import Metric
from bioshards.evaluate.metrics.multilabel import multilabel_f1
from bioshards.evaluate.metrics.questions import bioasq_factoid, squad
from bioshards.evaluate.metrics.ranking import ranking
from bioshards.evaluate.metrics.tagging import entity_f1, word_f1
from bioshards.evaluate.readers.hoc import HALLMARKS

from . import legacy, tagging
from .answering import Answering
from .classifying import Classifying, Kind
from .examples import Problem
from .readers import chemprot, ddi, scibert
from .recipes import SUITES, Recipe, changed
from .records import Record, Relation
from .results import Result, ResultError
from .tokens import Tokens

Legacy = Literal["electra-truncation", "lower-case", "merged-types", "biobert-tags"]
"""The papers' own ways of reading and counting tags (legacy.py)."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task.

    Attributes:
        set: which benchmark (sets/).
        kind: of problem.
        labels: the classes, if there are any, as models number them.
        pairs: is it about two entities of a text?
    """

    name: str
    set: str
    kind: Kind | Literal["entities", "words", "passages", "questions"]
    metric: Metric
    labels: tuple[str, ...] = ()
    pairs: bool = False

    def own(self, recipe: Recipe) -> Recipe:
        """A recipe without what this kind of task has not, so that a result's settings were in effect."""
        none = Recipe()
        other: dict[str, Any] = {}
        if self.kind not in ("entities", "words"):
            other |= {"tags": none.tags, "head": "bilstm" if "bilstm" in recipe.head else "linear"}
        if not self.pairs:
            other |= {"entities": none.entities, "feature": none.feature}
        if self.kind not in ("class", "ranking"):
            other["class_weights"] = none.class_weights
        if self.kind in ("passages", "questions"):
            other["head"] = "linear"
        else:
            other |= {"squad": none.squad, "stride": none.stride}
        return replace(recipe, **other)

    def problem(
        self, tokens: Tokens, recipe: Recipe, train: Sequence[Record], ways: Iterable[Legacy]
    ) -> Problem:
        """The problem for a model.

        Raises:
            ValueError: the recipe wants entities that the set's files do not have.
        """
        shown = recipe.entities != "dummies" or recipe.feature != "cls"
        if shown and not all(isinstance(one, Relation) for one in train):
            raise InvalidValueError(
                f"--entities {recipe.entities} and --feature {recipe.feature} need to know where entities "
                f"are, and the files of {self.set} do not tell: leave both at dummies and cls"
            )
        match self.kind:
            case "entities" | "words":
                return tagging.Tagging(tokens, recipe, tagging.types_of(train), "lower-case" in ways)
            case "passages" | "questions":
                return Answering(tokens, recipe, by_question=self.kind == "questions")
            case kind:
                return Classifying(tokens, recipe, kind, self.labels)

    def ways(self, asked: Iterable[Legacy]) -> list[Legacy]:
        """Of the papers' ways those that this task can have: they are of entities."""
        return sorted(set(asked)) if self.kind == "entities" else []

    def counted(self, ways: Iterable[Legacy]) -> Metric:
        """The measure, or what a paper took for it."""
        metric = legacy.biobert_f1() if "biobert-tags" in ways else self.metric
        return legacy.merged_types(metric) if "merged-types" in ways else metric


def _entities(name: str) -> Task:
    return Task(name, name, "entities", entity_f1())


def _pairs(name: str, labels: tuple[str, ...], negative: str | None) -> Task:
    return Task(name, name, "class", micro_f1(labels, negative), labels, pairs=True)


_YES_NO: Final = ("no", "yes")
_RELEVANT: Final = ("0", "1")
_ALL: Final = (
    *(_entities(name) for name in ("bc5-chem", "bc5-disease", "ncbi-disease", "bc2gm", "jnlpba")),
    *(_entities(name) for name in ("bc4chemd", "linnaeus", "s800", "bc5cdr-merged", "jnlpba-typed")),
    Task("ebm-pico", "ebm-pico", "words", word_f1(("PAR", "INT", "OUT"))),
    _pairs("chemprot", ("false", *chemprot.GROUPS), "false"),
    _pairs("chemprot-blue", ("false", *chemprot.GROUPS), "false"),
    _pairs("chemprot-lim-kang", ("False", *chemprot.GROUPS), "False"),
    _pairs("chemprot-scibert", scibert.CHEMPROT, None),
    _pairs("ddi", ddi.LABELS, ddi.NEGATIVE),
    _pairs("ddi-blue", ddi.LABELS, ddi.NEGATIVE),
    Task("gad", "gad", "class", positive_f1("1"), ("0", "1"), pairs=True),
    Task("biosses", "biosses", "number", pearson()),
    Task("hoc", "hoc", "classes", multilabel_f1(HALLMARKS), HALLMARKS),
    Task("pubmedqa", "pubmedqa", "class", accuracy(("yes", "no", "maybe")), ("yes", "no", "maybe")),
    Task("bioasq-yesno", "bioasq-yesno", "class", accuracy(_YES_NO), _YES_NO),
    Task("yesno-ideal", "yesno-ideal", "class", yes_no(), _YES_NO),
    Task("factoid-8b", "factoid-8b", "passages", squad()),
    Task("factoid-7b", "factoid-7b", "questions", bioasq_factoid()),
    Task("reranker", "reranker", "ranking", ranking(), _RELEVANT),
    Task("reranker-weighted", "reranker", "ranking", ranking(), _RELEVANT),
)
TASKS: Final = {task.name: task for task in _ALL}


def metric_of(result: Result) -> Metric:
    """By which measure a result was scored.

    Raises:
        ResultError: there is no such task, or it is measured in another way by now.
    """
    task = TASKS.get(result["task"])
    metric = task.counted(result["legacy"]) if task else None  # type: ignore[arg-type]  # of a file
    if metric is None or list(metric.statistics) != result["units"]["names"]:
        raise ResultError(
            f"a result of task {result['task']!r} is of another version of bioshards: make the report with it"
        )
    return metric


def defaults_of(result: Result) -> Mapping[str, Any]:
    """The settings that a suite has for a result's task; none, if it is of no suite that there is."""
    recipe = SUITES.get(result["suite"], {}).get(result["task"])
    return TASKS[result["task"]].own(recipe).as_dict() if recipe else {}


@dataclass(frozen=True, slots=True)
class Planned:
    """A task as a suite has it, and how it is fine-tuned."""

    suite: str
    task: Task
    recipe: Recipe

    @property
    def name(self) -> str:
        """``blurb/gad``."""
        return f"{self.suite}/{self.task.name}"


def plan(words: Iterable[str], changes: dict[str, Any]) -> list[Planned]:
    """The tasks that are meant: suites (``blurb``), tasks (``gad``), or a suite's task
    (``bio-electra/gad``).

    Args:
        changes: fields of every recipe.

    Raises:
        ValueError: there is no such suite or task, or a recipe with these changes cannot be.
    """
    chosen: dict[tuple[str, str], Recipe] = {}
    for word in words:
        suite, _, name = word.rpartition("/")
        if word in SUITES:
            chosen |= {(word, one): recipe for one, recipe in SUITES[word].items()}
        elif suite in SUITES and name in SUITES[suite]:
            chosen[suite, name] = SUITES[suite][name]
        elif not suite and name in TASKS:
            first = next(one for one in SUITES if name in SUITES[one])
            chosen[first, name] = SUITES[first][name]
        else:
            known = [*SUITES, *TASKS]
            near = difflib.get_close_matches(word, known, 1)
            hint = f"; {near[0]} is meant?" if near else f". There are: {', '.join(known)}"
            raise InvalidValueError(f"--tasks {word}: there is no such suite or task{hint}")
    return [
        Planned(suite, TASKS[name], TASKS[name].own(changed(recipe, changes)))
        for (suite, name), recipe in chosen.items()
    ]
