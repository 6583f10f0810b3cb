"""The interpolation of `Taylor` with the plain gradient, by enumeration of all batches."""

import cases
import numpy as np
import probe
import pytest
from batch_laws import N, law, moments
from scenes import close, make_scene, position, pulled_back

from skbayes_sg.gradients import Minibatch, Taylor

EXACT = 1e-12
SHARES = [0.0, 0.3, 0.9, 1.0]


def contributions(posterior, frame, theta, share):
    """∇ℓ_i(θ) - share e_i(θ), with the expansion e_i at the centre."""
    plain = cases.GRADIENTS["minibatch"].row_vectors(posterior, theta, frame)
    remainders = cases.GRADIENTS["taylor"].row_vectors(posterior, theta, frame)
    return plain - share * (plain - remainders)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("scheme", ["uniform", "preferential"])
@pytest.mark.parametrize("model", ["logistic", pytest.param("softmax", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["hessian", "none"])
def test_mean_and_covariance_over_all_batches(model, scheme, share, kind):
    rule, scene = cases.SUBSAMPLING[scheme], make_scene(model, "student_t")
    frame, posterior, theta = scene.frame(kind=kind), scene.posterior, scene.point()
    z, expected = position(frame, theta), posterior.gradient(theta)
    a = pulled_back(frame, contributions(posterior, frame, theta, share))
    for n in (1, 2):
        chances = rule.chances(N)
        kernels = probe.Probe(frame, Taylor(share), rule.scheme, batch_size=n, chances=chances)
        batches = law(scheme, n)
        estimates = np.array([kernels.estimate(z, *batch) for batch in batches])
        mean, covariance = moments(estimates, np.array(list(batches.values())))
        size = np.abs(frame.F).max() * posterior.scale(theta)
        close(mean, pulled_back(frame, expected), EXACT, max(size, 1.0))
        close(covariance, rule.covariance(a, n, chances), EXACT, np.abs(a).sum() ** 2)


def test_a_batch_of_many_blocks():
    scene, rng = make_scene("logistic", n_rows=700), np.random.default_rng(5)
    frame, theta, posterior = scene.frame(kind="hessian"), scene.point(), scene.posterior
    rows, coefficients = rng.integers(0, 700, 600), rng.uniform(0.0, 3.0, 600)
    a = pulled_back(frame, contributions(posterior, frame, theta, 0.4))
    full = pulled_back(frame, posterior.gradient(theta))
    expected = full - a.sum(axis=0) + coefficients @ a[rows]
    found = probe.Probe(frame, Taylor(0.4), batch_size=600).estimate(
        position(frame, theta), rows, coefficients
    )
    close(found, expected, EXACT, 3.0 * np.abs(a).sum() + posterior.scale(theta))


def test_ends_are_the_two_estimators():
    scene = make_scene("logistic", "laplace")
    frame, batch = scene.frame(kind="hessian"), ([0, 3, 3], [2.0, 2.0, 2.0])
    z = position(frame, scene.point())
    for share, other in ((0.0, Minibatch()), (1.0, Taylor())):
        found, expected = (
            probe.Probe(frame, piece, batch_size=3).estimate(z, *batch)
            for piece in (Taylor(share), other)
        )
        close(found, expected, EXACT, np.abs(expected).max())


def test_what_auto_is_told():
    assert Taylor().uses_centre
    assert not Taylor(0.9).uses_centre
    parts = Taylor(0.75).measured(100, 10)
    assert [(type(piece), factor) for piece, factor in parts] == [(Taylor, 0.75), (Minibatch, 0.25)]
    assert parts[0][0].share == 1.0


def test_measured_noise_is_a_bound():
    # Of the trace of the covariance, at a point far from the centre.
    scene = make_scene("logistic", n_rows=40)
    frame, posterior, theta = scene.frame(kind="hessian"), scene.posterior, 3.0 * scene.point()

    def trace(a):
        return np.trace(cases.SUBSAMPLING["uniform"].covariance(a, 1, None))

    ends = [trace(pulled_back(frame, contributions(posterior, frame, theta, s))) for s in (0, 1)]
    for share in (0.2, 0.5, 0.8):
        found = trace(pulled_back(frame, contributions(posterior, frame, theta, share)))
        assert found <= share * ends[1] + (1.0 - share) * ends[0]
