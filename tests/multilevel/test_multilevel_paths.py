"""Coupled paths: identities without randomness, laws of batches, orders of the levels."""

import itertools
from types import SimpleNamespace

import levels
import numpy as np
import probe
import pytest
from gaussian import Gaussian

from skbayes_sg.dynamics import SGLD
from skbayes_sg.models import Logistic
from skbayes_sg.multilevel.couplings import Plain
from skbayes_sg.multilevel.paths import Diverged

KINDS = {
    "plain": ("plain", "minibatch"),
    "antithetic": ("antithetic", "minibatch"),
    "taylor": ("antithetic", "taylor"),
    "full": ("common", "full"),
}


@pytest.fixture(params=KINDS)
def kind(request):
    coupling, gradient = KINDS[request.param]
    return {"coupling": coupling, "gradient": levels.GRADIENTS[gradient]()}


def probe_of(paths, frame):
    setup = paths.setup
    return probe.Probe(
        frame, setup.gradient, setup.subsampling, SGLD(), batch_size=setup.batch_size
    )  # fmt: skip


# -- identities -----------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_coarse_paths_are_fine_paths_of_the_level_below(kind, level):
    frame = levels.whitened(levels.target_of(Logistic(), n_rows=12, n_features=2))
    paths = levels.paths_of(frame, **kind, h0=0.25, shift=0.75, kept=3, stride=2)
    hand, stepper = levels.ByHand(paths, level), probe_of(paths, frame)
    for records in levels.records_of(paths, level, 2):
        fine, coarse = hand.inputs()
        assert np.array_equal(records[:, 0], levels.fine_path(paths, level, fine, stepper))
        assert records.shape[1] == 1 + len(coarse)
        for k, steps in enumerate(coarse, start=1):
            by_hand = levels.fine_path(paths, level - 1, steps, stepper)
            assert np.array_equal(records[:, k], by_hand)  # bit for bit


@pytest.mark.parametrize("h", [0.01, 0.05])
def test_one_double_step_of_the_antithetic_pair(h):
    rng = np.random.default_rng(3)
    y = rng.normal(size=8)
    frame = probe.frame_at(levels.mean_of_rows(y), [0.0])
    paths = levels.paths_of(frame, batch_size=2)
    rows = rng.integers(8, size=(2, 2))
    a, b = 8.0, 4.0 * y[rows].sum(axis=1)
    f, z = 0.3, rng.normal(size=(2, 1))
    rows, coefficients = levels.coupled(paths.coupling, rows, np.full((2, 2), 4.0), rng)
    fine, plus, minus = levels.double_step(paths, np.full(3, f), rows, coefficients, z, h)[:, 0]
    left = f * (h * a / 2) ** 2 - h**2 * a / 4 * b[0] - np.sqrt(h) * h * a / 2 * z[0, 0]
    assert abs(fine - (plus + minus) / 2 - left) < 1e-12
    one = fine - plus  # the plain difference keeps a term of first order in h
    assert abs(one - left - h / 2 * (b[1] - b[0])) < 1e-12
    assert abs(h / 2 * (b[1] - b[0])) > 10.0 * h**2


def test_paths_of_one_level_are_sgld():
    # Level 0 is the chain of the engine, on the same streams.
    frame = levels.whitened(levels.target_of(Logistic(), n_rows=12))
    paths = levels.paths_of(frame, h0=0.5, shift=4.0, kept=4)
    steps = levels.ByHand(paths, 0).inputs()[0]
    stepper, state = probe_of(paths, frame), np.zeros((1, 1))
    states = [state := stepper.step(state, *step, 0.5) for step in steps]
    kept = np.concatenate(states[-4:])
    assert np.array_equal(levels.records_of(paths, 0, 1)[0, :, 0], kept)


# -- durations and costs --------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 1, 2, 4])
def test_durations_and_costs(level):
    paths = levels.paths_of(
        levels.whitened(levels.target_of(Logistic(), n_rows=12)), h0=0.25, shift=1.5, kept=5,
        stride=2, batch_size=3,
    )  # fmt: skip
    h, route = paths.hierarchy, paths.hierarchy.route(level)
    window = 4 * 2  # steps of h0 from the first to the last instant that is kept
    below = 6 * level + window
    assert h.duration(level) == 6 * (level + 1) + window
    assert route.h == 0.25 / 2**level
    if level == 0:
        assert (route.n_alone, route.n_joint) == (below + 6, 0)
        assert h.cost(0) == 3 * (below + 6)
    else:
        assert route.n_alone * route.h == 1.5  # T_l - T_{l-1}
        assert route.n_joint * 2 * route.h == below * 0.25  # T_{l-1}
        fine = (6 + below) * 2**level
        assert h.cost(level) == 3 * (fine + 2 * below * 2 ** (level - 1))


