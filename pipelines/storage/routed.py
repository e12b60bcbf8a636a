"""A storage that routes each path to its object store or to the local disk.

A path without a scheme is local, so that one storage serves inputs and outputs on different stores.
"""

from __future__ import annotations

from typing import ClassVar

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import Storage

from .forwarding import ForwardingStorage
from .remote_storage import RemoteStorage
from .store_options import StoreOptions


class RoutedStorage(ForwardingStorage):
    """Local files, and objects of every store."""

    is_remote: ClassVar[bool] = True

    def __init__(self, options: StoreOptions) -> None:
        self._local, self._remote = LocalStorage(), RemoteStorage(options)

    def _route(self, path: str) -> Storage:
        return self._remote if "://" in path else self._local
