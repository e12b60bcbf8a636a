"""What is asked of a model on a set: the kind of problem, its classes, and the measure. How it is
fine-tuned is suites.py's, where the set lies sets/'s."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.benchmarks.readers import chemprot, ddi, scibert
from bioshards.evaluate.benchmarks.readers.hoc import HALLMARKS
from bioshards.evaluate.benchmarks.record_types import Record, Relation
from bioshards.evaluate.config.fine_tune_recipe import FineTuneRecipe, override_recipe
from bioshards.evaluate.config.suites import SUITES
from bioshards.evaluate.metrics import legacy
from bioshards.evaluate.metrics.correlation import pearson
from bioshards.evaluate.metrics.metric import Metric
from bioshards.evaluate.metrics.multilabel import multilabel_f1
from bioshards.evaluate.metrics.qa import bioasq_factoid, squad_f1
from bioshards.evaluate.metrics.ranking import mean_reciprocal_rank
from bioshards.evaluate.metrics.single_label import accuracy, micro_f1, positive_f1, yes_no_f1
from bioshards.evaluate.metrics.tag_f1 import entity_f1, word_f1
from bioshards.evaluate.modeling.tokenization import ModelTokenizer

from .adapter import TaskAdapter
from .classification import Classification, ClassificationType
from .question_answering import QuestionAnswering
from .token_classification import ElectraTruncation, TokenClassification, find_entity_types

LegacyMode = Literal["electra-truncation", "lower-case", "merged-types", "biobert-tags"]
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
    benchmark: str
    problem_type: (
        ClassificationType | Literal["entities", "word_labels", "span_per_passage", "span_per_question"]
    )
    metric: Metric
    labels: tuple[str, ...] = ()
    has_entity_pairs: bool = False

    def drop_unused_settings(self, recipe: FineTuneRecipe) -> FineTuneRecipe:
        """A recipe without what this kind of task has not, so that a result's settings were in effect."""
        defaults = FineTuneRecipe()
        unused_settings: dict[str, Any] = {}
        if self.problem_type not in ("entities", "word_labels"):
            unused_settings |= {
                "tag_scheme": defaults.tag_scheme,
                "head": "bilstm" if "bilstm" in recipe.head else "linear",
            }
        if not self.has_entity_pairs:
            unused_settings |= {
                "entity_format": defaults.entity_format,
                "relation_feature": defaults.relation_feature,
            }
        if self.problem_type not in ("single_label", "ranking"):
            unused_settings["class_weights"] = defaults.class_weights
        if self.problem_type in ("span_per_passage", "span_per_question"):
            unused_settings["head"] = "linear"
        else:
            unused_settings |= {"squad_transfer": defaults.squad_transfer, "stride": defaults.stride}
        return replace(recipe, **unused_settings)

    def make_adapter(
        self,
        tokenizer: ModelTokenizer,
        recipe: FineTuneRecipe,
        train_records: Sequence[Record],
        legacy_modes: Collection[LegacyMode],
    ) -> TaskAdapter:
        """The problem for a model.

        Raises:
            ValueError: the recipe wants entities that the set's files do not have.
        """
        needs_entities = recipe.entity_format != "placeholders" or recipe.relation_feature != "cls"
        if needs_entities and not all(isinstance(record, Relation) for record in train_records):
            raise InvalidValueError(
                f"--entity-format {recipe.entity_format} and --relation-feature {recipe.relation_feature} need entity "
                f"positions, which the files of {self.benchmark} do not have: use placeholders and cls"
            )
        match self.problem_type:
            case "entities" | "word_labels":
                adapter_type = (
                    ElectraTruncation if "electra-truncation" in legacy_modes else TokenClassification
                )
                return adapter_type(
                    tokenizer,
                    recipe,
                    find_entity_types(train_records),
                    should_lowercase="lower-case" in legacy_modes,
                )
            case "span_per_passage" | "span_per_question":
                return QuestionAnswering(
                    tokenizer, recipe, is_per_question=self.problem_type == "span_per_question"
                )
            case classification_type:
                return Classification(tokenizer, recipe, classification_type, self.labels)

    def applicable_legacy_modes(self, requested: Iterable[LegacyMode]) -> list[LegacyMode]:
        """Of the papers' ways those that this task can have: they are of entities."""
        return sorted(set(requested)) if self.problem_type == "entities" else []

    def metric_for(self, legacy_modes: Collection[LegacyMode]) -> Metric:
        """The measure, or what a paper took for it."""
        metric = legacy.biobert_tag_f1() if "biobert-tags" in legacy_modes else self.metric
        return legacy.merge_entity_types(metric) if "merged-types" in legacy_modes else metric


