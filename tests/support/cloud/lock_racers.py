"""Processes that take a lock together: ``python -m tests.support.cloud.lock_racers FOLDER STORAGE``.

Each says ``ready``, reads lines with a round and a time to start, tries to take the round's lock then, and
answers with ``held`` or ``refused``.  A lock that it holds it keeps until the next line.
"""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
import time
from collections.abc import Sequence

from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.storage.storage_protocol import Storage
from tests.support.paths import REPOSITORY


def race(
    folder: str, storage: Storage, rounds: int, prefixes: Sequence[Sequence[str]] = ((), ())
) -> list[list[str]]:
    """Return what both processes answered in each round.

    Args:
        prefixes: commands that start each process.
    """
    module = "tests.support.cloud.lock_racers"
    command = [sys.executable, "-m", module, folder, pickle.dumps(storage).hex()]
    with contextlib.ExitStack() as stack:
        racers = [
            stack.enter_context(
                subprocess.Popen(
                    [*prefix, *command],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    cwd=REPOSITORY,
                )
            )
            for prefix in prefixes
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


def _run(folder: str, storage: Storage) -> None:
    storage.exists(f"{folder}/nothing")  # opens the connection
    print("ready", flush=True)
    with contextlib.ExitStack() as stack:
        for line in sys.stdin:
            stack.close()
            number, start_at = line.split()
            time.sleep(max(0, float(start_at) - time.time()))
            try:
                stack.enter_context(storage.lock(f"{folder}/{number}", folder))
                answer = "held"
            except OutputMismatchError:
                answer = "refused"
            print(answer, flush=True)


if __name__ == "__main__":
    _run(sys.argv[1], pickle.loads(bytes.fromhex(sys.argv[2])))