def test_cost_is_what_was_drawn(kind):
    frame = levels.whitened(levels.target_of(Logistic(), n_rows=12))
    paths = levels.paths_of(frame, **kind, h0=0.5, shift=1.0, kept=2)
    for level in (0, 1, 2):
        fine, coarse = levels.ByHand(paths, level).inputs()
        touched = sum(len(rows) for rows, _, _ in itertools.chain(fine, *coarse))
        assert paths.hierarchy.cost(level) == touched


# -- laws of batches ------------------------------------------------------------------------------


def outcomes(couple, fine, n):
    """All pairs (rows) that the source of a coupling makes of two fine batches, with chances."""
    source, found = probe.source_of(couple), {}
    draws = list(itertools.product(*(range(2 * n - k) for k in range(n))))
    for choice in draws:
        uniforms = iter([(c + 0.5) / (2 * n - k) for k, c in enumerate(choice)])
        rows = np.array([*fine, [-1] * n, [-1] * n])
        coefficients = rows + 0.5
        source(SimpleNamespace(random=lambda u=uniforms: next(u)), n, rows, coefficients)
        assert np.array_equal(coefficients[2], rows[2] + 0.5)  # each row keeps its own
        pair = tuple(rows[2].tolist())
        found[pair] = found.get(pair, 0.0) + 1.0 / len(draws)
    return found


def law_of_the_coarse_batch(couple, fine_batches):
    """Chances of coarse batches, if both fine ones are any of a list with the same chance."""
    law: dict = {}
    pairs = list(itertools.product(fine_batches, repeat=2))
    for fine in pairs:
        for batch, chance in outcomes(couple, fine, len(fine[0])).items():
            law[batch] = law.get(batch, 0.0) + chance / len(pairs)
    return law


def test_plain_coupling_takes_every_part_of_the_fine_batches_alike():
    found = outcomes(Plain.couple, ([0, 1], [2, 3]), 2)
    assert len(found) == 12  # ordered pairs without repetition
    assert np.allclose(list(found.values()), 1.0 / 12.0)


def test_plain_coupling_keeps_the_law_of_independent_rows():
    law = law_of_the_coarse_batch(Plain.couple, list(itertools.product(range(3), repeat=2)))
    assert len(law) == 9
    assert np.allclose(list(law.values()), 1.0 / 9.0, atol=1e-12)


