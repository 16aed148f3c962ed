"""Responses, and the Status objects of refusals as kube-apiserver words them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from karmada_pyscheduler.client.http_connection import Response
from tools.apiserver_model.kinds import Key, Kind, Object
from tools.apiserver_model.requests import MetadataForm, Request, metadata_form

JSON_HEADERS: Final[Mapping[str, str]] = {"content-type": "application/json"}
_PLAIN_HEADERS: Final[Mapping[str, str]] = {"content-type": "text/plain; charset=utf-8"}

_EXPIRED_TOKEN: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class RefusedError(Exception):
    """Ends the processing of a request with a response."""

    def __init__(self, response: Response) -> None:
        """``response`` is what the client gets."""
        super().__init__(response.status)
        self.response = response


def status(
    code: int,
    reason: str,
    message: str,
    *,
    details: Object | None = None,
    token: str = "",
) -> Object:
    """Return a Status; ``token`` is a continue token to go on with."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {"continue": token} if token else {},
        "status": "Failure",
        "message": message,
        **({"reason": reason} if reason else {}),
        **({"details": details} if details is not None else {}),
        "code": code,
    }


def ok(body: bytes, code: int = 200) -> Response:
    """Return a response with JSON."""
    return Response(code, JSON_HEADERS, body)


def page_not_found() -> Response:
    """Return the response for a path that nothing is served at."""
    return Response(404, _PLAIN_HEADERS, b"404 page not found\n")


def refusal(
    code: int,
    reason: str,
    message: str,
    *,
    details: Object | None = None,
    token: str = "",
) -> RefusedError:
    """Return the exception for a Status; ``details.retryAfterSeconds`` becomes a header, too."""
    body = status(code, reason, message, details=details, token=token)
    seconds = (details or {}).get("retryAfterSeconds")
    headers = {**JSON_HEADERS, "retry-after": str(seconds)} if seconds is not None else JSON_HEADERS
    return RefusedError(Response(code, headers, orjson.dumps(body)))


def _details(kind: Kind, name: str, named: str = "") -> Object:
    found = {"name": name, "group": kind.group, "kind": named or kind.plural}
    return {key: value for key, value in found.items() if value}


def not_found(kind: Kind, name: str) -> RefusedError:
    """Return 404 for an object."""
    return refusal(404, "NotFound", f'{kind.resource} "{name}" not found', details=_details(kind, name))


def no_such_resource() -> RefusedError:
    """Return 404 for a resource that a served group and version does not have."""
    message = "the server could not find the requested resource"
    return refusal(404, "NotFound", message, details={})


def no_such_subresource(kind: Kind, name: str) -> RefusedError:
    """Return 404 for a subresource that a kind does not have."""
    return not_found(kind, name) if kind.is_custom else no_such_resource()


def already_exists(kind: Kind, name: str, *, is_deleting: bool = False) -> RefusedError:
    """Return 409 for an object that is there."""
    message = f'{"object is being deleted: " if is_deleting else ""}{kind.resource} "{name}" already exists'
    return refusal(409, "AlreadyExists", message, details=_details(kind, name))


def conflict(kind: Kind, name: str, why: str = "") -> RefusedError:
    """Return 409; without ``why``, for a resourceVersion that is not the stored one."""
    why = why or (
        "the object has been modified; please apply your changes to the latest version and try again"
    )
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return refusal(409, "Conflict", message, details=_details(kind, name))


def invalid(
    kind: Kind,
    name: str,
    field_path: str,
    detail: str,
    *,
    value: Any = None,
    code: str = "Invalid value",
) -> RefusedError:
    """Return 422 for a field; ``code`` is how Kubernetes names the kind of error."""
    shown = "" if value is None else f" {orjson.dumps(value).decode()}:"
    problem = f"{code}:{shown} {detail}" if shown or detail else code
    reasons = {
        "Invalid value": "FieldValueInvalid",
        "Required value": "FieldValueRequired",
        "Forbidden": "FieldValueForbidden",
    }
    cause = {"reason": reasons[code], "message": problem, "field": field_path}
    details = {**_details(kind, name, kind.name), "causes": [cause]}
    qualified = f"{kind.name}.{kind.group}" if kind.group else kind.name
    message = f'{qualified} "{name}" is invalid: {field_path}: {problem}'
    return refusal(422, "Invalid", message, details=details)


