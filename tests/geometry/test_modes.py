"""The search for modes: what it finds, what it leaves alone, and how it weighs."""

import warnings

import numpy as np
import pytest
from scipy import integrate

from skbayes_sg.engine.target import Target
from skbayes_sg.geometry import modes as search
from skbayes_sg.geometry.frame import build_frame
from skbayes_sg.geometry.mode import find_centre
from skbayes_sg.geometry.modes import CUT, Modes, find_modes, may_have_modes
from skbayes_sg.geometry.robust_modes import _least_squares, robust_starts, turned
from skbayes_sg.models import Linear, LinearKnownNoise, Logistic, Poisson, Robust
from skbayes_sg.priors import Flat, Gamma, HalfStudentT, Laplace, Normal, StudentT, Units
from skbayes_sg.priors.columns import LOC
from skbayes_sg.recipe.choose import frame_of

CAUCHY = StudentT(df=1, scale=0.01)


def framed(model, X, y, prior, extras=(), intercept=False, weight=None):
    """A frame around the first centre."""
    tables = [prior._table((X.shape[1],))]
    tables += [Flat()._table((1,))] * intercept + [extra._table((1,)) for extra in extras]
    weight = np.ones(len(y)) if weight is None else weight
    target = Target(X, y, weight, model, np.concatenate(tables), intercept=intercept)
    return frame_of(target, "hessian", True, np.random.default_rng(0))


def correlated(n=300, copies=2, noise=0.1, seed=0):
    """Columns that are nearly the same, and labels that follow what they share."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    X = z[:, None] + noise * rng.normal(size=(n, copies))
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * z))).astype(float)


def outliers(distance=50.0, share=0.4, n=30, unit=1.0, seed=1):
    """A line with little noise, and a cluster of outliers."""
    rng = np.random.default_rng(seed)
    x, k = rng.normal(size=n), int(share * n)
    y = 2.0 * x + 1.0 + 0.02 * rng.normal(size=n)
    y[:k] = distance + 0.5 * rng.normal(size=k)
    return x[:, None], unit * y


def robust(X, y, prior=None):
    sd = float(np.std(y))
    extras = HalfStudentT(scale=sd), Gamma()
    return framed(Robust(), X, y, prior or Normal(scale=2.5 * sd), extras, intercept=True)


# -- where there may be several -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "prior", "expected"),
    [
        (Logistic(), Normal(), False),
        (Logistic(), Laplace(), False),
        (Poisson(), Normal(), False),
        (LinearKnownNoise(), StudentT(scale=2.5), False),  # the rows outweigh it by far
        (LinearKnownNoise(), CAUCHY, True),
        (Logistic(), CAUCHY, True),
        (Linear(), Laplace(), True),
        (Robust(), Normal(), True),
    ],
)
def test_rule(model, prior, expected):
    X, y = correlated(noise=1.0)
    extras = [HalfStudentT(scale=1.0), Gamma()][: model.n_extra]
    assert may_have_modes(framed(model, X, y, prior, extras)) == expected


def test_convex_posteriors_are_not_searched(monkeypatch):
    monkeypatch.setattr(search, "_Search", None)
    found = find_modes(framed(Logistic(), *correlated(), Normal()))
    assert len(found) == 1
    assert not found.searched


@pytest.mark.slow_except("2")
@pytest.mark.parametrize("seed", range(3))
def test_unimodal_tables_have_one_mode(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] + rng.standard_t(3, size=200)
    found = [robust(X, y), framed(Linear(), X, y, StudentT(scale=2.0), [HalfStudentT(scale=2.0)])]
    for frame in found:
        modes = find_modes(frame)
        assert modes.searched
        assert modes.complete
        assert modes.frames == (frame,)


# -- what is found --------------------------------------------------------------------------------


@pytest.mark.slow_except("1.0")
@pytest.mark.parametrize("unit", [1.0, 1e6, 1e-6])
@pytest.mark.parametrize("distance", [20.0, 50.0, 1000.0])
def test_the_line_under_clustered_outliers(distance, unit):
    modes = find_modes(robust(*outliers(distance, unit=unit)))
    theta = modes.frame.centre.theta
    assert np.allclose(theta[:2] / unit, [2.0, 1.0], atol=0.1)


@pytest.mark.parametrize("share", [pytest.param(0.2, marks=pytest.mark.slow), 0.6])
def test_the_larger_part_wins(share):
    modes = find_modes(robust(*outliers(share=share, n=60)))
    intercept = modes.frame.centre.theta[1]
    assert abs(intercept - (1.0 if share < 0.5 else 50.0)) < 1.0


@pytest.mark.slow_for("2", "3")
@pytest.mark.parametrize("flag", [0, 1])  # the rare value
@pytest.mark.parametrize("seed", range(4))
def test_the_other_answer_of_a_rare_flag_is_found(monkeypatch, flag, seed):
    """Fits of three quarters of the rows leave its coefficient open: any of them may win."""
    rng = np.random.default_rng(seed)
    x = np.full(300, 1.0 - flag)
    x[:45] = flag
    y = 3.0 * rng.standard_normal(300)
    y[:18] += 300.0
    y[18:45] -= 200.0
    frame, sign = robust(x[:, None], y), 2 * flag - 1
    worse = np.array([300.0 * sign, 0.0 if flag else 300.0, *np.log([2.0, 2.0])])
    monkeypatch.setattr(search, "robust_starts", lambda target: [])
    monkeypatch.setattr(search, "starting_point", lambda prior: worse)
    descents = search._Search(frame.target, worse)
    descents.run()
    slopes = [mode.theta[0] for mode in descents.found]
    assert slopes[0] == pytest.approx(300.0 * sign, abs=9.0)
    assert min(abs(slope + 200.0 * sign) for slope in slopes) < 9.0
    assert search.logsumexp([mode.log_evidence for mode in descents.found]) == pytest.approx(
        max(mode.log_evidence for mode in descents.found[1:]), abs=0.1
    )


@pytest.mark.slow
def test_many_rare_flags_are_no_sign_of_more_modes():
    """There is no time to turn the line about each of them, and mostly no other answer."""
    rng = np.random.default_rng(3)
    X = (rng.random((3000, 60)) < 0.02).astype(float)
    modes = find_modes(robust(X, X @ rng.normal(size=60) * 5.0 + rng.standard_t(2, 3000)))
    assert len(modes) == 1
    assert modes.complete


def test_lines_are_turned_about_the_median():
    """One column of three is turned; predictors of rows with the median stay."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(200) < 0.8, rng.normal(size=(200, 2))]).astype(float)
    y = rng.normal(size=200) + np.where(X[:, 0] == 0.0, 40.0 * (np.arange(200) % 2), 0.0)
    frame = robust(X, y)
    theta = frame.centre.theta
    places = turned(frame.target, theta)
    assert 0 < len(places) <= 8
    for place in places:
        change = place - theta
        j = np.flatnonzero(change[:3])
        assert len(j) == 1
        assert change[3] == pytest.approx(-change[j[0]] * np.median(X[:, j[0]]))
        np.testing.assert_array_equal(change[4:], 0.0)
    assert any(abs(abs(place[0] - theta[0]) - 40.0) < 3.0 for place in places)


