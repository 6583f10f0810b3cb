"""The checked parameters of `BayesianLDA`, and what "auto" became."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base.validation import Parameters
from ..kernels.layout import frozen
from ..schedules import Constant, Schedule
from .collapsed_gibbs import DirichletPrior
from .stochastic_chains import GRADIENTS, SAMPLERS

__all__ = ["TopicRequest", "chosen_attributes", "topic_request"]

MOST_TOPICS = np.iinfo(np.int16).max  # the topics of tokens are stored as int16


@dataclass
class TopicRequest:
    """The requested settings; None means "auto"."""

    prior: DirichletPrior
    sampler: str | None
    n_draws: int
    n_chains: int
    n_warmup: int | None
    thin: int | None
    seed: int
    n_jobs: int | None
    gradient: str | None = None
    batch_size: int | None = None
    schedule: Any = None
    words: Any = ()  # the vocabulary

    @property
    def asks_for_gradients(self):
        """The first given parameter that only stochastic gradients have, as text; "" if none is."""
        names, schedule = ("gradient", "batch_size", "step_size"), self.schedule
        given = dict(zip(names, (self.gradient, self.batch_size, schedule), strict=True))
        return next((f"{name}={value!r}" for name, value in given.items() if value is not None), "")


def topic_request(estimator, n_documents):
    """Return the checked parameters of an estimator, or raise `InvalidParameterError`."""
    p = Parameters(estimator)
    n_components = p.integer("n_components", 1)
    if n_components > MOST_TOPICS:
        p.fail("n_components", f"an int in the range [1, {MOST_TOPICS}]")
    sampler = p.choice("sampler", ["auto", "gibbs", *SAMPLERS])
    gradient = p.choice("gradient", ["auto", *GRADIENTS])
    return TopicRequest(
        prior=_prior(p, n_components),
        sampler=None if sampler == "auto" else sampler,
        n_draws=p.integer("n_draws", 1),
        n_chains=p.integer("n_chains", 1),
        n_warmup=p.integer("n_warmup", 0, auto=True),
        thin=p.integer("thin", 1, auto=True),
        seed=p.seed(),
        n_jobs=p.n_jobs(),
        gradient=None if gradient == "auto" else gradient,
        batch_size=p.batch_size(n_documents),
        schedule=p.step_size(Schedule, Constant),
    )


def _prior(p, n_components):
    alpha = p.positive("doc_topic_prior", (n_components,))
    beta = p.positive("topic_word_prior", ())
    return DirichletPrior(frozen(np.broadcast_to(alpha, (n_components,))), float(beta))


def chosen_attributes(request, chosen, plan, n_documents):
    """Return fitted attributes that tell what every "auto" became, and the full priors."""
    return {
        "doc_topic_prior_": np.array(request.prior.alpha),
        "topic_word_prior_": request.prior.beta,
        "sampler_": chosen["sampler"],
        "gradient_": chosen["gradient"],
        "batch_size_": int(chosen["batch_size"]),
        "step_size_": float(chosen["step_size"]),
        "n_warmup_": plan.n_warmup,
        "thin_": plan.thin,
        "n_documents_": n_documents,
    }
