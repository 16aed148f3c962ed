"""The commands that only read: why a binding is where it is, why not elsewhere, and what a change would do.

The packages, each of which imports only those below it, and ``karmada_scheduler``:

- ``cli``: the flags and the run of each command.
- ``web``: the page.
- ``sources``: where objects and rules come from: a control plane, a scheduler's process, files, a capture.
- ``views``: the answers as text, Markdown, HTML and JSON.
- ``rebalance``: which bindings a rebalance would move.
- ``plan``: what a change of objects would do.
- ``whynot``: which change would bring a binding to a cluster.
- ``explain``: traces that take a decision again, causes, and the explanation as data.
- ``state``: what is stored about a binding, and who decides.
- ``claims``: which policy claims an object, and the binding that Karmada makes of it.
"""