@pytest.mark.parametrize("copies", [2, 3])
def test_a_mode_for_each_of_the_columns_that_are_the_same(copies):
    X, y = correlated(copies=copies, noise=0.02)
    modes = find_modes(framed(Logistic(), X, y, CAUCHY))
    large = np.array([np.abs(frame.centre.theta) > 1.0 for frame in modes.frames])
    assert len(modes) == copies
    assert (large.sum(axis=0) == 1).all()
    assert (large.sum(axis=1) == 1).all()


def test_equal_columns_have_modes_of_equal_weight():
    """The centre is a saddle point between them, and is no mode."""
    X, y = correlated(noise=0.0)
    modes = find_modes(framed(Logistic(), X, y, CAUCHY))
    assert len(modes) == 2
    assert np.allclose(modes.shares, 0.5, atol=1e-4)
    assert np.allclose(modes.frames[0].centre.theta, modes.frames[1].centre.theta[::-1], atol=1e-3)


def test_two_pairs_have_four_modes():
    first, _ = correlated(noise=0.02, seed=0)
    second, _ = correlated(noise=0.02, seed=1)
    X = np.column_stack([first, second])
    eta = 2.0 * first[:, 0] - 2.0 * second[:, 0]
    y = (np.random.default_rng(2).random(300) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    modes = find_modes(framed(Logistic(), X, y, CAUCHY))
    large = {tuple(np.flatnonzero(np.abs(f.centre.theta) > 0.5)) for f in modes.frames}
    assert large == {(0, 2), (0, 3), (1, 2), (1, 3)}


@pytest.mark.parametrize("unit", [1.0, 1e6])
@pytest.mark.parametrize("prior", [StudentT(df=4, scale=1e-3), Laplace(scale=0.25)])
def test_much_and_little_noise(prior, unit):
    rng = np.random.default_rng(0)
    x = rng.normal(size=10)
    y = unit * (10.0 * x + 0.1 * rng.normal(size=10))
    own = type(prior)(**prior.get_params() | {"scale": unit * prior.scale})
    frame = framed(Linear(), x[:, None], y, own, [HalfStudentT(scale=float(np.std(y)))])
    modes = find_modes(frame)
    values = np.sort([f.centre.theta[0] / unit for f in modes.frames])
    assert np.allclose(values, [0.0, 10.0], atol=0.2)


def test_many_rows_are_searched_on_some():
    X, y = correlated(n=6000, noise=0.01)
    modes = find_modes(framed(Logistic(), X, y, StudentT(df=1, scale=0.001)))
    assert modes.frame.target.n_rows == 6000
    assert len(modes) == 2
    for frame in modes.frames:  # minima of all rows
        assert frame.centre.distance < 0.01


@pytest.mark.parametrize(("ties", "told"), [(0, False), (12, False), (30, True)])
def test_modes_of_rounding_error_are_left_out_and_told(ties, told):
    """With many equal responses one has no noise, down to the floor of its prior."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    y = X[:, 0] + rng.normal(size=60)
    y[:ties] = 3.0
    noise = HalfStudentT(scale=1.0)._table((1,), units=Units(floor=1e-9))
    tables = Normal(scale=5.0)._table((1,)), Flat()._table((1,)), noise, Gamma()._table((1,))
    target = Target(X, y, np.ones(60), Robust(), np.concatenate(tables))
    modes = find_modes(frame_of(target, "hessian", True, np.random.default_rng(0)))
    assert modes.degenerate == told
    assert all(np.exp(frame.centre.theta[-2]) > 0.1 for frame in modes.frames)


def robust_frame(X, y, floor=1e-9):
    """A frame of robust regression with a floor of the noise."""
    noise = HalfStudentT(scale=1.0)._table((1,), units=Units(floor=floor))
    coefficients = Normal(scale=5.0)._table((X.shape[1],)), Flat()._table((1,))
    prior = np.concatenate([*coefficients, noise, Gamma()._table((1,))])
    target = Target(X, y, np.ones(len(y)), Robust(), prior)
    return frame_of(target, "hessian", True, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("n", "share", "told"), [(300, 0.04, False), (300, 0.22, True), (2500, 0.25, True)]
)
def test_a_fifth_of_equal_responses_may_have_a_mode_without_noise(n, share, told):
    """Fits of a third of the rows do not find it. Noise far below that of the others is cut off."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 2))
    y = X[:, 0] + rng.normal(size=n)
    y[: int(share * n)] = 0.0
    modes = find_modes(robust_frame(X, y))
    assert modes.degenerate == told
    assert len(modes) == 1
    sd = np.exp(modes.frame.centre.theta[-2])
    assert 0.7 < sd < 1.2
    cut = modes.frame.target.prior[-2, LOC]
    assert cut == pytest.approx(CUT * sd, rel=0.05) if told else cut == 1e-9


def test_a_search_that_begins_without_noise_leaves_ties_but_not_a_line():
    """Rows without noise on a line are the answer, whatever the other rows are."""
    rng = np.random.default_rng(2)
    X, found = rng.normal(size=(100, 1)), {}
    for name, exact in (("ties", np.zeros(100)), ("line", 2.0 * X[:, 0])):
        y = np.where(np.arange(100) < 25, exact, 3.0 * rng.normal(size=100))
        frame = robust_frame(X, y)
        start = np.append(np.zeros(2), [np.log(1e-9), np.log(0.05)])
        start[0] = 2.0 * (name == "line")
        centre = find_centre(frame.target, dense=True, rng=rng, start=start)
        found[name] = find_modes(build_frame(frame.target, centre, "hessian"))
    assert found["ties"].degenerate
    assert np.exp(found["ties"].frame.centre.theta[-2]) > 0.5
    assert not found["line"].degenerate
    assert np.exp(found["line"].frame.centre.theta[-2]) < 1e-8
    assert found["line"].frame.centre.theta[0] == pytest.approx(2.0, abs=1e-6)


def levels(n_levels=60, n=240, seed=3):
    """One-hot columns of rare levels, of which half have an effect, and labels."""
    rng = np.random.default_rng(seed)
    level = np.r_[np.arange(n_levels), rng.integers(0, n_levels, n - n_levels)]
    u = rng.normal(size=n_levels) * (rng.random(n_levels) < 0.5)
    return np.eye(n_levels)[level], (rng.random(n) < 1 / (1 + np.exp(0.5 - u[level]))).astype(float)


def test_a_search_that_ends_early_is_incomplete_only_if_there_may_be_others(monkeypatch):
    """Given the others a coefficient of a rare level has one mode, and none is left out."""
    one_hot = framed(Logistic(), *levels(), StudentT(df=4, scale=0.5), intercept=True)
    alike = framed(Logistic(), *correlated(copies=3, noise=0.02), CAUCHY)
    assert find_modes(one_hot).complete
    assert find_modes(alike).complete
    monkeypatch.setattr(search, "FEWEST", 1)
    monkeypatch.setattr(search, "MOST", 1)
    monkeypatch.setattr(search._Search, "_starts", lambda self: ())
    untried, known = [], search._Search._lead_elsewhere

    def looked_at(self, ways):
        ways = [(mode, list(starts)) for mode, starts in ways]
        untried.append(sum(len(starts) for _, starts in ways))
        return known(self, ways)

    monkeypatch.setattr(search._Search, "_lead_elsewhere", looked_at)
    assert find_modes(one_hot).complete
    assert not find_modes(alike).complete
    assert min(untried) > 0


# -- weights, and where chains begin --------------------------------------------------------------


def test_laplace_evidence_of_a_gaussian_is_exact():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 1)), rng.normal(size=20)
    frames = [framed(LinearKnownNoise(), X, y, Normal(scale=s)) for s in (0.5, 3.0)]
    found = [search._log_evidence(frame) for frame in frames]

    def density(b, scale):
        return np.exp(-0.5 * np.sum((y - X[:, 0] * b) ** 2) - 0.5 * (b / scale) ** 2)

    Z = [integrate.quad(density, -5.0, 5.0, args=(s,))[0] for s in (0.5, 3.0)]
    assert np.isclose(found[1] - found[0], np.log(Z[1] / Z[0]), atol=1e-6)


