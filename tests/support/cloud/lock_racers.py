"""Processes that take a lock at the same moment: ``python -m tests.support.cloud.lock_racers URL OPTIONS``.

Each says ``ready``, reads lines with a round and a time to start, tries to take the round's lock then, and
answers with ``held`` or ``refused``.  A lock that it holds it keeps until the next line.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from dataclasses import asdict

from bioshards.corpus.errors import OutputMismatchError
from bioshards.pipelines.storage.remote_storage import RemoteStorage
from bioshards.pipelines.storage.store_options import StoreOptions
from tests.support.paths import REPOSITORY


def race(url: str, options: StoreOptions, rounds: int) -> list[list[str]]:
    """Return what both processes answered in each round."""
    command = [sys.executable, "-m", "tests.support.cloud.lock_racers", url, json.dumps(asdict(options))]
    with contextlib.ExitStack() as stack:
        racers = [
            stack.enter_context(
                subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
                )
            )
            for _ in range(2)
        ]
        assert [racer.stdout.readline() for racer in racers if racer.stdout] == ["ready\n"] * 2
        answers = []
        for number in range(rounds):
            start_at = time.time() + 0.02
            for racer in racers:
                assert racer.stdin
                racer.stdin.write(f"{number} {start_at}\n")
                racer.stdin.flush()
            answers.append([racer.stdout.readline().strip() for racer in racers if racer.stdout])
        for racer in racers:
            assert racer.stdin
            racer.stdin.close()
    return answers


def _run(url: str, options: StoreOptions) -> None:
    storage = RemoteStorage(options)
    storage.exists(f"{url}/nothing")  # opens the connection
    print("ready", flush=True)
    with contextlib.ExitStack() as stack:
        for line in sys.stdin:
            stack.close()
            number, start_at = line.split()
            time.sleep(max(0, float(start_at) - time.time()))
            try:
                stack.enter_context(storage.lock(f"{url}/{number}", url))
                answer = "held"
            except OutputMismatchError:
                answer = "refused"
            print(answer, flush=True)


if __name__ == "__main__":
    _run(sys.argv[1], StoreOptions(**json.loads(sys.argv[2])))
