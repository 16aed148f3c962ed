"""The commands that only read: why a binding is where it is, why not elsewhere, and what a change would do.

The packages, each of which imports only those below it, and ``karmada_scheduler``:

- ``cli``: the flags and the run of each command.
- ``web``: the page.
- ``views``: the answers as text, Markdown, HTML and JSON.
- ``whatif``: what changes and losses would do: placement tests, survival, rebalances, plans.
- ``whynot``: which change would bring a binding to a cluster.
- ``explain``: traces that take a decision again, causes, and the explanation as data.
- ``fleet``: what is read: objects and rules, from a control plane, a scheduler's process, files, a capture.
- ``state``: what is stored about a binding, and who decides.
- ``claims``: which policy claims an object, and the binding that Karmada makes of it.
"""
