"""Objects that ``orjson`` cannot read, such as one with 3,000 levels or a number of 20,000 digits.

A real server stores some of them. The model changes their text in the few places that it must.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from tools.apiserver_model import messages
from tools.apiserver_model.kinds import BY_NAME, Key, Kind, Object

_METADATA = b'"metadata":{'
_VERSION = b'"resourceVersion":"'
_FIELDS = ("name", "namespace", "uid", "resourceVersion")


def _text_of(raw: bytes, name: str) -> str:
    """Return a text by the first occurrence of its field, "" without one."""
    _, found, rest = raw.partition(b'"' + name.encode() + b'":"')
    return rest.partition(b'"')[0].decode() if found else ""


def placed(manifest: bytes, new_uid: Callable[[], str], revision: int) -> tuple[Kind, Key, bytes]:
    """Return kind, key, and the text to store of an object.

    The text must have neither uid nor resourceVersion. ``"kind":``, ``"metadata":{`` and in it ``"name":`` must be the
    first occurrences of these texts.
    """
    head, mark, rest = manifest.partition(_METADATA)
    if not mark:
        raise ValueError('the object has no "metadata":{')
    kind = BY_NAME[_text_of(manifest, "kind")]
    key = kind.key(_text_of(rest, "namespace"), _text_of(rest, "name"))
    added = f'"uid":"{new_uid()}","resourceVersion":"{revision}",'.encode()
    return kind, key, head + mark + added + rest


def with_version(raw: bytes, revision: int) -> bytes:
    """Return an object with another resourceVersion."""
    old = _VERSION + _text_of(raw, "resourceVersion").encode() + b'"'
    return raw.replace(old, _VERSION + str(revision).encode() + b'"', 1)


def decoded(raw: bytes) -> Object:
    """Return an object; of one that cannot be read, its type and the metadata that every object has."""
    found = readable(raw)
    if found is not None:
        return found
    rest = raw.partition(_METADATA)[2]
    head = {name: _text_of(raw, name) for name in ("apiVersion", "kind")}
    return {**head, "metadata": {name: text for name in _FIELDS if (text := _text_of(rest, name))}}


def readable(raw: bytes) -> Object | None:
    """Return an object, None if it cannot be read or has no metadata."""
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("metadata"), dict) else None


def metadata_of(raw: bytes) -> Object:
    """Return the metadata of an object; of one that cannot be read, the fields that every object has."""
    found: Object = decoded(raw)["metadata"]
    return found


def metadata_only(raw: bytes) -> bytes:
    """Return an encoded object as PartialObjectMetadata."""
    head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return orjson.dumps({**head, "metadata": metadata_of(raw)})


def patched(kind: Kind, key: Key, raw: bytes, patch: Object, revision: int) -> bytes:
    """Return an object that cannot be read after a patch: only its version and ``spec.clusters`` change."""
    given = (patch.get("metadata") or {}).get("resourceVersion")
    if given is not None and given != _text_of(raw, "resourceVersion"):
        raise messages.conflict(kind, key[1])
    new = with_version(raw, revision)
    clusters = (patch.get("spec") or {}).get("clusters")
    if clusters:
        new = new.replace(b'"spec":{', b'"spec":{"clusters":' + orjson.dumps(clusters) + b",", 1)
    return new