def _ner_task(name: str) -> Task:
    return Task(name, name, "entities", entity_f1())


def _relation_task(name: str, labels: tuple[str, ...], negative: str | None) -> Task:
    return Task(name, name, "single_label", micro_f1(labels, negative), labels, has_entity_pairs=True)


_YES_NO_LABELS: Final = ("no", "yes")
_RELEVANCE_LABELS: Final = ("0", "1")
_ALL_TASKS: Final = (
    *(_ner_task(name) for name in ("bc5-chem", "bc5-disease", "ncbi-disease", "bc2gm", "jnlpba")),
    *(_ner_task(name) for name in ("bc4chemd", "linnaeus", "s800", "bc5cdr-merged", "jnlpba-typed")),
    Task("ebm-pico", "ebm-pico", "word_labels", word_f1(("PAR", "INT", "OUT"))),
    _relation_task("chemprot", ("false", *chemprot.GROUPS), "false"),
    _relation_task("chemprot-blue", ("false", *chemprot.GROUPS), "false"),
    _relation_task("chemprot-lim-kang", ("False", *chemprot.GROUPS), "False"),
    _relation_task("chemprot-scibert", scibert.CHEMPROT_LABELS, None),
    _relation_task("ddi", ddi.LABELS, ddi.NEGATIVE),
    _relation_task("ddi-blue", ddi.LABELS, ddi.NEGATIVE),
    Task("gad", "gad", "single_label", positive_f1("1"), ("0", "1"), has_entity_pairs=True),
    Task("biosses", "biosses", "regression", pearson()),
    Task("hoc", "hoc", "multi_label", multilabel_f1(HALLMARKS), HALLMARKS),
    Task("pubmedqa", "pubmedqa", "single_label", accuracy(("yes", "no", "maybe")), ("yes", "no", "maybe")),
    Task("bioasq-yesno", "bioasq-yesno", "single_label", accuracy(_YES_NO_LABELS), _YES_NO_LABELS),
    Task("yesno-ideal", "yesno-ideal", "single_label", yes_no_f1(), _YES_NO_LABELS),
    Task("factoid-8b", "factoid-8b", "span_per_passage", squad_f1()),
    Task("factoid-7b", "factoid-7b", "span_per_question", bioasq_factoid()),
    Task("reranker", "reranker", "ranking", mean_reciprocal_rank(), _RELEVANCE_LABELS),
    Task("reranker-weighted", "reranker", "ranking", mean_reciprocal_rank(), _RELEVANCE_LABELS),
)
TASKS: Final = {task.name: task for task in _ALL_TASKS}


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A task as a suite has it, and how it is fine-tuned."""

    suite: str
    task: Task
    recipe: FineTuneRecipe

    @property
    def name(self) -> str:
        """``blurb/gad``."""
        return f"{self.suite}/{self.task.name}"


def plan_tasks(selectors: Iterable[str], overrides: Mapping[str, Any]) -> list[PlannedTask]:
    """The tasks that are meant: suites (``blurb``), tasks (``gad``), or a suite's task
    (``bio-electra/gad``).

    Args:
        overrides: fields of every recipe.

    Raises:
        ValueError: there is no such suite or task, or a recipe with these changes cannot be.
    """
    recipes: dict[tuple[str, str], FineTuneRecipe] = {}
    for selector in selectors:
        suite, _, task_name = selector.rpartition("/")
        if selector in SUITES:
            recipes |= {(selector, name): recipe for name, recipe in SUITES[selector].items()}
        elif suite in SUITES and task_name in SUITES[suite]:
            recipes[suite, task_name] = SUITES[suite][task_name]
        elif not suite and task_name in TASKS:
            first_suite = next(name for name in SUITES if task_name in SUITES[name])
            recipes[first_suite, task_name] = SUITES[first_suite][task_name]
        else:
            known_names = [*SUITES, *TASKS]
            matches = difflib.get_close_matches(selector, known_names, 1)
            hint = f"; {matches[0]} is meant?" if matches else f". There are: {', '.join(known_names)}"
            raise InvalidValueError(f"--tasks {selector}: there is no such suite or task{hint}")
    return [
        PlannedTask(
            suite, TASKS[task_name], TASKS[task_name].drop_unused_settings(override_recipe(recipe, overrides))
        )
        for (suite, task_name), recipe in recipes.items()
    ]
