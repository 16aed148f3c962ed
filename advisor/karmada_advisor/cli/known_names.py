"""Whether the namespaces and policies that flags name exist, as far as that was read."""

from __future__ import annotations

from collections.abc import Sequence

from karmada_advisor.explain.explain import policy_of
from karmada_advisor.explain.model import PolicyRef
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.fleet.source import ControlPlane
from karmada_advisor.state.stored import policy_key, text_of
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.names import unknown
from karmada_scheduler.api.policy import PolicyKey


def check_names(
    plane: ControlPlane, fleet: Fleet, namespaces: Sequence[str], policies: Sequence[str] = ()
) -> None:
    """Check that namespaces and policies exist, as far as that is known.

    Raises:
        NoAnswerError: One does not.
    """
    for each in namespaces:
        check_namespace(plane, each, fleet)
    for each in policies:
        of_policy(each, fleet)


def of_policy(asked: str, fleet: Fleet) -> list[Binding]:
    """Return the bindings of the policy ``NAME`` or ``NAMESPACE/NAME``.

    Raises:
        NoAnswerError: There are none, and no such policy, as far as policies were read.
    """
    namespace, _, name = asked.rpartition("/")

    def is_asked_for(policy: PolicyRef | PolicyKey | None) -> bool:
        return policy is not None and policy.name == name and namespace in ("", policy.namespace)

    found = [each for each in fleet.bindings if is_asked_for(policy_of(each.annotations))]
    keys = [policy_key(each) for each in fleet.policies or ()]
    if found or any(map(is_asked_for, keys)):
        return found
    if fleet.policies is None:
        raise NoAnswerError(f"no binding is of the policy {asked}, and policies were not read (--policies)")
    raise NoAnswerError(unknown(f"policy {asked}", name, [each.name for each in keys]))


def check_namespace(plane: ControlPlane, namespace: str, fleet: Fleet) -> None:
    """Check that a namespace exists, as far as that is known.

    Raises:
        NoAnswerError: It does not.
    """
    known = {text_of(each, "metadata", "namespace") for each in fleet.policies or ()}
    known |= {each.key.namespace for each in fleet.bindings}
    known |= {each.namespace for each in fleet.workloads or ()}
    if namespace in known:
        return
    if fleet.is_live:
        from karmada_advisor.fleet import live

        try:
            if live.has_namespace(plane, namespace):
                return
        except NoAnswerError as error:
            fleet.warnings.append(f"whether the namespace {namespace} exists is not known: {error}")
            return
    raise NoAnswerError(unknown(f"namespace {namespace}", namespace, known - {""}))
