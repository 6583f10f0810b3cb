"""Every stream of random numbers of the package, by name.

All streams of a fit follow from its seed, an integer drawn from `random_state`. A stream is set
apart from the others by a *key*, a path in the tree that `numpy.random.SeedSequence.spawn` grows
from the seed, or by a *word* that enters the entropy beside the seed. Keys and words never give
the same stream.

===================  ==================  ======================================================
Stream               Set apart by        Who draws from it
===================  ==================  ======================================================
`of_chain`           key (chain, 0 to 2) ``rows``: subsampling. ``noise``: the normals of the
                                         steps, draws in closed form, Gibbs updates of ratings.
                                         ``start``: starting points, momenta, noise variances.
                                         Chains of topics use the three for sweeps, for draws
                                         of topics, and for splits and merges. Pilot chains
                                         have the numbers after those of the final run.
`of_paths`           key (level, block,  ``rows`` and ``noise`` of a block of coupled paths.
                     0 or 1)
`shard_seed`         key (2**31, shard)  A shard, which makes of it the streams of a fit.
`of_recipe`          word 1              What the recipe measures before chains run: the order
                                         of the rows, the search for the mode, the rows of
                                         surveys. Also the mode for multilevel paths, and the
                                         ratings whose predictions are traced.
`of_shards`          word 2              The division of the rows into shards.
`of_random_levels`   word 2              The levels of the randomised multilevel estimator.
`of_combination`     word 3              Draws of the combined subposteriors.
`of_proposal`        word 4              Draws of the proposal of importance sampling, their
                                         order, and chains in lockstep; also those that confirm
                                         a multilevel estimate.
`of_complement`      word 5              What the rows do not see of many coefficients.
`of_start_documents` word 2000           The documents on which chains of topics start.
`stream_seed`        word 1, 2, ...      A call of `partial_fit`, by its number.
`of_predictions`     none                Predictive draws, from a seed of their own.
`of_documents`       words state, block  Left-to-right estimates of a block of documents.
`of_user`            none                Combiners that are called as functions, and draws of
                                         the mixtures of new documents.
`fixed`              none, seed 0        Random projections and starting vectors of numerical
                                         methods: their results do not depend on the seed.
`child`              the next child      The memory of a gradient, a coupled twin, and a second
                                         look at the gradients: all three are children of the
                                         ``rows`` of a chain, and leave its draws as they are.
===================  ==================  ======================================================

The module is on the ground floor because gradients and combiners need it as well as the engine.
"""

from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

__all__ = ["ChainStreams", "child", "fixed", "of_chain", "of_combination", "of_complement"]
__all__ += [
    "of_documents",
    "of_paths",
    "of_predictions",
    "of_proposal",
    "of_random_levels",
    "of_recipe",
]
__all__ += ["of_shards", "of_start_documents", "of_user", "seed_of", "shard_seed", "stream_seed"]

RECIPE, SHARDS, RANDOM_LEVELS, COMBINATION, PROPOSAL, COMPLEMENT = 1, 2, 2, 3, 4, 5  # words
START_DOCUMENTS = 2000  # likewise
SHARD = 1 << 31  # first part of the key of a shard: no chain has this number


class ChainStreams(NamedTuple):
    """The generators of a chain."""

    rows: np.random.Generator
    noise: np.random.Generator
    start: np.random.Generator


def _fast(sequence):
    return np.random.Generator(np.random.SFC64(sequence))


def seed_of(random_state):
    """An integer drawn from a `random_state` as scikit-learn has it."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def of_chain(seed, number):
    """The `ChainStreams` of a chain."""
    sequence = np.random.SeedSequence(entropy=seed, spawn_key=(number,))
    return ChainStreams(*map(_fast, sequence.spawn(3)))


def of_paths(seed, level, block):
    """The generators (rows, noise) of a block of multilevel paths."""
    sequence = np.random.SeedSequence(entropy=seed, spawn_key=(level, block))
    return [_fast(own) for own in sequence.spawn(2)]


def shard_seed(seed, shard):
    """Seed of a shard."""
    return int(np.random.SeedSequence(seed, spawn_key=(SHARD, shard)).generate_state(1)[0])


def stream_seed(seed, call):
    """Seed of the `call`-th call of `partial_fit`, counted from 1."""
    return int(np.random.SeedSequence([seed, call]).generate_state(1)[0])


def of_recipe(seed):
    """Measurements before the chains run."""
    return np.random.default_rng([seed, RECIPE])


def of_shards(seed):
    """The division of the rows into shards."""
    return np.random.default_rng([seed, SHARDS])


def of_random_levels(seed):
    """The levels of the randomised multilevel estimator."""
    return _fast(np.random.SeedSequence([seed, RANDOM_LEVELS]))


def of_combination(seed):
    """Draws of the combined subposteriors."""
    return np.random.default_rng([seed, COMBINATION])


def of_proposal(seed):
    """Draws with importance weights."""
    return _fast(np.random.SeedSequence([seed, PROPOSAL]))


def of_complement(seed):
    """Coefficients as far as the rows do not see them."""
    return _fast(np.random.SeedSequence([seed, COMPLEMENT]))


def of_start_documents(seed):
    """The documents on which chains of topics start."""
    return np.random.default_rng([seed, START_DOCUMENTS])


def of_documents(seed, state, block):
    """Left-to-right estimates of a block of documents under a draw of the topics."""
    return _fast(np.random.SeedSequence([seed, state, block]))


def of_predictions(seed):
    """Predictive draws, and the halves of documents."""
    return np.random.default_rng(seed)


def of_user(random_state):
    """The generator for an int, a `numpy.random.RandomState` or None; a generator is its own."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.Generator(np.random.SFC64(seed_of(random_state)))


def fixed():
    """The same numbers at every call."""
    return np.random.default_rng(0)


def child(rng):
    """An independent stream, which leaves the numbers that `rng` goes on to make as they are."""
    return rng.spawn(1)[0]
