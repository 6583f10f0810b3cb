"""Gradients that remember, and the memories that they can begin with."""

import itertools

import cases
import numpy as np
import probe


def kernels_of(frame, gradient, scheme="uniform", n=2, **options):
    """A gradient under a scheme."""
    rule = cases.SUBSAMPLING[scheme]
    chances = rule.chances(frame.target.n_rows)
    return probe.Probe(frame, gradient, rule.scheme, batch_size=n, chances=chances, **options)


def seeds_of_anchors(kernels):
    """{rows J of an anchor: seed of a blank memory whose first anchor has them}, for all J."""
    n_anchor, n_rows = kernels.setup.gradient.anchor_size, kernels.setup.n_rows
    found: dict = {}
    for seed in range(2000):
        memory = kernels.memory_at(np.zeros(kernels.dimension), seed)
        found.setdefault(tuple(sorted(probe.remembered(memory).rows)), seed)
        if len(found) == len(list(itertools.combinations(range(n_rows), n_anchor))):
            return found
    raise AssertionError("some anchors are never drawn")