def two_modes():
    modes = find_modes(framed(Logistic(), *correlated(noise=0.0), CAUCHY))
    assert len(modes) == 2
    return modes


def test_nearest_mode():
    modes = two_modes()
    theta = np.array([[frame.centre.theta, 0.9 * frame.centre.theta] for frame in modes.frames])
    assert modes.nearest(theta).tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [([0.0, 0.0], [0, 0, 1, 1]), ([0.7, -0.7], [0, 0, 0, 1]), ([9.0, 0.0], [0, 0, 0, 0])],
)
def test_chains_begin_in_proportion_to_the_evidence(evidence, expected):
    modes = Modes(two_modes().frames, np.array(evidence))
    assert modes.of_chains(4).tolist() == expected
    phi = np.random.default_rng(0).normal(size=(4, 2))
    theta = modes.frame.theta(modes.begun(phi)) - modes.frame.theta(phi)
    centres = [frame.centre.theta - modes.frame.centre.theta for frame in modes.frames]
    assert np.allclose(theta, [centres[m] for m in expected], atol=1e-9)


@pytest.mark.slow
def test_descents_end_when_all_have_taken_far_more_steps_than_predicted(monkeypatch):
    """Each descent begun after that takes one step, and finds no minimum by it."""
    frame, steps = robust(*outliers()), []
    taken = search.newton

    def counted(target, theta, *args, known=None, **options):
        def counting(*place):
            steps.append(1)
            return known(*place)

        return taken(target, theta, *args, known=known and counting, **options)

    monkeypatch.setattr(search, "newton", counted)
    find_modes(frame)
    many = len(steps)
    steps.clear()
    monkeypatch.setattr(search, "LONGER", 0.0)
    monkeypatch.setattr(search, "STEPS", 1)  # and FEWEST are allowed
    find_modes(frame)
    assert search.FEWEST < len(steps) <= search.FEWEST + search.MOST < many


def test_parts_of_the_rows_may_lack_levels():
    """Starting points are finite where a part has no row of a level: its coefficient is zero."""
    rng = np.random.default_rng(3)
    A = np.column_stack([np.eye(30)[np.arange(60) % 30], np.ones(60)])
    y = rng.standard_t(2, size=60)
    target = robust(A[:, :-1], y).target
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        starts = np.array(list(robust_starts(target)))
    assert len(starts) > 1
    assert np.abs(starts).max() < 100.0
    part = A[:10]
    beta = _least_squares(part, y[:10], np.ones(10))
    assert not beta[10:30].any()
