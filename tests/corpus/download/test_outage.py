"""An outage is told from the refusal of single files."""

from __future__ import annotations

import pytest

from bioshards.corpus.download.http_client import (
    Connection,
    DownloadError,
    NotFoundError,
    OutageDetector,
    OutageError,
    RefusedError,
    UnreachableError,
)
from bioshards.corpus.storage.retry import INTERACTIVE_RETRY_POLICY
from tests.support.servers.http_connections import make_server

CONNECTION = Connection(make_server("http://127.0.0.1:9/"))
REFUSED, UNREACHABLE = RefusedError("403"), UnreachableError("no answer")


class Page:
    """A page that can be read until it has an error; ``readings`` counts."""

    def __init__(self, error: DownloadError | None = None) -> None:
        self.error, self.readings = error, 0

    def __call__(self, connection: Connection) -> None:
        assert connection._server.retry_policy.max_attempts <= INTERACTIVE_RETRY_POLICY.max_attempts
        self.readings += 1
        if self.error:
            raise self.error


def record(page: Page, *errors: DownloadError | None) -> None:
    detector = OutageDetector(page, max_refused=3)
    for error in errors:
        detector.record(CONNECTION, error)


@pytest.mark.parametrize(
    ("errors", "readings"),
    [
        ([None] * 9, 0),
        ([REFUSED] * 2, 0),
        ([REFUSED] * 3, 1),
        ([REFUSED] * 5, 1),
        ([REFUSED] * 6, 2),
        ([REFUSED] * 100, 6),
        ([REFUSED, REFUSED, None] * 9, 0),
        ([UNREACHABLE], 1),
        ([UNREACHABLE, None, UNREACHABLE], 2),
        ([NotFoundError("404")] * 9, 0),
        ([DownloadError("a wrong checksum")] * 9, 0),
    ],
)
def test_the_page_is_read_after_failures_in_a_row(errors: list[DownloadError | None], readings: int) -> None:
    page = Page()
    record(page, *errors)
    assert page.readings == readings


@pytest.mark.parametrize("page_error", [REFUSED, UNREACHABLE, OutageError("blocked")])
def test_failures_are_an_outage_if_the_page_cannot_be_read(page_error: DownloadError) -> None:
    page = Page(page_error)
    record(page, REFUSED, REFUSED)
    with pytest.raises(OutageError, match=f"403; and {page_error}"):
        record(page, REFUSED, REFUSED, REFUSED)
    with pytest.raises(OutageError, match=f"no answer; and {page_error}"):
        record(page, UNREACHABLE)


def test_server_without_the_page_answers() -> None:
    record(Page(NotFoundError("404")), UNREACHABLE, REFUSED, REFUSED, REFUSED)
