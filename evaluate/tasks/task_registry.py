"""Tasks by name, the selection of tasks by ``--tasks``, and the interface of a task to the fine-tuning loop.

A benchmark's TaskSpec (benchmarks/catalogue.toml) defines its task. Recipes are in recipes.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from bioshards.corpus.errors import InvalidValueError, suggest_nearest
from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS, MetricName, TaskSpec
from bioshards.evaluate.benchmarks.records import Relation
from bioshards.evaluate.metrics.metric import Metric
from bioshards.evaluate.metrics.tags import biobert_tag_f1, entity_f1, merge_entity_types, word_f1
from bioshards.evaluate.metrics.text_metrics import (
    accuracy,
    bioasq_factoid,
    mean_reciprocal_rank,
    micro_f1,
    multilabel_f1,
    pearson,
    positive_f1,
    squad_f1,
    yes_no_f1,
)
from bioshards.evaluate.recipes import DEFAULT_SUITE, SUITES, FineTuneRecipe, LegacyMode, override_recipe

if TYPE_CHECKING:  # torch takes long to import, and reports need no adapter
    from torch import Tensor, nn

    from bioshards.evaluate.encoder import EncodedBatch, Example, ModelTokenizer


@dataclass(frozen=True, slots=True)
class Task:
    """A task on a benchmark, named by it or, if it has several, apart."""

    name: str
    benchmark: str
    spec: TaskSpec
    metric: Metric

    def drop_unused_settings(self, recipe: FineTuneRecipe) -> FineTuneRecipe:
        """Reset settings that this kind of task ignores, so that results list settings in effect."""
        defaults, unused_names = FineTuneRecipe(), list[str]()
        changes: dict[str, Any] = {}
        if self.spec.problem_type not in ("entities", "word_labels"):
            unused_names.append("tag_scheme")
            changes["head"] = "bilstm" if "bilstm" in recipe.head else "linear"
        if not self.spec.has_entity_pairs:
            unused_names += ["entity_format", "relation_feature"]
        if self.spec.problem_type not in ("single_label", "ranking"):
            unused_names.append("class_weights")
        if self.spec.problem_type in ("span_per_passage", "span_per_question"):
            changes["head"] = "linear"
        else:
            unused_names += ["squad_transfer", "stride", "answer_head"]
        return replace(recipe, **changes, **{name: getattr(defaults, name) for name in unused_names})

    def metric_for(self, legacy_modes: Collection[str]) -> Metric:
        """Return the metric, or its legacy variant."""
        metric = biobert_tag_f1() if "biobert-tags" in legacy_modes else self.metric
        return merge_entity_types(metric) if "merged-types" in legacy_modes else metric


_METRICS: Final[Mapping[MetricName, Callable[[TaskSpec], Metric]]] = {
    "accuracy": lambda spec: accuracy(spec.labels),
    "micro_f1": lambda spec: micro_f1(spec.labels, spec.negative_label),
    "positive_f1": lambda spec: positive_f1(spec.labels[1]),
    "yes_no_f1": lambda _: yes_no_f1(),
    "multilabel_f1": lambda spec: multilabel_f1(spec.labels),
    "pearson": lambda _: pearson(),
    "mean_reciprocal_rank": lambda _: mean_reciprocal_rank(),
    "entity_f1": lambda _: entity_f1(),
    "word_f1": lambda spec: word_f1(spec.labels),
    "squad_f1": lambda _: squad_f1(),
    "bioasq_factoid": lambda _: bioasq_factoid(),
}


def _list_tasks() -> Iterator[Task]:
    for name, benchmark in BENCHMARKS.items():
        if spec := benchmark.task:
            yield (task := Task(name, name, spec, _METRICS[spec.metric](spec)))
            if name == "reranker":
                yield replace(task, name="reranker-weighted")


TASKS: Final[Mapping[str, Task]] = {task.name: task for task in _list_tasks()}
"""All tasks by name: one for each benchmark that has a TaskSpec, and a second one of ``reranker``."""


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A task of a suite with its recipe, and the legacy modes that apply: none but to entities."""

    suite: str
    task: Task
    recipe: FineTuneRecipe
    legacy_modes: tuple[LegacyMode, ...] = ()

    @property
    def name(self) -> str:
        """Suite and task, such as ``blurb/gad``."""
        return f"{self.suite}/{self.task.name}"

    @property
    def metric(self) -> Metric:
        """Metric of the task, or its legacy variant."""
        return self.task.metric_for(self.legacy_modes)


def find_recipe(suite: str, task_name: str) -> FineTuneRecipe | None:
    """Return the recipe of a suite for a task, or None.

    A task that no suite lists belongs to ``DEFAULT_SUITE`` and has the default recipe.
    """
    if task_name in SUITES.get(suite, {}):
        return SUITES[suite][task_name]
    is_unlisted = not any(task_name in recipes for recipes in SUITES.values())
    return FineTuneRecipe() if suite == DEFAULT_SUITE and task_name in TASKS and is_unlisted else None