def version_required(kind: Kind, name: str) -> RefusedError:
    """Return 422 for an update without a resourceVersion, if the kind needs one."""
    problem = "Invalid value: 0: must be specified for an update"
    cause = {"reason": "FieldValueInvalid", "message": problem, "field": "metadata.resourceVersion"}
    message = f'{kind.resource} "{name}" is invalid: metadata.resourceVersion: {problem}'
    return refusal(422, "Invalid", message, details={**_details(kind, name), "causes": [cause]})


def bad_request(message: str) -> RefusedError:
    """Return 400."""
    return refusal(400, "BadRequest", message)


def method_not_allowed() -> RefusedError:
    """Return 405."""
    message = "the server does not allow this method on the requested resource"
    return refusal(405, "MethodNotAllowed", message, details={})


def unsupported_media_type(supported: Sequence[str]) -> RefusedError:
    """Return 415 with the types that are supported."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(supported)}"
    return refusal(415, "UnsupportedMediaType", message)


def namespace_terminating(kind: Kind, key: Key) -> RefusedError:
    """Return 403 for the creation of an object in a namespace that is being deleted."""
    namespace, name = key
    message = f"unable to create new content in namespace {namespace} because it is being terminated"
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    details = {**_details(kind, name), "causes": [cause]}
    return refusal(403, "Forbidden", f'{kind.resource} "{name}" is forbidden: {message}', details=details)


def too_large_version(asked: int, current: int) -> RefusedError:
    """Return 504 for a read at a revision that is not there yet; a real server waits three seconds first."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return refusal(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        details={"causes": [cause], "retryAfterSeconds": 1},
    )


def expired_list() -> RefusedError:
    """Return 410 for a list of a state that is gone."""
    return refusal(410, "Expired", "The resourceVersion for the provided list is too old.")


def expired_version(asked: int, oldest: int) -> RefusedError:
    """Return 410 for a watch from a revision whose history is gone."""
    return refusal(410, "Expired", too_old(asked, oldest))


def too_old(asked: int, oldest: int) -> str:
    """Return how an expired revision is reported."""
    return f"too old resource version: {asked} ({oldest})"


def expired_token(fresh: str) -> RefusedError:
    """Return 410 for a continue token whose revision is gone, with one that continues in the newest state."""
    return refusal(410, "Expired", _EXPIRED_TOKEN, token=fresh)


def success(kind: Kind, name: str, uid: str) -> Object:
    """Return the Status of a deletion."""
    details = {**_details(kind, name), "uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def uid_conflict(kind: Kind, key: Key, given: str, stored: str) -> RefusedError:
    """Return 409 for a PUT with another uid."""
    where = f"/registry/{kind.group or 'core'}/{kind.plural}/{'/'.join(part for part in key if part)}"
    why = (
        f"StorageError: invalid object, Code: 4, Key: {where}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {given}, UID in object meta: {stored}"
    )
    return conflict(kind, key[1], why)


def check_preconditions(kind: Kind, name: str, preconditions: Object, metadata: Object) -> None:
    """Refuse a deletion whose preconditions do not hold. The message has the kind where others have the resource."""
    qualified = f"{kind.name}.{kind.group}" if kind.group else kind.name
    for field_name, label, happened in (
        ("uid", "UID", "deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "modified"),
    ):
        given, stored = preconditions.get(field_name), metadata.get(field_name)
        if given is not None and given != stored:
            why = (
                f"the {label} in the precondition ({given}) does not match the {label} in record ({stored}). "
                f"The object might have been {happened}"
            )
            message = f'Operation cannot be fulfilled on {qualified} "{name}": {why}'
            raise refusal(409, "Conflict", message, details=_details(kind, name, kind.name))


def wants_metadata(request: Request, *, of_list: bool = False) -> bool:
    """Return whether the response to a read has metadata only; refuses an object as a list and a list as an object."""
    form = metadata_form(request)
    if form is MetadataForm.NONE:
        return False
    if of_list is not (form is MetadataForm.LIST):
        held = "a list" if of_list else "not a list"
        problem = f"you requested {form.value}, but the requested object is {held}"
        raise refusal(406, "NotAcceptable", problem)
    return True
