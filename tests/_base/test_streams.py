"""Every stream of random numbers has its name in one module, and is no other's."""

import ast
from pathlib import Path

import numpy as np
import pytest

from skbayes_sg._base import streams

PACKAGE = Path(streams.__file__).parents[1]
MAKERS = {"default_rng", "SeedSequence", "Generator", "SFC64", "spawn", "generate_state"}


def made_in(source):
    """(line, name) of the calls that make a stream."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in MAKERS:
            if ast.unparse(node.func) == "torch.Generator":
                continue  # torch draws its numbers itself, from a seed that NumPy has drawn
            yield node.lineno, node.func.attr


def test_streams_are_made_in_one_module():
    for path in PACKAGE.rglob("*.py"):
        found = list(made_in(path.read_text(encoding="utf-8")))
        assert (found != []) == (path.name == "streams.py"), (path, found)


def test_the_table_names_every_stream():
    named = set(streams.__all__) - {"ChainStreams", "seed_of"}
    assert all(f"\n`{name}` " in streams.__doc__ for name in named)


def numbers(seed):
    """Some numbers of every stream of two chains, two shards and so on, of a seed."""
    rngs = [rng for k in (0, 1) for rng in streams.of_chain(seed, k)]
    rngs += [rng for place in ((0, 1), (1, 0)) for rng in streams.of_paths(seed, *place)]
    makers = streams.of_recipe, streams.of_shards, streams.of_combination, streams.of_walls
    makers += streams.of_random_levels, streams.of_proposal, streams.of_complement
    rngs += [make(seed) for make in makers]
    rngs += [streams.of_documents(seed, s, block) for s in range(8) for block in (0, 1)]
    rngs += [streams.of_user(np.random.Generator(np.random.SFC64(seed)))]
    rngs += [streams.of_start_documents(seed), streams.of_predictions(seed)]
    seeds = [streams.shard_seed(seed, s) for s in (0, 1)]
    seeds += [streams.stream_seed(seed, call, part) for call in (1, 2) for part in (0, 1, 2)]
    rngs += [rng for other in seeds for rng in streams.of_chain(other, 0)]
    rngs += [streams.child(rngs[0]), streams.child(rngs[0])]
    return np.concatenate([rng.random(20) for rng in rngs])


def test_streams_are_all_different():
    found = np.concatenate([numbers(5), numbers(6)])
    assert len(np.unique(found)) == len(found)
    np.testing.assert_array_equal(found, np.concatenate([numbers(5), numbers(6)]))


def test_a_child_leaves_the_numbers_of_its_parent():
    one, other = streams.of_chain(3, 0).rows, streams.of_chain(3, 0).rows
    streams.child(other)
    np.testing.assert_array_equal(one.random(9), other.random(9))


@pytest.mark.parametrize("random_state", [7, np.random.RandomState(7)])
def test_of_user(random_state):
    found = streams.of_user(random_state)
    expected = np.random.RandomState(7).randint(np.iinfo(np.int32).max)
    assert found.random() == np.random.Generator(np.random.SFC64(expected)).random()
    assert streams.of_user(found) is found
