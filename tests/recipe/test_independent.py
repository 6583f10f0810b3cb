"""When independent draws give way to chains."""

from dataclasses import replace

import pytest
from problems import binary

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.recipe import independent


@pytest.mark.parametrize(
    ("share", "seconds", "sampler", "kept"),
    [
        (0.3, 1.0, "auto", "importance"),
        (0.2, 1.0, "auto", "hmc"),
        (0.2, 1.0, "importance", "importance"),
        (0.2, 0.0, "auto", "importance"),  # chains are dear
    ],
)
def test_few_effective_draws_give_way_to_cheap_chains(monkeypatch, share, seconds, sampler, kept):
    weighed = independent.weighed_draws

    def poor(modes, proposals, n_draws, *args):
        return replace(weighed(modes, proposals, n_draws, *args), ess=share * n_draws)

    monkeypatch.setattr(independent, "weighed_draws", poor)
    monkeypatch.setattr(independent, "EXACT_SECONDS", seconds)
    model = BayesianLogisticRegression(n_draws=200, sampler=sampler, random_state=0)
    assert model.fit(*binary(300)).sampler_ == kept
