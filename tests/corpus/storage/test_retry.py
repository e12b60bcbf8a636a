"""The retry policy: attempts, pauses and what is repeated."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bioshards.corpus.errors import TransientStorageError
from bioshards.corpus.storage import retry as module
from bioshards.corpus.storage.retry import READ_RETRY_POLICY, STEP_RETRY_POLICY, RetryPolicy, retry


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of retries, which take no time."""
    slept: list[float] = []
    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=slept.append))
    return slept


def fail() -> None:
    raise TransientStorageError("busy")


def test_backoff_doubles_with_jitter_up_to_the_maximum() -> None:
    policy = RetryPolicy(initial_backoff=2, max_backoff=10)
    for num_failures, planned in ((1, 2), (2, 4), (3, 8), (4, 10), (400, 10)):
        drawn = [policy.draw_backoff(num_failures) for _ in range(200)]
        assert planned / 2 <= min(drawn) < planned * 0.75
        assert planned * 1.25 < max(drawn) <= planned * 1.5


@pytest.mark.parametrize("policy", [None, READ_RETRY_POLICY, RetryPolicy(max_attempts=1)])
def test_attempts_and_pauses_are_those_of_the_policy(pauses: list[float], policy: RetryPolicy | None) -> None:
    with pytest.raises(TransientStorageError, match="busy"):
        retry(fail, policy=policy)
    expected = policy or STEP_RETRY_POLICY
    assert len(pauses) == expected.max_attempts - 1
    for number, pause in enumerate(pauses):
        planned = expected.initial_backoff * 2**number
        assert planned / 2 <= pause <= planned * 1.5


def test_other_errors_are_not_retried(pauses: list[float]) -> None:
    with pytest.raises(TransientStorageError):
        retry(fail, ValueError)
    assert pauses == []
