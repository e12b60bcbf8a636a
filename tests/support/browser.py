"""Headless Chromium, driven over chromedriver's HTTP interface (https://www.w3.org/TR/webdriver2/)."""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import requests

MISSING: Final = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
"""Programs that are not installed."""
_OPTIONS: Final = (
    "headless",
    "no-sandbox",
    "disable-gpu",
    "disable-quic",
    "no-first-run",
    "disable-background-networking",
    "disable-component-update",
    "disable-sync",
    "hide-scrollbars",  # of a width that a picture would lack
)


class Browser:
    """A browser with a profile of its own; a context manager."""

    def __init__(self, profile: Path) -> None:
        with socket.socket() as free_socket:
            free_socket.bind(("127.0.0.1", 0))
            port = free_socket.getsockname()[1]
        self._driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL)
        self._url = f"http://127.0.0.1:{port}/session"
        arguments = [f"--{option}" for option in (*_OPTIONS, f"user-data-dir={profile}")]
        capabilities = {"goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}
        body = {"capabilities": {"alwaysMatch": capabilities}}
        deadline = time.monotonic() + 60
        while True:
            try:
                self._url += f"/{self._post('', body)['sessionId']}"
            except requests.ConnectionError:
                if time.monotonic() > deadline or self._driver.poll() is not None:
                    raise
                time.sleep(0.1)
            else:
                break

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        requests.delete(self._url, timeout=60)
        self._driver.terminate()
        self._driver.wait(60)

    def emulate(self, width: int, scheme: str) -> None:
        """Set the width in pixels, and ``light`` or ``dark``."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self._send_command("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._send_command("Emulation.setEmulatedMedia", {"features": features})

    def open(self, path: Path) -> None:
        """Open a file."""
        self._post("/url", {"url": path.as_uri()})

    def run_script(self, script: str) -> Any:
        """Run the body of a function and return its result."""
        return self._post("/execute/sync", {"script": script, "args": []})

    def read_log(self) -> list[str]:
        """Return the messages of the console since the last call."""
        return [entry["message"] for entry in self._post("/se/log", {"type": "browser"})]

    def take_screenshot(self, path: Path) -> None:
        """Write a picture of the whole page."""
        answer = self._send_command("Page.captureScreenshot", {"captureBeyondViewport": True})
        path.write_bytes(base64.b64decode(answer["data"]))

    def _send_command(self, command: str, parameters: dict[str, Any]) -> Any:
        return self._post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        answer = requests.post(self._url + path, json=body, timeout=60)
        assert answer.ok, answer.text
        return answer.json()["value"]
