"""Every stream of random numbers of the package, by name.

All streams of a fit follow from its seed, an integer drawn from `random_state`. A stream is set
apart from the others by a *key*, a path in the tree that `numpy.random.SeedSequence.spawn` grows
from the seed, or by *words* that enter the entropy beside the seed. Keys and words never give the
same stream. Words that are followed by zeros do, so that none of a single word is the first of
several; word 2 serves twice, for generators of two kinds.

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
                                         surveys. Also the mode for multilevel paths, scales of
                                         priors that are learned, where chains of densities,
                                         networks and modules begin, and the ratings whose
                                         predictions are traced.
`of_shards`          word 2              The division of the rows into shards.
`of_random_levels`   word 2              The levels of the randomised multilevel estimator.
`of_combination`     word 3              Draws of the combined subposteriors.
`of_proposal`        word 4              Draws of the proposal of importance sampling, their
                                         order, and chains in lockstep; also those that confirm
                                         a multilevel estimate. In the place of these: Gibbs
                                         sweeps of scale mixtures, chains of learned scales,
                                         the fit of the proposal of slopes that vary, and the
                                         search for modes of Gaussian mixtures.
`of_complement`      word 5              Components of coefficients that change no predictor.
`of_walls`           word 7              The points at which walls are looked for.
`of_start_documents` word 2000           The documents on which chains of topics start.
`stream_seed`        words call, part    A seed for a call of `partial_fit`, by its number, and
                                         for a part of it if that is not 0: of topics, the pass
                                         over documents (1), and the draws that follow (2).
`of_predictions`     none                Predictive draws, from a seed of their own.
`of_documents`       words 6, state,     Left-to-right estimates of a block of documents.
                     block
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
__all__ += ["of_shards", "of_start_documents", "of_user", "of_walls"]
__all__ += ["seed_of", "shard_seed", "stream_seed"]

# Words that set streams apart: see the table above.
RECIPE, SHARDS, RANDOM_LEVELS, COMBINATION, PROPOSAL, COMPLEMENT = 1, 2, 2, 3, 4, 5
DOCUMENTS, WALLS, START_DOCUMENTS = 6, 7, 2000
SHARD = 1 << 31  # first part of the key of a shard: no chain has this number


class ChainStreams(NamedTuple):
    """The three generators of a chain: see `of_chain` in the table of the module."""

    rows: np.random.Generator
    noise: np.random.Generator
    start: np.random.Generator


def _fast(sequence):
    return np.random.Generator(np.random.SFC64(sequence))


def seed_of(random_state):
    """Return a seed, an integer below 2**31 - 1, drawn from scikit-learn's `random_state`."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def of_chain(seed, number):
    """Return the `ChainStreams` of the chain with this number."""
    sequence = np.random.SeedSequence(entropy=seed, spawn_key=(number,))
    return ChainStreams(*map(_fast, sequence.spawn(3)))


def of_paths(seed, level, block):
    """Return the generators (rows, noise) of a block of coupled paths of a multilevel estimate."""
    sequence = np.random.SeedSequence(entropy=seed, spawn_key=(level, block))
    return [_fast(own) for own in sequence.spawn(2)]


def shard_seed(seed, shard):
    """Return the seed of the shard with this number, from which the streams of its fit follow."""
    return int(np.random.SeedSequence(seed, spawn_key=(SHARD, shard)).generate_state(1)[0])


def stream_seed(seed, call, part=0):
    """Return the seed of the `call`-th call of `partial_fit`, counted from 1, or of a part of it.

    A part that draws from streams which another part uses as well needs another number.
    """
    words = [seed, call, part] if part else [seed, call]
    return int(np.random.SeedSequence(words).generate_state(1)[0])


def of_recipe(seed):
    """Return the generator for measurements of the recipe before the chains run."""
    return np.random.default_rng([seed, RECIPE])


def of_shards(seed):
    """Return the generator for the division of the rows into shards."""
    return np.random.default_rng([seed, SHARDS])


def of_random_levels(seed):
    """Return the generator for the levels of the randomised multilevel estimator."""
    return _fast(np.random.SeedSequence([seed, RANDOM_LEVELS]))


def of_combination(seed):
    """Return the generator for draws of the combined subposteriors."""
    return np.random.default_rng([seed, COMBINATION])


def of_proposal(seed):
    """Return the generator for draws of the proposal of importance sampling."""
    return _fast(np.random.SeedSequence([seed, PROPOSAL]))


def of_complement(seed):
    """Return the generator for components of the coefficients that change no row's predictor."""
    return _fast(np.random.SeedSequence([seed, COMPLEMENT]))


def of_walls(seed):
    """Return the generator for the points at which walls around the posterior are looked for."""
    return np.random.default_rng([seed, WALLS])


def of_start_documents(seed):
    """Return the generator that chooses the documents on which chains of topics start."""
    return np.random.default_rng([seed, START_DOCUMENTS])


def of_documents(seed, state, block):
    """Return the generator for left-to-right estimates of a block of documents.

    `state` is the number of the draw of the topics, and `block` that of the block.
    """
    return _fast(np.random.SeedSequence([seed, DOCUMENTS, state, block]))


def of_predictions(seed):
    """Return the generator for predictive draws, and for the division of documents into halves."""
    return np.random.default_rng(seed)


def of_user(random_state):
    """Return a generator for an int, a `numpy.random.RandomState` or None; a generator itself."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.Generator(np.random.SFC64(seed_of(random_state)))


def fixed():
    """Return a new generator with seed 0: its numbers are the same after every call."""
    return np.random.default_rng(0)


def child(rng):
    """Return an independent generator, without any change to the numbers that `rng` will make."""
    return rng.spawn(1)[0]
