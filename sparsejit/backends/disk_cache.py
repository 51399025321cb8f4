"""Compiled code on disk, shared by processes.

In: a key, which must hold everything that the content depends on, and bytes. Out: the bytes, or
None. An entry is one file, written to a temporary name and renamed, so a reader sees all of it or
none; a digest guards against damage. Nothing here raises because of the file system: a cache that
cannot be read or written is a slower one, and the logger ``sparsejit`` says so.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from pathlib import Path

from sparsejit.debug import logger

__all__ = ["cache_directory", "digest", "read_entry", "write_entry"]

_MAGIC = b"sparsejit cache entry 1\n"


def cache_directory() -> Path:
    """Return where compiled code is kept: ``SPARSEJIT_CACHE_DIR``, else the user's cache folder."""
    asked = os.environ.get("SPARSEJIT_CACHE_DIR")
    if asked:
        return Path(asked)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.path.expanduser(base), "sparsejit")


def digest(*parts: str) -> str:
    """Return a key made from texts; different lists of texts have different keys.

    >>> digest("ab", "c") == digest("a", "bc")
    False
    """
    sha = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        sha.update(len(encoded).to_bytes(8, "little"))
        sha.update(encoded)
    return sha.hexdigest()


def read_entry(kind: str, key: str) -> bytes | None:
    """Return what was written under ``key`` in the folder ``kind``, None if there is nothing."""
    path = _path(kind, key)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        logger.warning("cannot read the cache entry %s: %s", path, error)
        return None
    head, payload = content[: len(_MAGIC) + 32], content[len(_MAGIC) + 32 :]
    if head != _MAGIC + hashlib.sha256(payload).digest():
        logger.warning("the cache entry %s is damaged and is made anew", path)
        return None
    return payload


def write_entry(kind: str, key: str, payload: bytes) -> None:
    """Keep ``payload`` under ``key``; whoever writes last wins."""
    path = _path(kind, key)
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.stem[:16]}-", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
        os.replace(temporary, path)
    except OSError as error:
        logger.warning("cannot write the cache entry %s: %s", path, error)
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def _path(kind: str, key: str) -> Path:
    return cache_directory() / kind / key[:2] / f"{key[2:]}.bin"