def plan_tasks(
    selectors: Iterable[str], overrides: Mapping[str, Any], legacy_modes: Iterable[LegacyMode] = ()
) -> list[PlannedTask]:
    """Return the selected tasks with their recipes.

    Args:
        selectors: suites (``blurb``), tasks that one suite has (``hoc``), or ``bio-electra/gad``.
        overrides: recipe fields that replace those of every task.
        legacy_modes: those of all tasks of entities.

    Raises:
        InvalidValueError: a selector is unknown, several suites have a task, or a changed recipe is invalid.
    """
    planned_tasks = []
    for suite, task_name in dict.fromkeys(pair for name in selectors for pair in _select_tasks(name)):
        task = TASKS[task_name]
        recipe = find_recipe(suite, task_name) or FineTuneRecipe()
        recipe = task.drop_unused_settings(override_recipe(recipe, overrides))
        is_entities = task.spec.problem_type == "entities"
        applicable_modes = tuple(sorted(set(legacy_modes))) if is_entities else ()
        planned_tasks.append(PlannedTask(suite, task, recipe, applicable_modes))
    return planned_tasks


def _select_tasks(selector: str) -> list[tuple[str, str]]:
    """Return the suite and the name of each task of a selector."""
    suite, _, task_name = selector.rpartition("/")
    if selector in SUITES:
        return [(selector, name) for name in SUITES[selector]]
    if suite in SUITES and task_name in SUITES[suite]:
        return [(suite, task_name)]
    if not suite and task_name in TASKS:
        suites = [name for name in SUITES if task_name in SUITES[name]] or [DEFAULT_SUITE]
        if len(suites) == 1:
            return [(suites[0], task_name)]
        choices = " or ".join(f"{name}/{task_name}" for name in suites)
        raise InvalidValueError(
            f"--tasks {task_name}: {len(suites)} suites have it, each with its own settings: give {choices}"
        )
    known_names = [*SUITES, *TASKS]
    hint = suggest_nearest(selector, known_names) or f". There are: {', '.join(known_names)}"
    raise InvalidValueError(f"--tasks {selector}: there is no such suite or task{hint}")


class TaskAdapter(Protocol):
    """Conversion between records of one type, model inputs and predictions for one kind of task."""

    def make_examples(self, records: Sequence[Any], is_training: bool) -> list[Example]:
        """Tokenize records; with ``is_training``, also set the targets."""

    def build_head(self, hidden_size: int) -> nn.Module:
        """Return a head with random weights for an encoder of this width."""

    def loss(self, head: Any, batch: EncodedBatch) -> Tensor:
        """Return the mean loss of a batch."""

    def predict(self, head: Any, batch: EncodedBatch) -> list[Any]:
        """Return a prediction for each example of a batch."""

    def merge_predictions(
        self, records: Sequence[Any], examples: Sequence[Example], predictions: Sequence[Any]
    ) -> list[Any]:
        """Merge predictions of examples into one per record or group, in the metric's form."""

    def gold_labels(self, records: Sequence[Any]) -> list[Any]:
        """Return the gold labels in the order of the merged predictions."""

    def predict_majority(self, train_gold: Sequence[Any], test_gold: Sequence[Any]) -> list[Any]:
        """Return the predictions of a model that knows the labels of train and reads no text.

        Args:
            train_gold: gold labels of train, at least one.
            test_gold: gold labels of test; a prediction for each is returned.
        """


def make_adapter(
    planned_task: PlannedTask, tokenizer: ModelTokenizer, train_records: Sequence[Any]
) -> TaskAdapter:
    """Return the adapter of a task; its tokenizer learns the markers of entities that the recipe asks for.

    Raises:
        InvalidValueError: the recipe needs entity positions that the benchmark's files do not have, or has
            another number of class weights than there are classes.
    """
    from bioshards.evaluate.tasks import classification, input_texts, question_answering, tagging

    task, recipe = planned_task.task, planned_task.recipe
    has_relations = all(isinstance(record, Relation) for record in train_records)
    if (recipe.entity_format != "placeholders" or recipe.relation_feature != "cls") and not has_relations:
        raise InvalidValueError(
            f"--entity-format {recipe.entity_format} and --relation-feature {recipe.relation_feature} need "
            f"entity positions, which the files of {task.benchmark} do not have: use placeholders and cls"
        )
    if recipe.entity_format == "markers":
        tokenizer.hf_tokenizer.add_tokens(list(input_texts.ENTITY_MARKERS))
    labels = task.spec.labels
    match task.spec.problem_type:
        case "entities" | "word_labels":
            entity_types = tagging.find_entity_types(train_records)
            return tagging.Tagging(tokenizer, recipe, entity_types, planned_task.legacy_modes)
        case "span_per_passage" | "span_per_question" as span_type:
            return question_answering.QuestionAnswering(tokenizer, recipe, span_type == "span_per_question")
        case problem_type:
            weights = classification.compute_class_weights(recipe.class_weights, labels, train_records)
            return classification.Classification(tokenizer, recipe, problem_type, labels, weights)
