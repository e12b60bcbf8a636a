"""Monitor of the processes of a run: it ends this process if another one is lost.

A collective operation waits for a process that was killed, or whose machine is off, up to its time-out,
which must be longer than a checkpoint takes.  So each process counts up a number in the store by which the
processes have met, and ends when the number of another one stands still for most of a minute.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
import traceback
from typing import Final

from torch.distributed import DistError
from torch.distributed.distributed_c10d import PrefixStore, Store

from bioshards.corpus.errors import FAILED, RunError, escape_controls

LOST_SECONDS: float = 50
"""Silence after which a process is lost; the run then ends within a minute."""
_BEATS: Final = 25
"""Beats in ``LOST_SECONDS``."""
_ERROR_BEATS: Final = 6
"""Beats of silence after which a process is lost if communication has failed."""
RESUME_HINT: Final = "Rerun the command in all processes to resume from the last checkpoint"
_STORE: Final = -1
"""Stands among the ranks for the store."""
_TOLERANCE: Final = 2
"""Beats by which the silences of processes differ if it is the store that is lost."""


class LostProcessError(RunError):
    """Another process of the run is lost or has failed."""


class ProcessMonitor:
    """Beats of this process, and the silence of the others.

    Silence is counted in beats of this process, not in seconds, so that a run that is suspended as a whole
    goes on.
    """

    def __init__(self, store: Store, rank: int, world_size: int) -> None:
        """Wait for all processes and start the threads.

        Args:
            store: store by which the processes have met.
        """
        self._store = PrefixStore("bioshards", store)
        # A connection of its own: a read waits for its value.  The type stubs lack clone.
        self._beat_store: Store = self._store.clone()  # type: ignore[attr-defined]
        self._rank, self._keys = rank, [f"beat/{other}" for other in range(world_size)]
        self._interval = LOST_SECONDS / _BEATS
        self._beat_store.set(self._keys[rank], "0")
        self._names = self.gather("name", f"process {rank} on {socket.gethostname()}")
        self._silent_beats = dict.fromkeys([_STORE, *range(world_size)], 0)
        self._last_words: dict[int, str] = {}
        self._stopped = threading.Event()
        self._beat_thread = threading.Thread(target=self._beat, name="beat", daemon=True)
        self._watch_thread = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._beat_thread.start()
        self._watch_thread.start()

    def gather(self, topic: str, value: str) -> list[str]:
        """Return the values of all processes, by rank.  It waits as long as the time-out of the store.

        Args:
            topic: name of the values; another one in each call.
        """
        store, num_processes = self._store, len(self._keys)
        store.set(f"{topic}/{self._rank}", value)
        values = store.multi_get([f"{topic}/{rank}" for rank in range(num_processes)])
        if store.add(f"{topic}/read", 1) == num_processes:
            store.set(f"{topic}/all read", "")
        if self._rank == 0:  # the store may end with this process
            store.wait([f"{topic}/all read"])
        return [value.decode() for value in values]

    def stop(self, last_word: str) -> None:
        """Stop the threads.

        Args:
            last_word: error of this process, for the messages of the others; empty: it has finished.
        """
        self._stopped.set()
        self._watch_thread.join()
        self._beat_thread.join(self._interval)
        if not self._beat_thread.is_alive():  # else the store is lost
            with contextlib.suppress(RuntimeError):
                self._beat_store.set(self._keys[self._rank], f"-{last_word}")

    def explain(self, error: Exception) -> Exception:
        """Return the error to report: that a process is lost, if communication failed for that reason.

        Communication fails at once; who is lost is known some beats later.
        """
        frames = traceback.walk_tb(error.__traceback__)
        if not isinstance(error, DistError) and not any(
            frame.f_globals.get("__name__", "").startswith("torch.distributed") for frame, _ in frames
        ):
            return error
        for _ in range(2 * _ERROR_BEATS):
            if message := self._describe_lost(_ERROR_BEATS):
                return LostProcessError(message)
            time.sleep(self._interval)
        return error

    def _beat(self) -> None:
        """Count up, and read the numbers of the others.  A store on a lost machine blocks this thread."""
        number, last_values = 0, [b""] * len(self._keys)
        while not self._stopped.wait(self._interval):
            number += 1
            try:
                self._beat_store.set(self._keys[self._rank], str(number))
                values = self._beat_store.multi_get(self._keys)
            except RuntimeError:  # also DistError
                return
            self._silent_beats[_STORE] = 0
            for rank, value in enumerate(values):
                if value != last_values[rank] or value == b"-":
                    self._silent_beats[rank] = 0
                if value.startswith(b"-") and value != b"-":
                    self._last_words[rank] = value[1:].decode()
                    self._silent_beats[rank] = max(self._silent_beats[rank], _ERROR_BEATS)
            last_values = values

    def _watch(self) -> None:
        """Count silence, and end this process if another one is lost."""
        while not self._stopped.wait(self._interval):
            for rank in self._silent_beats:
                self._silent_beats[rank] += 1
            if message := self._describe_lost(_BEATS):
                print(f"train, process {self._rank}: {escape_controls(message)}", file=sys.stderr, flush=True)
                os._exit(FAILED)  # the main thread may wait in a collective operation

    def _describe_lost(self, beats: int) -> str:
        """Return a message about the process that has been silent longest, if for so many beats; else ''."""
        silence = {**self._silent_beats, _STORE: self._silent_beats[_STORE] + _TOLERANCE}
        del silence[self._rank]
        lost = max(silence, key=silence.__getitem__)
        if silence[lost] < beats:
            return ""
        if last_word := self._last_words.get(lost):
            return f"{self._names[lost]} has failed: {last_word}"
        # Without torchrun, and with it on the first machine, the store is where process 0 is.
        name = f"{self._names[0]}, or torchrun there," if lost == _STORE else self._names[lost]
        return f"{name} is lost: no sign of it for {silence[lost] * self._interval:.0f} s. {RESUME_HINT}"
