"""CPU time of ``beam run shards_to_pretraining`` by step:
``python -m tests.bench.tables.pretraining_set_phases BEAM-OPTIONS``.

The pipeline runs in this process, and the clock is its CPU time, read when a step begins and ends: a few
thousand times in all, so that looking costs nothing.  Time within a step that another one calls is the
inner step's alone; the shares are of all of it, and what no step has is said too.
"""

from __future__ import annotations

import functools
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from bioshards.corpus import manifest
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.pipelines import cli
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining import build, row_plan
from bioshards.vocab.pretraining.row_plan import RowPlan


class StepTimer:
    """CPU seconds by step."""

    def __init__(self, outside: str) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._steps = [outside]
        self._last_switch = time.process_time()

    def _add_elapsed(self) -> None:
        now = time.process_time()
        self.seconds[self._steps[-1]] += now - self._last_switch
        self._last_switch = now

    def start(self, step: str) -> None:
        self._add_elapsed()
        self._steps.append(step)

    def stop(self) -> None:
        self._add_elapsed()
        self._steps.pop()

    def time_calls(self, step: str, owner: object, original: Callable[..., Any]) -> None:
        """Time each call of a function of a module or a class."""

        @functools.wraps(original)
        def call(*arguments: Any, **options: Any) -> Any:
            self.start(step)
            try:
                return original(*arguments, **options)
            finally:
                self.stop()

        setattr(owner, original.__name__, call)

    def time_iterator(self, step: str, owner: object, original: Callable[..., Iterator[Any]]) -> None:
        """Time the items of an iterator."""

        @functools.wraps(original)
        def iterate(*arguments: Any, **options: Any) -> Iterator[Any]:
            iterator = original(*arguments, **options)
            while True:
                self.start(step)
                item = next(iterator, None)
                self.stop()
                if item is None:
                    return
                yield item

        setattr(owner, original.__name__, iterate)


def main() -> None:
    """Run the pipeline and print its steps as a Markdown table."""
    timer = StepTimer("starting, Beam, publishing")
    timer.time_calls("reading, splitting, counting", build, build.build_group)
    timer.time_calls("checking the shards' SHA-256", build, manifest.find_damage)
    timer.time_calls("encoding", Encoder, Encoder.encode_all)
    timer.time_calls("planning the rows", build, row_plan.plan_rows)
    timer.time_calls("sorting them", RowPlan, RowPlan.sort_by_key)
    timer.time_iterator("gathering their tokens", RowPlan, RowPlan.iter_batches)
    timer.time_calls("writing, with SHA-256", HashingWriter, HashingWriter.write)
    code = cli.main(["run", "shards_to_pretraining", "--workers", "1", *sys.argv[1:]])
    timer.start("")
    total = sum(timer.seconds.values())
    print(f"\nCPU {total:.2f} s, exit code {code}\n\n| step | seconds | share |\n|---|---|---|")
    for step, seconds in sorted(timer.seconds.items(), key=lambda found: -found[1]):
        print(f"| {step} | {seconds:.2f} | {seconds / total:.1%} |")


if __name__ == "__main__":
    main()
