"""From documents to chains of topics: the choice of the sampler, the plan and the start."""

import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np

from .._base import streams
from .._base.threads import in_workers
from ..recipe.price import LONG_SECONDS, warn_if_long
from ..schedules import Constant
from .collapsed_gibbs import word_topics
from .corpus import as_tokens
from .gibbs_chains import DrawPlan, new_gibbs_chains, run_chains
from .outcome import outcome_of, probe_of
from .stochastic_chains import StochasticChain, TopicPieces, find_centre, new_state

__all__ = ["GIBBS_PLAN", "gibbs_start", "sample_topics"]

GIBBS_TOKENS = 20_000_000  # largest number of tokens for which "auto" is Gibbs sampling
BATCH = 100  # automatic number of documents of a batch
# Automatic number with "saga": its batches cause no noise, and words move less often.
SAGA_BATCH = 500
START_DOCUMENTS = 2000  # documents on which chains with stochastic gradients start
# Automatic step sizes as h D/n: with a memory of the topics of all tokens ("saga"), and without.
SAGA_RATE, BATCH_RATE = 5.0, 0.3
GIBBS_PLAN = DrawPlan(n_warmup=50, thin=10, n_draws=5)  # default plan for many tokens
# With fewer tokens, draws are further apart: by as many sweeps as visit DRAW_VISITS tokens, but
# only up to MOST_THIN sweeps, and up to MOST_SWEEPS for all draws of a chain.
DRAW_VISITS = 1_000_000
MOST_THIN, MOST_SWEEPS = 200, 1000
# Predicted seconds of a sweep for each token, and in addition for each token and topic.
VISIT_SECONDS, TOPIC_SECONDS = 2e-8, 5e-10
# The same for tokens with weights, where every topic of a token takes six logarithms of Γ.
WEIGHTED_VISIT_SECONDS, WEIGHTED_TOPIC_SECONDS = 6e-8, 1.2e-7
VISITS = 2.0  # cost of a step for each token of its batch, in visits of a sweep to a token


@dataclass
class Run:
    """Chains that are ready to run, and what was chosen for them."""

    chains: list
    arguments: tuple
    plan: DrawPlan
    chosen: dict


def plan_of(request, default):
    """Return the requested plan; `default` replaces numbers that are "auto"."""
    return DrawPlan(
        default.n_warmup if request.n_warmup is None else request.n_warmup,
        default.thin if request.thin is None else request.thin,
        request.n_draws,
    )


def sample_topics(corpus, request, progress):
    """Draw topics from the posterior, with the requested sampler or one that suits the corpus."""
    tokens, probe = as_tokens(corpus), probe_of(corpus)
    sampler, gradient = resolve(len(tokens.words), request)
    if sampler == "gibbs":
        run = gibbs_run(corpus, tokens, request)
    else:
        run = stochastic_run(corpus, tokens, request, sampler, gradient)

    def outcome(chains, done):
        return outcome_of(chains, done, request, probe, run.chosen)

    def watch(chains, done):
        return progress(lambda: (outcome(chains, done),), done / run.plan.n_draws)

    options = {"n_jobs": request.n_jobs, "watch": watch}
    chains, done = run_chains(run.chains, run.arguments, run.plan, **options)
    return outcome(chains, done), run


def resolve(n_tokens, request):
    """Return the requested sampler and gradient, or those that suit a corpus of `n_tokens`."""
    few, open_ = n_tokens <= GIBBS_TOKENS, request.asks_for_gradients
    sampler = request.sampler or ("gibbs" if few and not open_ else "cir")
    if sampler == "gibbs":
        if open_:
            raise ValueError(
                f"{request.asks_for_gradients} cannot be used with sampler='gibbs', which "
                "resamples every token in every sweep. Set one of them to 'auto'."
            )
        return sampler, "none"
    return sampler, request.gradient or ("saga" if few else "minibatch")


def settings_used(sampler, gradient, batch_size, step_size, thin):
    """Return a dict of the settings that are used, with what every "auto" became."""
    names = "sampler", "gradient", "batch_size", "step_size", "thin"
    return dict(zip(names, (sampler, gradient, batch_size, step_size, thin), strict=True))


