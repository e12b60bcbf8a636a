"""Google Cloud Storage in memory: ``python -m tests.support.cloud.fake_gcs PORT BUCKET``.

Speaks what obstore needs of the XML API (docs.cloud.google.com/storage/docs/xml-api), and what Beam's own
client needs of the JSON API to stage jobs.  Requests are handled one by one, so that preconditions hold.
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import google_crc32c


class _Object(NamedTuple):
    data: bytes
    generation: int

    @property
    def e_tag(self) -> str:
        return f'"{hashlib.md5(self.data).hexdigest()}"'


class _Bucket(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, name: str) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.name = name
        self.objects: dict[str, _Object] = {}
        self.uploads: dict[str, tuple[str, dict[int, bytes]]] = {}
        """Unfinished uploads by id: the object's name, and the parts."""
        self.generations = count(1)
        self.lock = threading.Lock()

    def put(self, name: str, data: bytes) -> _Object:
        self.objects[name] = _Object(data, next(self.generations))
        return self.objects[name]

    def list_names(self, prefix: str, delimiter: str) -> tuple[list[str], list[str]]:
        """Return the names with a prefix, and what they begin with up to the next delimiter."""
        names = sorted(name for name in self.objects if name.startswith(prefix))
        if not delimiter:
            return names, []
        is_below = {name: delimiter in name[len(prefix) :] for name in names}
        folders = {
            prefix + name[len(prefix) :].partition(delimiter)[0] + delimiter
            for name in names
            if is_below[name]
        }
        return [name for name in names if not is_below[name]], sorted(folders)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Bucket

    def _handle(self) -> None:
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query, keep_blank_values=True).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.server.lock:
            if match := re.fullmatch(
                r"/(?:(?:up|down)load/)?storage/v1/b/([^/]+)(?:/o(?:/(.+))?)?", url.path
            ):
                self._handle_json(unquote(match[1]), unquote(match[2] or query.get("name", "")), query, body)
            else:
                bucket, _, name = unquote(url.path).lstrip("/").partition("/")
                if bucket != self.server.name:
                    self._send(
                        404, b"<Error><Code>NoSuchBucket</Code><Message>no such bucket</Message></Error>"
                    )
                elif name:
                    self._handle_object(name, query, body)
                else:
                    self._list(query)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle

    # XML

    def _handle_object(self, name: str, query: dict[str, str], body: bytes) -> None:
        stored, uploads = self.server.objects.get(name), self.server.uploads
        if self.command == "POST" and "uploads" in query:
            upload_id = str(next(self.server.generations))
            uploads[upload_id] = (name, {})
            fields = f"<Key>{escape(name)}</Key><UploadId>{upload_id}</UploadId>"
            self._send(
                200, f"<InitiateMultipartUploadResult>{fields}</InitiateMultipartUploadResult>".encode()
            )
        elif "uploadId" in query:
            self._handle_upload(name, query, body)
        elif self.command == "PUT":
            required = self.headers.get("x-goog-if-generation-match")
            if required is not None and int(required) != (stored.generation if stored else 0):
                return self._send(412, b"<Error><Code>PreconditionFailed</Code></Error>")
            self._send(200, written=self.server.put(name, body))
        elif stored is None:
            self._send(
                404, b"<Error><Code>NoSuchKey</Code><Message>The key does not exist.</Message></Error>"
            )
        elif self.command == "DELETE":
            del self.server.objects[name]
            self._send(204)
        elif self.headers.get("If-Match", stored.e_tag) != stored.e_tag:
            self._send(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        else:
            self._send_object(stored)
        return None

    def _handle_upload(self, name: str, query: dict[str, str], body: bytes) -> None:
        upload_id = query["uploadId"]
        if upload_id not in self.server.uploads:
            return self._send(404, b"<Error><Code>NoSuchUpload</Code><Message>no upload</Message></Error>")
        parts = self.server.uploads[upload_id][1]
        if self.command == "PUT":
            parts[int(query["partNumber"])] = body
            return self._send(200, written=_Object(body, 0))
        del self.server.uploads[upload_id]
        if self.command == "DELETE":
            return self._send(204)
        written = self.server.put(name, b"".join(parts[number] for number in sorted(parts)))
        fields = f"<Key>{escape(name)}</Key><ETag>{written.e_tag}</ETag>"
        result = f"<CompleteMultipartUploadResult>{fields}</CompleteMultipartUploadResult>"
        return self._send(200, result.encode(), written=written)

    def _list(self, query: dict[str, str]) -> None:
        prefix = query.get("prefix", "")
        if "uploads" in query:
            uploads = "".join(
                f"<Upload><Key>{escape(name)}</Key><UploadId>{upload_id}</UploadId></Upload>"
                for upload_id, (name, _) in self.server.uploads.items()
                if name.startswith(prefix)
            )
            return self._send(
                200, f"<ListMultipartUploadsResult>{uploads}</ListMultipartUploadsResult>".encode()
            )
        names, folders = self.server.list_names(prefix, query.get("delimiter", ""))
        items = "".join(
            f"<Contents><Key>{escape(name)}</Key><Size>{len(stored.data)}</Size><ETag>{stored.e_tag}</ETag>"
            "<LastModified>2026-11-01T00:00:00.000Z</LastModified></Contents>"
            for name in names
            for stored in [self.server.objects[name]]
        )
        items += "".join(
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in folders
        )
        return self._send(
            200,
            f"<ListBucketResult><Name>{self.server.name}</Name><Prefix>{escape(prefix)}</Prefix>"
            f"<IsTruncated>false</IsTruncated>{items}</ListBucketResult>".encode(),
        )

    def _send_object(self, stored: _Object) -> None:
        data, headers = stored.data, {"x-goog-generation": str(stored.generation)}
        if match := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            start, end = int(match[1]), int(match[2] or len(data))
            if start >= len(data):
                return self._send(416, b"<Error><Code>InvalidRange</Code></Error>")
            data = data[start : end + 1]
            headers["Content-Range"] = f"bytes {start}-{start + len(data) - 1}/{len(stored.data)}"
        return self._send(206 if match else 200, data, written=stored, **headers)

    # JSON

    def _handle_json(self, bucket: str, name: str, query: dict[str, str], body: bytes) -> None:
        if bucket != self.server.name:
            self._send(404, b"{}")
        elif upload_id := query.get("upload_id"):
            name, parts = self.server.uploads[upload_id]
            parts[len(parts)] = body
            if self.headers.get("Content-Range", "").endswith("/*"):
                total = sum(map(len, parts.values()))
                self._send(308, Range=f"bytes=0-{total - 1}")
            else:
                del self.server.uploads[upload_id]
                self.server.put(name, b"".join(parts.values()))
                self._send_resource(name)
        elif self.command == "POST":
            if query["uploadType"] == "multipart":
                # A line of the boundary, headers, metadata, another boundary, headers and the bytes.
                metadata, media = body.split(b"\r\n\r\n", 1)[1].split(b"\r\n--", 1)
                name = name or json.loads(metadata)["name"]
                body = media.split(b"\r\n\r\n", 1)[1].rpartition(b"\r\n--")[0]
            elif query["uploadType"] == "resumable":
                upload_id = str(next(self.server.generations))
                self.server.uploads[upload_id] = (name or json.loads(body)["name"], {})
                host = self.headers["Host"]
                path = f"upload/storage/v1/b/{bucket}/o?uploadType=resumable&upload_id={upload_id}"
                return self._send(200, Location=f"http://{host}/{path}")
            self.server.put(name, body)
            self._send_resource(name)
        elif not name and "/o" in self.path:
            names, folders = self.server.list_names(query.get("prefix", ""), query.get("delimiter", ""))
            resources = [self._make_resource(name) for name in names]
            self._send(200, json.dumps({"items": resources, "prefixes": folders}).encode())
        elif not name:
            self._send(200, json.dumps({"name": bucket}).encode())
        elif name not in self.server.objects:
            self._send(404, b"{}")
        elif self.command == "DELETE":
            del self.server.objects[name]
            self._send(204)
        elif query.get("alt") == "media":
            self._send_object(self.server.objects[name])
        else:
            self._send_resource(name)
        return None

    def _make_resource(self, name: str) -> dict[str, str]:
        stored = self.server.objects[name]
        generation = str(stored.generation)
        return {
            "name": name,
            "bucket": self.server.name,
            "size": str(len(stored.data)),
            "generation": generation,
            "metageneration": "1",
            "crc32c": base64.b64encode(google_crc32c.value(stored.data).to_bytes(4, "big")).decode(),
            "updated": "2026-11-01T00:00:00.000Z",
            "timeCreated": "2026-11-01T00:00:00.000Z",
        }

    def _send_resource(self, name: str) -> None:
        self._send(200, json.dumps(self._make_resource(name)).encode())

    def _send(self, status: int, data: bytes = b"", written: _Object | None = None, **headers: str) -> None:
        self.send_response(status)
        if written:
            headers |= {"ETag": written.e_tag, "x-goog-generation": str(written.generation)}
        headers |= {"Content-Length": str(len(data)), "Last-Modified": email.utils.formatdate(usegmt=True)}
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


if __name__ == "__main__":
    _Bucket(int(sys.argv[1]), sys.argv[2]).serve_forever()
