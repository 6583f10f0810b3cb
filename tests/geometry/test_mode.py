"""Newton's method for the mode, where its steps end early."""

import numpy as np
import pytest
from scenes import make_scene

from skbayes_sg.engine.target import Target
from skbayes_sg.geometry import mode
from skbayes_sg.models import Robust
from skbayes_sg.priors import Flat, Gamma, HalfStudentT, Normal, Units


@pytest.fixture
def target():
    """Robust regression, whose noise has a floor: so the steps may begin again."""
    rng = np.random.default_rng(0)
    X, units = rng.normal(size=(80, 2)), Units(1.0, lambda: np.ones(2), 1e-9)
    tables = [Normal()._table((2,)), HalfStudentT()._table((1,), units=units), Gamma()._table((1,))]
    y = X @ [1.0, -0.5] + rng.standard_t(4.0, 80)
    options = {"intercept": False}
    return Target(X, y, np.ones(80), Robust(), np.concatenate(tables), **options)


def test_a_quadratic_that_overflows_is_made_anew_at_the_lowest_place(target, monkeypatch):
    """SciPy's trust region solves one with damping that overflows for some Hessians."""
    own, calls = mode.optimize.minimize, []

    def minimize(value, start, **options):
        calls.append(start)
        if len(calls) > 1:
            return own(value, start, **options)
        value(start)
        value(start - 0.01 * value(start)[1])
        value(start + 10.0)
        raise ValueError("array must not contain infs or NaNs")

    expected = mode.newton(target, np.zeros(4), 1e-3)
    monkeypatch.setattr(mode.optimize, "minimize", minimize)
    np.testing.assert_allclose(mode.newton(target, np.zeros(4), 1e-3), expected, atol=1e-3)
    assert len(calls) == 2


def test_the_lowest_place_is_remembered(target):
    objective = mode._Objective(target, np.ones(4), np.ones((1, 4)))
    values = [objective.value(np.full(4, x))[0] for x in (-2.0, -1.0, 3.0)]
    assert objective.lowest == min(values)
    np.testing.assert_array_equal(objective.lowest_at, np.zeros(4))


def test_a_flat_intercept_alone_needs_no_hessian():
    """Thousands of columns have normal priors by default, and the intercept a flat one."""
    robust = make_scene("robust", n_rows=30).target
    table = robust.prior.copy()
    table[2] = Flat()._table(())
    mode.check_independent(robust.with_prior(table), dense=False)
    table[1] = table[2]
    with pytest.raises(ValueError, match="up to 2000 parameters"):
        mode.check_independent(robust.with_prior(table), dense=False)
    logistic = make_scene("logistic", n_rows=30).target  # which classes may separate
    table = logistic.prior.copy()
    table[2] = Flat()._table(())
    with pytest.raises(ValueError, match="up to 2000 parameters"):
        mode.check_independent(logistic.with_prior(table), dense=False)
