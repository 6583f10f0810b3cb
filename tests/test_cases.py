"""`cases.py` lists every piece that the package has."""

import cases
import pytest

import skbayes_sg.models
import skbayes_sg.priors
import skbayes_sg.schedules
from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.dynamics import DYNAMICS, Metropolis
from skbayes_sg.gradients import GRADIENTS
from skbayes_sg.priors.families import LEARNED, POSITIVE_PRIORS, PRIORS
from skbayes_sg.subsampling import SUBSAMPLING


def public_subclasses(module, base):
    made = (getattr(module, name) for name in module.__all__)
    return {kind for kind in made if issubclass(kind, base) and kind is not base}


@pytest.mark.parametrize(
    ("listed", "registry"),
    [
        ({n: c.gradient for n, c in cases.GRADIENTS.items()}, GRADIENTS),
        ({n: c.scheme for n, c in cases.SUBSAMPLING.items() if not c.variant}, SUBSAMPLING),
        ({n: c.dynamics for n, c in cases.DYNAMICS.items()}, DYNAMICS),
        ({n: c.prior for n, c in cases.PRIORS.items()}, PRIORS),
    ],
    ids=["gradients", "subsampling", "dynamics", "priors"],
)
def test_every_registered_piece_is_listed(listed, registry):
    assert {name: type(piece) for name, piece in listed.items()} == registry


def test_every_model_is_listed():
    known = public_subclasses(skbayes_sg.models, skbayes_sg.models.Model)
    assert known <= {type(case.model) for case in cases.MODELS.values()}


def test_every_schedule_is_listed():
    known = public_subclasses(skbayes_sg.schedules, skbayes_sg.schedules.Schedule)
    assert known == {type(schedule) for schedule, _ in cases.SCHEDULES.values()}


def test_every_prior_class_is_listed():
    known = public_subclasses(skbayes_sg.priors, skbayes_sg.priors.Prior)
    listed = [*cases.PRIORS.values(), *cases.POSITIVE_PRIORS.values()]
    without_table = {skbayes_sg.priors.PositivePrior, *LEARNED.values()}
    assert known - without_table <= {type(case.prior) for case in listed}
    assert set(cases.POSITIVE_PRIORS) == set(POSITIVE_PRIORS)


def test_every_preconditioner_is_listed():
    # The estimator's own error message names what it takes.
    with pytest.raises(ValueError, match="preconditioner") as error:
        BayesianLogisticRegression(preconditioner="?").fit([[0.0], [1.0]], [0, 1])
    names = ["auto", *cases.PRECONDITIONERS]
    assert f"one of {', '.join(map(repr, names))}." in str(error.value)


def test_dynamics_are_of_two_kinds():
    for name, case in cases.DYNAMICS.items():
        assert isinstance(case.dynamics, Metropolis) == (name in cases.METROPOLIS)
