"""The paths of the API server: the only place where a name becomes part of a URL.

Names come from objects that other people write. An API server decodes a path before it splits it, so a name with a
slash, even a quoted one, would address another object or a subresource. No object can have such a name.

Source: kubernetes v1.35 apimachinery pkg/api/validation/path IsValidPathSegmentName.
"""

from __future__ import annotations

from urllib.parse import quote

from karmada_scheduler.api_error import ApiError


class ImpossibleNameError(ApiError):
    """No object can have this name or namespace, and no API this group or version, so there is nothing to request."""

    def __init__(self, name: str) -> None:
        """Report the name as a NotFound, as the API server would for a name that no object has."""
        super().__init__(f"{name!r} can be no name of the API", code=404, reason="NotFound", name=name)


def group_path(api_version: str) -> str:
    """Return the path of a group and version, such as ``apps/v1`` or ``v1``. Raises ImpossibleNameError."""
    group, slash, version = api_version.partition("/")
    return f"/apis/{_segment(group)}/{_segment(version)}" if slash else f"/api/{_segment(group)}"


def path_of(
    api_version: str, plural: str, name: str | None = None, *, namespace: str = "", subresource: str = ""
) -> str:
    """Return the path of an object, or of a list.

    Args:
        api_version: Group and version.
        plural: The resource.
        name: The object; None for the list of all.
        namespace: "" for an object without one, and for the list of all namespaces.
        subresource: For example ``status``; "" for the object itself.

    Raises:
        ImpossibleNameError: No object can have the name or the namespace, and no API the group and version.
    """
    segments = [group_path(api_version)]
    if namespace:
        segments += ["namespaces", _segment(namespace)]
    segments.append(plural)
    if name is not None:
        segments.append(_segment(name))
    if subresource:
        segments.append(subresource)
    return "/".join(segments)


def _segment(name: str) -> str:
    if name in {"", ".", ".."} or "/" in name or "%" in name:
        raise ImpossibleNameError(name)
    return quote(name, safe="", errors="surrogatepass")
