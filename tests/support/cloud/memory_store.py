"""An object store in this process' memory, at ``mem://BUCKET``: importing this module adds the scheme."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

from obstore import delete, get, put
from obstore import list as list_objects
from obstore.store import MemoryStore

from bioshards.pipelines.storage import object_store, remote_storage
from bioshards.pipelines.storage.store_options import ObjectStore, StoreOptions, Use, open_store

_ROOT = "mem://bucket"
_STORE = MemoryStore()


class _MemoryObjects(MutableMapping[str, bytes]):
    """The objects by URL."""

    def __getitem__(self, path: str) -> bytes:
        try:
            return bytes(get(_STORE, path.removeprefix(f"{_ROOT}/")).bytes())
        except FileNotFoundError as error:
            raise KeyError(path) from error

    def __setitem__(self, path: str, data: bytes) -> None:
        put(_STORE, path.removeprefix(f"{_ROOT}/"), data)

    def __delitem__(self, path: str) -> None:
        delete(_STORE, path.removeprefix(f"{_ROOT}/"))

    def __iter__(self) -> Iterator[str]:
        return iter([f"{_ROOT}/{meta['path']}" for meta in list_objects(_STORE).collect()])

    def __len__(self) -> int:
        return len(list_objects(_STORE).collect())


MEMORY_OBJECTS = _MemoryObjects()


def _open_store_or_memory(root: str, options: StoreOptions, use: Use = "read") -> ObjectStore:
    return _STORE if root.startswith("mem://") else open_store(root, options, use)  # type: ignore[return-value]


object_store.SCHEMES = (*object_store.SCHEMES, "mem")  # type: ignore[misc, assignment]
vars(remote_storage)["open_store"] = _open_store_or_memory
