"""Where the time of ``beam run shards_to_pretraining`` goes, step by step:
``python -m tests.bench.example_phases BEAM-OPTIONS``.

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

from bioshards.pipelines import cli
from bioshards.vocab import inputs
from bioshards.vocab.encode import Encoder
from bioshards.vocab.examples import building, dealing, making, publishing
from bioshards.vocab.examples.plan import RowPlan
from bioshards.vocab.examples.writing import ShardWriter


class Stopwatch:
    """CPU seconds by the step that they were spent in."""

    def __init__(self, outside: str) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._steps = [outside]
        self._since = time.process_time()

    def _turn(self) -> None:
        now = time.process_time()
        self.seconds[self._steps[-1]] += now - self._since
        self._since = now

    def begin(self, step: str) -> None:
        self._turn()
        self._steps.append(step)

    def end(self) -> None:
        self._turn()
        self._steps.pop()

    def calls(self, step: str, owner: Any, name: str) -> None:
        """Time each call of a function of a module or a class."""
        timed = getattr(owner, name)

        @functools.wraps(timed)
        def call(*arguments: Any, **options: Any) -> Any:
            self.begin(step)
            try:
                return timed(*arguments, **options)
            finally:
                self.end()

        setattr(owner, name, call)

    def iterates(self, step: str, owner: Any, name: str) -> None:
        """Time what an iterator does for each item."""
        timed: Callable[..., Iterator[Any]] = getattr(owner, name)

        @functools.wraps(timed)
        def iterate(*arguments: Any, **options: Any) -> Iterator[Any]:
            found = timed(*arguments, **options)
            while True:
                self.begin(step)
                item = next(found, None)
                self.end()
                if item is None:
                    return
                yield item

        setattr(owner, name, iterate)


def main() -> None:
    """Run the pipeline and print its steps as a Markdown table."""
    watch = Stopwatch("starting, Beam, publishing")
    watch.calls("reading, holding out, counting", making, "make")
    watch.calls("checking the shards' SHA-256", inputs, "damage")
    watch.calls("encoding", Encoder, "encode_all")
    watch.calls("planning the rows", building, "plan")
    watch.calls("sorting them", RowPlan, "sorted")
    watch.iterates("gathering their tokens", RowPlan, "batches")
    watch.calls("dealing them out", dealing, "deal")
    watch.calls("merging what was dealt out", publishing, "merge")
    watch.calls("writing, with SHA-256", ShardWriter, "write")
    code = cli.main(["run", "shards_to_pretraining", "--workers", "1", *sys.argv[1:]])
    watch.begin("")
    total = sum(watch.seconds.values())
    print(f"\nCPU {total:.2f} s, exit code {code}\n\n| step | seconds | share |\n|---|---|---|")
    for step, seconds in sorted(watch.seconds.items(), key=lambda found: -found[1]):
        print(f"| {step} | {seconds:.2f} | {seconds / total:.1%} |")


if __name__ == "__main__":
    main()