def _with_replacement(rng, n, rows, coefficients):
    for k in range(n):
        other = int(rng.random() * (2 * n - k)) % (2 * n)
        rows[2, k], coefficients[2, k] = (a[other // n, other % n] for a in (rows, coefficients))


def test_that_law_tells_other_couplings():
    every = list(itertools.product(range(3), repeat=2))
    assert law_of_the_coarse_batch(_with_replacement, every)[0, 0] > 1.2 / 9.0
    # and batches without replacement are none of which a mixture has the law
    apart = list(itertools.permutations(range(3), 2))
    assert law_of_the_coarse_batch(Plain.couple, apart)[0, 0] > 0.0


def test_antithetic_coupling_uses_both_batches():
    rng = np.random.default_rng(0)
    fine, coefficients = [[4, 1], [3, 3]], [[1.0, 2.0], [3.0, 4.0]]
    rows, own = levels.coupled(levels.COUPLINGS["antithetic"](), fine, coefficients, rng)
    assert np.array_equal(rows[2:], fine)
    assert np.array_equal(own[2:], coefficients)


# -- what the levels add up to --------------------------------------------------------------------


def mean_square(h, steps):
    """E φ² after some steps of SGLD with full gradients from 0, on a standard normal target."""
    shrink = (1.0 - h / 2.0) ** 2
    return h * (1.0 - shrink**steps) / (1.0 - shrink)


def kept_mean_square(hierarchy, level):
    """Its average over the instants that are kept."""
    ends = hierarchy.duration(level) - hierarchy.stride * np.arange(hierarchy.kept)
    return mean_square(hierarchy.step_size(level), ends * 2**level).mean()


def standardised_gaps(paths, n_paths):
    """Of the means of levels to their exact values, in standard errors."""
    found, below = [], 0.0
    for level in range(4):
        delta = levels.differences(paths, level, n_paths, lambda phi: phi[..., 0] ** 2)
        exact = kept_mean_square(paths.hierarchy, level)
        error = delta.std(ddof=1) / np.sqrt(n_paths)
        found.append(abs(delta.mean() - (exact - below)) / error)
        below = exact
    return np.array(found)


@pytest.fixture
def gaussian():
    frame = levels.whitened(levels.target_of(Gaussian(), n_rows=6))
    return {
        "frame": frame, "coupling": "common", "gradient": levels.GRADIENTS["full"](), "h0": 0.5,
        "shift": 1.0, "kept": 3, "stride": 2,
    }  # fmt: skip


@pytest.mark.slow
def test_levels_add_up_to_the_finest(gaussian):
    assert standardised_gaps(levels.paths_of(**gaussian), 2000).max() < 4.5


@pytest.mark.slow
def test_that_sum_sees_a_coarse_path_that_begins_too_early(gaussian, monkeypatch):
    own = levels.Hierarchy.route

    def route(self, level):
        found = own(self, level)
        longer = found.n_alone // 2 if level else 0
        return found._replace(n_alone=found.n_alone - 2 * longer, n_joint=found.n_joint + longer)

    monkeypatch.setattr(levels.Hierarchy, "route", route)
    assert standardised_gaps(levels.paths_of(**gaussian), 2000).max() > 7.0


def orders(frame, kind, finest, n_paths, coarsest=4):
    """(β, α) from `coarsest` to `finest`: of variances for θ, of means for θ²."""
    coupling, gradient = KINDS[kind]
    paths = levels.paths_of(frame, coupling, levels.GRADIENTS[gradient](), h0=1.0, shift=4.0)
    level = np.arange(coarsest, finest + 1)
    V, m = [], []
    for k in level:
        theta = frame.theta(levels.records_of(paths, k, n_paths)[:, -1])[..., 0]
        V.append((theta[:, 0] - theta[:, 1:].mean(axis=1)).var())
        m.append(abs((theta[:, 0] ** 2 - (theta[:, 1:] ** 2).mean(axis=1)).mean()))
    return -np.polyfit(level, np.log2(V), 1)[0], -np.polyfit(level, np.log2(m), 1)[0]


BETA = {"plain": (0.8, 1.3), "antithetic": (1.8, 2.3), "taylor": (1.8, 2.3), "full": (1.8, 2.3)}


@pytest.fixture(scope="module")
def logistic():
    return levels.whitened(levels.target_of(Logistic(), n_rows=64))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain", "antithetic"])
def test_orders_of_variances(logistic, name):
    least, most = BETA[name]
    assert least <= orders(logistic, name, 5, 1200)[0] <= most


@pytest.mark.slow
@pytest.mark.parametrize("name", BETA)
def test_orders_of_variances_and_means(logistic, name):
    beta, alpha = orders(logistic, name, 6, 12_000)
    assert BETA[name][0] <= beta <= BETA[name][1]
    assert 0.7 <= alpha <= 1.3


# -- how they are run -----------------------------------------------------------------------------


def test_records_do_not_depend_on_threads_or_chunks(logistic, monkeypatch):
    options = {"coupling": "plain", "gradient": levels.GRADIENTS["minibatch"](), "h0": 0.5}
    expected = levels.records_of(levels.paths_of(logistic, **options), 2, 40)
    for n_jobs in (2, 3):
        paths = levels.paths_of(logistic, **options, n_jobs=n_jobs)
        assert np.array_equal(levels.records_of(paths, 2, 40), expected)
    monkeypatch.setattr("skbayes_sg.multilevel.paths.FIRST_UNITS", 7)
    monkeypatch.setattr("skbayes_sg.engine.rounds.CHUNK_SECONDS", 1e-9)
    few = levels.paths_of(logistic, **options)
    assert np.array_equal(levels.records_of(few, 2, 3), expected[:3])
    assert np.array_equal(levels.records_of(few, 2, 20, first=1), expected[16:36])


def test_a_path_that_leaves_the_bounds_ends_the_run(logistic):
    paths = levels.paths_of(logistic, gradient=levels.GRADIENTS["taylor"](), h0=16.0, shift=400.0)
    with pytest.raises(Diverged):
        levels.records_of(paths, 0, 4)


def test_blocks_have_streams_of_their_own(logistic):
    paths = levels.paths_of(logistic, h0=0.5, shift=2.0)
    ends = [levels.records_of(paths, level, 48)[:, 0, 0, 0] for level in (0, 1)]
    assert len(np.unique(np.concatenate(ends))) == 96
