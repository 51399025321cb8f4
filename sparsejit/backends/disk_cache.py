"""Compiled code on disk, shared by processes.

In: a key, which must hold everything that the content depends on, and bytes. Out: the bytes, or
None. An entry is one file, written to a temporary name and renamed, so a reader sees all of it or
none; a digest guards against damage. Entries are as readable as the user's other files, so that
users can share a folder: whoever may write there may run code as those who read it. Nothing here
raises because of the file system: a cache that cannot be read or written is a slower one, and the
logger ``sparsejit`` says so.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
from pathlib import Path

from sparsejit.debug import logger

__all__ = ["cache_directory", "digest", "read_entry", "write_entry"]

_MAGIC = b"sparsejit cache entry 1\n"


def cache_directory() -> Path | None:
    """Return where compiled code is kept: ``SPARSEJIT_CACHE_DIR``, else the user's cache folder.

    None where that is in a home folder and the user has none, as in some containers.
    """
    asked = os.environ.get("SPARSEJIT_CACHE_DIR")
    folder = os.path.expanduser(asked or os.path.join(_users_caches(), "sparsejit"))
    if folder.startswith("~") and not asked:
        _tell_of_no_home()
        return None
    return Path(folder)


def _users_caches() -> str:
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    if sys.platform == "darwin":
        return "~/Library/Caches"
    named = os.environ.get("XDG_CACHE_HOME", "")
    # The rule of freedesktop.org: a relative path is invalid and ignored.
    return named if os.path.isabs(named) else "~/.cache"


@functools.cache
def _tell_of_no_home() -> None:
    logger.warning(
        "the user has no home folder: compiled code is not kept; SPARSEJIT_CACHE_DIR names a folder"
    )


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
    if path is None:
        return None
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
    if path is None:
        return
    temporary = path.with_name(f".{path.stem[:16]}-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
        os.replace(temporary, path)
    except OSError as error:
        logger.warning("cannot write the cache entry %s: %s", path, error)
        with contextlib.suppress(OSError):
            temporary.unlink()


def _path(kind: str, key: str) -> Path | None:
    folder = cache_directory()
    return None if folder is None else folder / kind / key[:2] / f"{key[2:]}.bin"
