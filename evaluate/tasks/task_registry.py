"""Tasks by name: benchmark, metric and settings; and the selection of tasks by ``--tasks``.

A benchmark's TaskSpec (benchmarks/catalogue.toml) defines its task. Recipes are in config/suites.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from bioshards.corpus.errors import InvalidValueError, suggest_nearest
from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS, MetricName, ProblemType, TaskSpec
from bioshards.evaluate.config.fine_tune_recipe import FineTuneRecipe, LegacyMode, override_recipe
from bioshards.evaluate.config.suites import DEFAULT_SUITE, SUITES
from bioshards.evaluate.metrics.metric import Metric
from bioshards.evaluate.metrics.tag_f1 import biobert_tag_f1, entity_f1, merge_entity_types, word_f1
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


@dataclass(frozen=True, slots=True)
class Task:
    """A task.

    Attributes:
        benchmark: name of the benchmark.
        problem_type: selects the task adapter (adapter.py) and the head.
        labels: classes in the order of the outputs.
        has_entity_pairs: True if an example is a pair of entities in a text.
    """

    name: str
    benchmark: str
    problem_type: ProblemType
    metric: Metric
    labels: tuple[str, ...] = ()
    has_entity_pairs: bool = False

    def drop_unused_settings(self, recipe: FineTuneRecipe) -> FineTuneRecipe:
        """Reset settings that this kind of task ignores, so that results list settings in effect."""
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
            unused_settings |= {
                "squad_transfer": defaults.squad_transfer,
                "stride": defaults.stride,
                "answer_head": defaults.answer_head,
            }
        return replace(recipe, **unused_settings)

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
    for benchmark in BENCHMARKS.values():
        if spec := benchmark.task:
            metric, name = _METRICS[spec.metric](spec), benchmark.name
            task = Task(name, name, spec.problem_type, metric, spec.labels, spec.has_entity_pairs)
            yield task
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
    recipes: dict[tuple[str, str], FineTuneRecipe] = {}
    for selector in selectors:
        suite, _, task_name = selector.rpartition("/")
        if selector in SUITES:
            recipes |= {(selector, name): recipe for name, recipe in SUITES[selector].items()}
        elif suite in SUITES and task_name in SUITES[suite]:
            recipes[suite, task_name] = SUITES[suite][task_name]
        elif not suite and task_name in TASKS:
            suites = [name for name in SUITES if task_name in SUITES[name]] or [DEFAULT_SUITE]
            if len(suites) > 1:
                choices = " or ".join(f"{name}/{task_name}" for name in suites)
                raise InvalidValueError(
                    f"--tasks {task_name}: {len(suites)} suites have it, each with its own settings: "
                    f"give {choices}"
                )
            recipes[suites[0], task_name] = find_recipe(suites[0], task_name) or FineTuneRecipe()
        else:
            known_names = [*SUITES, *TASKS]
            hint = suggest_nearest(selector, known_names) or f". There are: {', '.join(known_names)}"
            raise InvalidValueError(f"--tasks {selector}: there is no such suite or task{hint}")
    planned_tasks = []
    for (suite, task_name), recipe in recipes.items():
        task = TASKS[task_name]
        recipe = task.drop_unused_settings(override_recipe(recipe, overrides))
        applicable_modes = tuple(sorted(set(legacy_modes))) if task.problem_type == "entities" else ()
        planned_tasks.append(PlannedTask(suite, task, recipe, applicable_modes))
    return planned_tasks
