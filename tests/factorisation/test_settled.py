"""Runs that go on until their draws can be trusted."""

from types import SimpleNamespace

import numpy as np
import pytest

from skbayes_sg import BayesianPMF
from skbayes_sg.factorisation import settled
from skbayes_sg.factorisation.factor_posterior import FactorPosterior
from skbayes_sg.factorisation.request import FactorisationRequest
from skbayes_sg.factorisation.settled import affordable_rounds, run_settled

RNG = np.random.default_rng(0)
X = np.argwhere(RNG.random((30, 20)) < 0.7)
Y = RNG.normal(size=30)[X[:, 0]] + RNG.normal(size=20)[X[:, 1]] + 0.3 * RNG.normal(size=len(X))
OWN = {"rank": 2, "n_draws": 10, "random_state": 0}


def request(n_ratings, **options):
    found = FactorisationRequest(BayesianPMF(**options))
    found.plan(n_ratings)
    return found


@pytest.mark.parametrize(
    ("options", "rounds"),
    [
        ({}, 4), ({"n_warmup": 50}, 1), ({"thin": 1}, 1), ({"sampler": "sgld"}, 1),
        ({"n_chains": 4}, 2), ({"n_draws": 1000}, 1), ({"n_draws": 350}, 3), ({"rank": 64}, 1),
        ({"rank": 32}, 3),
    ],
)  # fmt: skip
def test_runs_go_on_where_that_costs_little(options, rounds):
    """The 150 passes over 200 000 ratings take 1.8 s, and 1550 passes 19 s."""
    rank = options.get("rank", 16)
    problem = SimpleNamespace(n_ratings=200_000, n_rows=3000, width=rank + 1)
    assert affordable_rounds(request(200_000, **options), problem) == rounds


@pytest.mark.parametrize("n_settled", [1, 2, 3, 5])
def test_draws_are_made_again_until_they_are_settled(n_settled, monkeypatch):
    """Each time all passes so far are the warm-up, and draws are twice as far apart."""
    setup = SimpleNamespace(n_warmup=50, thin=2, n_draws=10)
    kept = SimpleNamespace(n=0, forget=lambda: setattr(kept, "n", 0))
    chains, shares, judged = [SimpleNamespace(passes=0, kept=kept, n_warmup=50)], [], []

    def run(setup, chains, seen):
        chains[0].passes = setup.n_warmup + setup.thin * setup.n_draws
        kept.n += setup.n_draws
        seen(5)
        seen(10)
        return chains, 10

    def is_settled(chains):
        judged.append(chains[0].passes)
        return len(judged) >= n_settled

    monkeypatch.setattr(settled, "run", run)
    found, done = run_settled(setup, chains, 4, is_settled, lambda _, share: shares.append(share))
    rounds = min(n_settled, 4)
    assert found is chains
    assert (done, kept.n, setup.thin) == (10, 10, 2**rounds)
    passes = [70, 110, 190, 350]
    assert setup.n_warmup == chains[0].n_warmup == [50, *passes][rounds - 1]
    assert judged == passes[: min(rounds, 3)]  # whatever the last round is, it is the last
    assert shares == sorted(shares)
    assert shares[:2] == [0.25, 0.5]
    assert shares[-1] == 1.0


@pytest.mark.parametrize("stop", [4, 10])
def test_a_run_that_is_stopped_does_not_go_on(stop, monkeypatch):
    def run(setup, chains, seen):
        return chains, next(done for done in range(1, 11) if seen(done))

    monkeypatch.setattr(settled, "run", run)
    model, chains, calls = SimpleNamespace(n_warmup=0, thin=1, n_draws=10), [], []

    def watch(done, share):
        calls.append(share)
        return done == stop

    assert run_settled(model, chains, 4, None, watch) == (chains, stop)
    assert calls[-1] == 0.05 * stop


@pytest.mark.parametrize("keep", ["all", "predictive"])
def test_later_draws_are_those_of_a_longer_warm_up(keep, monkeypatch):
    """Draws of a run that has gone on once, as `n_warmup` and `thin` would have given them."""
    verdicts, check = [False, True], FactorPosterior.check

    def judged(posterior):
        found = check(posterior)
        return SimpleNamespace(trustworthy=verdicts.pop(0)) if verdicts else found

    monkeypatch.setattr(FactorPosterior, "check", judged)
    model = BayesianPMF(**OWN, keep=keep).fit(X, Y)
    assert not verdicts
    assert (model.n_warmup_, model.thin_) == (300, 40)
    asked = BayesianPMF(**OWN, keep=keep, n_warmup=300, thin=40).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), asked.predict(X))
    np.testing.assert_array_equal(model.posterior_.flat, asked.posterior_.flat)


def test_draws_that_cannot_be_judged_are_not_made_again():
    model = BayesianPMF(rank=2, n_draws=5, random_state=0).fit(X, Y)
    assert (model.n_warmup_, model.thin_) == (100, 20)
