"""Profiles of hypothesis: how many examples a property test tries.

``make test`` uses ``quick``: few examples, the same in every run.  ``make test-all`` uses ``full``: many,
drawn with ``SEED``, which ``make`` chooses and prints.
"""

from __future__ import annotations

import os
from typing import Final

from hypothesis import HealthCheck, settings

NAME: Final = os.environ.get("HYPOTHESIS_PROFILE", "quick")
_QUICK_SHARE: Final = 10
"""A quick run tries one of so many examples, but this number at least."""

settings.register_profile(
    "full",
    deadline=None,
    database=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],  # times of a busy machine
)
settings.register_profile("quick", settings.get_profile("full"), derandomize=True, max_examples=_QUICK_SHARE)


def examples(full: int) -> int:
    """Return the number of examples in this run of a test that tries ``full`` in a full one."""
    return max(_QUICK_SHARE, full // _QUICK_SHARE) if NAME == "quick" else full
