"""From policies to bindings: which policy claims which template, and what the binding receives.

The rules are those of the resource detector of karmada-controller-manager v1.18.2. Nothing here does input or output.

    from karmada_advisor.claims.claim import claim

    result = claim(templates, policies, bindings, events=[PolicyWritten(manifest)])
    result.by_binding[key].binding_after
"""
