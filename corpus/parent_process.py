"""End a process when its parent does, however that ends: nobody else would."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
"""Of Linux's prctl: the signal that a process gets when its parent ends."""
_POLL_SECONDS: Final = 1.0


def end_with_parent(parent: int) -> None:
    """Let this process end when its parent ends; at once, if that has ended already.

    On Linux the kernel kills it, also inside a library that runs no Python. Elsewhere a thread looks.

    Args:
        parent: process id of the parent.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()
    if os.getppid() != parent:
        os._exit(1)


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os._exit(1)