def gibbs_plan(n_tokens, n_draws):
    """Return the default plan of Gibbs sweeps over `n_tokens` tokens.

    With few tokens sweeps cost little and chains move slowly, so draws are more sweeps apart.
    """
    most = min(MOST_THIN, MOST_SWEEPS // n_draws)
    thin = max(GIBBS_PLAN.thin, min(DRAW_VISITS // max(n_tokens, 1), most))
    warmup = max(GIBBS_PLAN.n_warmup, GIBBS_PLAN.n_draws * thin)
    return DrawPlan(warmup, thin, n_draws)


def gibbs_run(corpus, tokens, request):
    """Return the `Run` of chains of Gibbs sweeps over the whole corpus."""
    plan = plan_of(request, gibbs_plan(len(tokens.words), request.n_draws))
    n_visits = len(tokens.words) * plan.n_steps
    _tell_price(n_visits, n_visits * _seconds_of_visit(tokens, request), request)
    chains = new_gibbs_chains(tokens, request.prior, corpus.n_words, request.n_chains, request.seed)
    chosen = settings_used("gibbs", "none", corpus.n_documents, np.nan, plan.thin)
    return Run(chains, (tokens, request.prior, plan), plan, chosen)


def stochastic_run(corpus, tokens, request, sampler, gradient):
    """Return the `Run` of chains of steps with batches of documents.

    The chains start from Gibbs sweeps over some of the documents.
    """
    prior, D = request.prior, corpus.n_documents
    usual = SAGA_BATCH if gradient == "saga" else BATCH
    n = min(usual if request.batch_size is None else request.batch_size, D)
    plan = plan_of(request, _steps_plan(-(-D // n), gradient, request.n_draws))
    _warn_of_mirrors(sampler, prior.beta)
    part = streams.of_start_documents(request.seed).permutation(D)[:START_DOCUMENTS]
    _tell_steps(VISITS * plan.n_steps * n / D, len(part) / D, tokens, request)
    starts = gibbs_start(corpus.take(part), request)
    chains = [_started(start, part, corpus, tokens, request, sampler, gradient) for start in starts]
    heaviest = max(chain.state.mean.max() for chain in chains)
    schedule = request.schedule or _schedule(sampler, gradient, n / D, heaviest)
    pieces = TopicPieces(sampler, gradient, n, schedule)
    if gradient == "control_variate":
        work = partial(find_centre, tokens=tokens, prior=prior, pieces=pieces)
        chains = in_workers(work, chains, request.n_jobs)
    step_size = float(schedule(np.array([plan.n_warmup]))[0])
    chosen = settings_used(sampler, gradient, n, step_size, plan.thin)
    return Run(chains, (tokens, prior, pieces, plan), plan, chosen)


def _seconds_of_visit(tokens, request, in_steps=False):
    """Return the predicted seconds of a visit to a token: of a Gibbs sweep, or of a step.

    Steps are given the topics, and take no logarithms for tokens with weights.
    """
    slow = len(tokens.weights) > 0 and not in_steps
    visit = WEIGHTED_VISIT_SECONDS if slow else VISIT_SECONDS
    topic = WEIGHTED_TOPIC_SECONDS if slow else TOPIC_SECONDS
    return visit + topic * len(request.prior.alpha)


def _tell_steps(passes, share, tokens, request):
    """Tell the price of chains of steps, in passes over the tokens, and of their start.

    The start is Gibbs sweeps over a share of the documents.
    """
    n_steps, n_start = (len(tokens.words) * n for n in (passes, GIBBS_PLAN.n_warmup * share))
    seconds = n_steps * _seconds_of_visit(tokens, request, in_steps=True)
    seconds += n_start * _seconds_of_visit(tokens, request)
    _tell_price(n_steps + n_start, seconds, request)


def _tell_price(n_visits, seconds, request):
    """Warn with `LongRunWarning` if chains of `n_visits` visits to tokens each take long.

    A chain is predicted to take `seconds`.
    """
    what = f"A run of {request.n_chains} chains with {n_visits:.2g} draws of a topic each"
    remedy = "Use n_jobs=-1, fewer chains or draws, or fewer documents."
    warn_if_long(seconds * request.n_chains, what, remedy, LONG_SECONDS)


def gibbs_start(corpus, request):
    """Return chains of Gibbs sweeps over some documents, after the default warm-up."""
    tokens, plan = as_tokens(corpus), GIBBS_PLAN._replace(n_draws=0)
    chains = new_gibbs_chains(tokens, request.prior, corpus.n_words, request.n_chains, request.seed)
    return run_chains(chains, (tokens, request.prior, plan), plan, n_jobs=request.n_jobs)[0]


def _started(start, part, corpus, tokens, request, sampler, gradient):
    """Return a stochastic chain that continues from the Gibbs chain `start`.

    That chain has the counts of a part of the documents.
    """
    number = request.n_chains + start.number  # its streams differ from those of its start
    rngs = streams.of_chain(request.seed, number)
    counts, beta, z = word_topics(start.state), request.prior.beta, np.zeros(0, np.int16)
    if gradient != "saga":
        scaled = counts * (corpus.counts.sum() / max(counts.sum(), 1.0))
        state = new_state(scaled, beta, sampler)
    else:
        z, first = np.full(len(tokens.words), -1, np.int16), 0
        state = new_state(counts, beta, sampler, counts)
        for d in part:
            length = tokens.starts[d + 1] - tokens.starts[d]
            z[tokens.starts[d] : tokens.starts[d + 1]] = start.state.z[first : first + length]
            first += length
    return StochasticChain(start.number, state, *rngs, z)


def _steps_plan(epoch, gradient, n_draws):
    """Return the automatic plan in steps; a pass over the documents takes `epoch` steps."""
    # With "saga", the topics of tokens change slowly: given φ, a rare word hardly ever leaves its
    # own topic.
    passes = 5 if gradient == "saga" else 2
    return DrawPlan(max(epoch, min(10 * epoch, 5000)), max(1, min(passes * epoch, 500)), n_draws)


def _schedule(sampler, gradient, share, heaviest):
    """Return automatic step sizes, which are constant.

    `share` is the share of the documents in a batch, and `heaviest` the largest mass of a word in a
    topic.
    """
    if sampler == "sgld":
        return Constant(min(share, 1.0 / heaviest))
    return Constant((SAGA_RATE if gradient == "saga" else BATCH_RATE) * share)


def _warn_of_mirrors(sampler, beta):
    if sampler == "sgrld" and beta <= 0.1:
        warnings.warn(
            f"sampler='sgrld' is badly biased for a topic_word_prior as small as {beta:g}: "
            "reflection at zero gives words that a topic does not have too much mass, at any step "
            "size. Use sampler='cir', which has the exact step of the same process.",
            UserWarning,
            stacklevel=2,
        )
