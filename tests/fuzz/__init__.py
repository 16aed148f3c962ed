"""Bad input from strategies: manifests, configuration, results of plugins, extenders and estimators, kubeconfigs.

CI runs a fixed set of examples. ``make fuzz-input EXAMPLES=20000`` runs others, from a random seed. It prints the failing
example, and the seed with which ``ARGS=--hypothesis-seed=SEED`` repeats the run.
"""
