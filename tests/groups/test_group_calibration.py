"""Joint laws of parameters and data: Geweke's test, and simulation-based calibration."""

import numpy as np
import pytest
from group_tables import problem_of, response
from scipy import stats

from skbayes_sg._base.threads import one_blas_thread
from skbayes_sg.diagnostics import convergence
from skbayes_sg.groups.chains import run_chains
from skbayes_sg.groups.collapsed import Reference
from skbayes_sg.groups.collapsed_hmc import CollapsedHMC
from skbayes_sg.groups.linear_crossed import CrossedGibbs
from skbayes_sg.groups.linear_exact import run_exact
from skbayes_sg.kernels.layout import FACT_Y
from skbayes_sg.models import Linear, Logistic
from skbayes_sg.priors import HalfNormal, Normal
from skbayes_sg.recipe.request import Request

pytestmark = pytest.mark.slow
RANKS = 49  # draws beside the truth


@pytest.fixture(autouse=True)
def _like_a_fit():
    with one_blas_thread:
        yield


def problem(kind, sizes):
    """A column, an intercept, and σ, τ of half-normal priors; all priors have the scale one."""
    found = problem_of(
        kind, n=30, d=1, sizes=sizes, weight=np.ones(30), intercept=Normal(scale=1.0)
    )
    prior = np.array(found.target.prior)
    prior[0] = Normal(scale=1.0)._table((1,))[0]
    if kind is Linear:
        prior[2] = HalfNormal(1.0)._table((1,), "noise")[0]
    found.target = found.target.with_prior(prior)
    return found


def from_prior(kind, sizes, rng):
    """(β, log σ), log τ of each factor, and effects."""
    theta = rng.standard_normal(2)
    if kind is Linear:
        theta = np.append(theta, np.log(abs(rng.standard_normal())))
    log_tau = np.log(np.abs(rng.standard_normal(len(sizes))))
    return (
        theta,
        log_tau,
        [np.exp(t) * rng.standard_normal(L) for t, L in zip(log_tau, sizes, strict=False)],
    )


def drawn(kind, found, theta, u, rng):
    """Responses of the rows."""
    eta = found.design @ theta[:2] + sum(own[found.codes[:, k]] for k, own in enumerate(u))
    if kind is Logistic:
        return response(Logistic, eta, rng)
    return eta + np.exp(theta[2]) * rng.standard_normal(len(eta))


def with_response(found, y):
    """The same rows with another response."""
    other = problem(Linear if len(found.target.prior) == 3 else Logistic, found.sizes)
    facts = np.array(other.target.data.facts)
    facts[:, FACT_Y] = y
    other.target.data = other.target.data._replace(facts=facts)
    other.codes = found.codes
    return other


@pytest.mark.parametrize(("kind", "n_tables"), [(Linear, 400), (Logistic, 150)])
def test_ranks_are_uniform(kind, n_tables):
    found, ranks, planted = problem(kind, (6,)), [], []
    for seed in range(n_tables):
        rng = np.random.default_rng(seed)
        theta, log_tau, u = from_prior(kind, (6,), rng)
        own = with_response(found, drawn(kind, found, theta, u, rng))
        if kind is Linear:
            request = Request(seed=seed, n_draws=RANKS, n_chains=1)
            outcome = run_exact(own, request)
        else:
            request = Request(seed=seed, n_draws=RANKS, n_chains=1, thin=5)
            outcome = run_chains(own, request, CollapsedHMC)
        draws = np.column_stack([outcome.draws[0], outcome.effects[0][0, 0]])
        truth = np.concatenate([theta, log_tau, u[0][:1]])
        ranks.append((draws < truth).sum(axis=0))
        planted.append((draws < truth + 0.5 * draws.std(axis=0)).sum(axis=0))
    for j in range(len(ranks[0])):
        counts = [np.bincount(np.array(r)[:, j] // 10, minlength=5) for r in (ranks, planted)]
        assert stats.chisquare(counts[0]).pvalue > 1e-4
        assert stats.chisquare(counts[1]).pvalue < 1e-4


class Geweke:
    """Chains in which parameters and responses are drawn in turn."""

    def __init__(self, kind, sizes, nested, seed):
        self.kind, self.problem, self.rng = kind, problem(kind, sizes), np.random.default_rng(seed)
        if nested:
            outer = np.arange(sizes[1]) * sizes[0] // sizes[1]
            self.problem.codes[:, 0] = outer[self.problem.codes[:, 1]]
        self.setting = (CrossedGibbs if kind is Linear else CollapsedHMC).of(self.problem)
        self.chain = self.setting.new_chain(seed, 0)
        self.chain.forget()
        self.setting.begin(self.chain)

    def renew(self):
        """Draw the responses given the parameters; the setting is a function of them alone."""
        y = drawn(
            self.kind, self.problem, self.chain.theta, [u[:, 0] for u in self.chain.u], self.rng
        )
        rows = self.setting.reference.rows if self.kind is Logistic else self.setting.rows
        if self.kind is Linear:
            rows.y = (y - self.middle) / rows.unit
            return
        facts = np.array(rows.target.data.facts)
        facts[:, FACT_Y] = y[np.argsort(self.problem.codes[:, rows.first], kind="stable")]
        rows.target.data = rows.target.data._replace(facts=facts)
        rows.sorted = [rows._sorted(k) for k in range(len(rows.sorted))]
        effects = [np.zeros_like(u) for u in self.chain.u]
        self.setting.reference = Reference(rows, np.zeros(2), effects)
        self.chain.state = None

    def run(self, n):
        """Draws of (θ, log τ, first effects)."""
        if self.kind is Linear:
            facts = self.problem.target.data.facts
            self.middle = facts[:, FACT_Y].mean()
        found = []
        for _ in range(n):
            self.renew()
            self.setting.sweep(self.chain, False)
            first = [u[0] for u in self.chain.u]
            found.append(np.concatenate([self.chain.theta, *self.chain.psi, *first]))
        return np.array(found)


@pytest.mark.parametrize(
    ("sizes", "nested"), [((5, 4), False), ((3, 7), True)], ids=["crossed", "nested"]
)
@pytest.mark.parametrize("kind", [Linear, Logistic])
def test_parameters_and_responses_have_their_joint_law(kind, sizes, nested):
    n = 20_000
    draws = Geweke(kind, sizes, nested, 0).run(n)[500:]
    rng = np.random.default_rng(1)
    prior = []
    for _ in range(20_000):
        theta, log_tau, u = from_prior(kind, sizes, rng)
        prior.append(np.concatenate([theta, log_tau, [own[0] for own in u]]))
    prior = np.array(prior)
    scales = slice(2, len(draws[0]) - 2)  # of numbers of long tails, take those that are bounded
    for values in (draws, prior):
        values[:, scales] = np.exp(values[:, scales])
        values[:, -2:] = np.tanh(values[:, -2:])
    for f in (lambda x: x, np.square):
        a, b = f(draws), f(prior)
        own = convergence.ess_mean(a[None])
        error = np.sqrt(a.var(axis=0) / own + b.var(axis=0) / len(b))
        assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) < 4.5 * error).all()
    shifted = draws.mean(axis=0) + 0.6 * draws.std(axis=0) - prior.mean(axis=0)
    own = convergence.ess_mean(draws[None])
    error = np.sqrt(draws.var(axis=0) / own + prior.var(axis=0) / len(prior))
    assert (np.abs(shifted) > 4.5 * error).all()
