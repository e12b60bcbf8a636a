"""moto's S3 with conditional puts that are atomic: ``python -m tests.support.cloud.moto_server PORT``.

moto looks whether an object exists, and then stores it, in threads of one server
(``S3Response.put_object``), so that two puts with ``If-None-Match: *`` may both succeed.  S3 accepts one of
them (docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html).
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class AtomicPuts:
    """An application whose conditional puts run one after another."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application
        self._lock = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if "HTTP_IF_NONE_MATCH" not in environ or environ["REQUEST_METHOD"] != "PUT":
            return self._application(environ, start_response)
        # Before the lock: an upload that stalls must not keep the others waiting.
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        with self._lock:
            return list(self._application(environ, start_response))


if __name__ == "__main__":
    application = AtomicPuts(DomainDispatcherApplication(create_backend_app))
    run_simple("127.0.0.1", int(sys.argv[1]), application, threaded=True, request_handler=MotoRequestHandler)
