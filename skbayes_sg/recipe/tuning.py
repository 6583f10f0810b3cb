"""Choice of step size, rows a step and their probabilities, by measurements on pilot chains.

The rules (measured on some fifteen logistic posteriors; constants below):

* A sampler that is exact on Gaussian targets is limited by how much the curvature *changes*: with
  λ the largest curvature at draws beyond that at the centre, ``h λ <= CURVATURE``, and
  ``h λ_centre <= 1``. SGLD is not exact, and is limited by its bias:
  ``h (λ + λ_centre) / 4 <= INFLATION``.
* Gradient noise of one row with largest eigenvalue e raises the variance by ``inflation(h) e / n``:
  rows n are added until that is INFLATION.
* Both are measured on draws of pilot chains, since the Laplace approximation reaches regions of
  high curvature that the posterior does not; this is repeated until they settle.
"""

import warnings
from functools import partial

import numpy as np

from ..dynamics import BAOAB
from ..engine.run import Setup, new_chains, sample
from ..exceptions import StepSizeWarning
from ..geometry import preconditioning
from ..gradients import ControlVariate, Full, Minibatch, Taylor
from ..schedules import Constant, first_step
from ..subsampling import AllRows, Preferential, Uniform
from .final_run import LONGEST
from .measure import SKETCH, WIDE_SKETCH, Survey
from .price import price_of_steps, seconds_of_steps, slowdown_of_batches

__all__ = ["Refused", "Tuner", "coordinates_of", "has_few_rows"]

CURVATURE = 0.3  # largest h λ, with λ the curvature beyond that at the centre
INFLATION = 0.02  # share that step or noise may add to a variance
MIN_ROWS = 10  # smallest number of rows a step that "auto" chooses, if there are enough
MOST_ROWS = 0.25  # largest share of all rows in a step; beyond it the exact sampler takes over
FEW_ROWS = 1000  # with at most so many rows every gradient is the full one
# All rows are used if a step with them costs at most so many times one without any.
CHEAP = 5.0
PILOT_ROWS = 100  # largest number of rows a step in the first pilot
PILOT_STEP = 0.03**2  # smallest h times the curvature at the centre, in the first pilot
PILOT_DRAWS = 200  # draws of each chain of a pilot
# Steps in which autocorrelations fall by a factor e, beyond which no run is long enough.
HOPELESS = 1e9
SHORTER_PILOTS = (
    "It is one of up to five pilots that look for a step size. Give a step_size, or leave "
    "preconditioner, gradient and batch_size to 'auto'."
)
SHORTER_FITS = (
    "It is one of up to five pilots that look for a step size. Use fewer columns "
    "(sklearn.feature_selection, TruncatedSVD), or fewer draws of sampler='hmc'."
)
PILOT_SECONDS = 20.0  # predicted for a pilot; beyond it the exact sampler takes over
SURVEY_DRAWS = 32  # draws at which curvature and noise are measured
HEAVY_ROWS = 20_000  # rows whose probabilities are measured again at draws of a pilot
ROUNDS = 5  # largest number of pilots
FIRST_SURVEY = 3000  # rows, enough to recognise a posterior that is nearly Gaussian
FAR = 1e6  # chains so many posterior standard deviations away have diverged


def coordinates_of(target, request):
    """The kind of coordinates that are asked for, or that suit the number of parameters."""
    if request.preconditioner != "auto":
        return request.preconditioner or "none"
    return "hessian" if target.n_parameters <= preconditioning.DENSE_LIMIT else "diagonal"


def has_few_rows(target, request):
    """Whether every step uses all rows, because there are few and nothing else was asked for."""
    few = target.n_rows <= FEW_ROWS or _changes_coordinates(target, request)
    return few and not request.names_few_rows


def _changes_coordinates(target, request):
    """Whether a step with all rows costs little more than the change of coordinates, by a matrix.

    Steps on few rows then save nothing.
    """
    least, most = (seconds_of_steps(target, 1, n) for n in (0, target.n_rows))
    return coordinates_of(target, request) == "hessian" and most <= CHEAP * least


def least_rows(n_rows):
    """The fewest rows a step that "auto" chooses: ten, or a quarter of the rows if that is less."""
    return max(1, min(MIN_ROWS, int(MOST_ROWS * n_rows)))


def _spread(draws, n):
    """n of the draws of all chains, evenly spaced."""
    flat = draws.reshape(-1, draws.shape[-1])
    return flat[np.linspace(0, len(flat) - 1, n).astype(int)]


class Refused(Exception):
    """Stochastic gradients with few rows cannot reach the accuracy aimed at."""


class Tuner:
    """Chooses what the request leaves open, from measurements.

    Attributes
    ----------
    h, n : float, int
        Step size and rows a step.
    scheme, chances : Subsampling, array or None
        How rows are drawn, and their probabilities.
    growth, noise, fixed_noise : float
        λ and e of the module's docstring, as last measured, and the noise that more rows a step do
        not reduce.
    """

    def __init__(self, frame, request, rng):
        self.frame, self.request, self.rng = frame, request, rng
        self.target = frame.target
        self.dynamics = request.sampler or BAOAB()
        self.n = request.batch_size or least_rows(self.target.n_rows)
        self.gradient = request.gradient or (Taylor() if frame.dense else ControlVariate())
        self.scheme, self.chances = request.subsampling or Uniform(), None
        all_rows = self.n >= self.target.n_rows or has_few_rows(self.target, request)
        if all_rows or isinstance(self.gradient, Full) or isinstance(self.scheme, AllRows):
            self.n, self.gradient, self.scheme = self.target.n_rows, Full(), AllRows()
        self.n = min(self.n, self.gradient.most_rows(self.target.n_rows))
        for piece in (self.gradient, self.scheme):
            piece.check(self.target.n_rows, request.batch_size or self.n)
        self.h = None if request.step_size is None else first_step(request.step_size)
        self.survey = Survey(frame)
        self.growth, self.noise, self.fixed_noise, self.rounds = 0.0, 0.0, 0.0, 0
        self._weights, self._reach = None, None

    @property
    def full(self):
        """Whether every step sees every row."""
        return isinstance(self.scheme, AllRows)

    # -- measuring ----------------------------------------------------------------------------

    def tune(self):
        """Choose step, rows and probabilities; return starting points φ for the chains."""
        self._survey_growth(FIRST_SURVEY)
        if not self._is_calm():
            self._survey_growth()
        if not self.full:
            self._choose_scheme()
        if self._is_calm() and self._is_quiet():
            return self._guess(self.request.n_chains)
        return self._pilot_rounds()

    def _survey_growth(self, n=None):
        """Measure λ on n rows at draws of the Laplace approximation, and choose the step size."""
        p = self.survey.leverage_chances(3, 0.5)
        self.sampled = self.survey.sample_rows(p, self.rng, n)
        self.growth = self.survey.growth(self.sampled, self._guess())
        self._choose_step()

    def _guess(self, n=SURVEY_DRAWS // 2):
        """Draw n points φ from the Laplace approximation."""
        return self.frame.guess(self.rng.standard_normal((n, self.target.n_parameters)))

    def _is_calm(self):
        """Whether h λ is small at draws of the Laplace approximation, which exaggerate λ."""
        return self.h * self.growth <= 0.5 * CURVATURE

    def _is_quiet(self):
        """Whether the noise of the present rows a step adds at most `INFLATION` to a variance."""
        return self._inflation() <= INFLATION

    def _inflation(self):
        """Share that the noise of the gradient adds to a variance."""
        return self.dynamics.noise_inflation(self.h) * (self.noise / self.n + self.fixed_noise)

    def _not_below_pilots(self, h):
        """Return h, or before any pilot the smallest step of a first pilot if that is larger.

        Draws of the Laplace approximation reach regions that the posterior does not, where
        predicted means of counts may be 1e40.
        """
        return h if self.rounds else max(h, PILOT_STEP / self.frame.curvature_range[1])

    def _choose_step(self, at_most=np.inf):
        """Set h from the curvature, and from the noise that the rows a step cannot reduce."""
        if self.request.step_size is not None:
            return
        flat = self.frame.curvature_range[1]
        if self.dynamics.exact_on_gaussian:
            h = min(1.0 / flat, CURVATURE / max(self.growth, 1e-12))
        else:
            h = self.dynamics.step_for_bias(INFLATION, flat + self.growth)
        if self.fixed_noise > 0.0:
            h = min(h, self.dynamics.step_for_inflation(0.5 * INFLATION / self.fixed_noise))
        if self.request.batch_size is not None and self.noise > 0.0:
            h = min(h, self.dynamics.step_for_inflation(INFLATION * self.n / self.noise))
        self.h = min(self._not_below_pilots(h), at_most)

    def _choose_rows(self):
        """Set the rows a step by the noise and h; if these are too many, h may be reduced first."""
        if self.request.batch_size is not None or self.full:
            return
        room = INFLATION / self.dynamics.noise_inflation(self.h) - self.fixed_noise
        wanted = self.noise / max(room, 1e-300)
        least = least_rows(self.target.n_rows)
        most = max(least, int(MOST_ROWS * self.target.n_rows))
        if wanted > most and not self.request.is_open and self.request.step_size is None:
            # The requested method has much noise: smaller steps with fewer rows cost the same.
            allowed = self.dynamics.step_for_inflation(INFLATION * most / self.noise)
            self.h = min(self.h, self._not_below_pilots(allowed))
            wanted = most
        most = self.gradient.most_rows(self.target.n_rows)
        self.n = int(np.clip(np.ceil(wanted), min(least, most), most))

    def _choose_scheme(self):
        """Draw rows uniformly if that is good enough, otherwise in proportion to their noise."""
        N, survey = self.target.n_rows, self.survey
        uniform = np.full(N, 1.0 / N)
        quick = self.frame.whitened and survey.K == 1  # noise by quadrature, without points
        points = None if quick else self._guess()
        self._find_noise(uniform, points)
        asked = self.request.subsampling
        few = self.n <= least_rows(N) if self.request.batch_size is None else self._is_quiet()
        if (asked is None and few) or (asked is not None and not asked.needs_weights):
            return self._choose_step()
        self.scheme = asked or Preferential()
        self._weights = survey.of_all_rows(self._row_weights(points))
        self._survey_noise(points)

    def _row_weights(self, points=None, width=SKETCH):
        """A function of rows that returns the weights to which probabilities are proportional."""
        survey, main = self.survey, self.gradient.measured(self.target.n_rows, self.n)[0][0]
        named = {"gradient": survey.gradient_norms, "hessian": survey.hessian_norms}
        posterior = partial(survey.row_noise, main, points=points, width=width)
        return named.get(getattr(self.scheme, "weights", None), posterior)

    def _survey_noise(self, points):
        """Set probabilities from the rows' weights, draw rows for the survey, measure the noise."""
        self.chances = self.scheme.probabilities(self._weights)
        self.sampled = self.survey.sample_rows(self.chances, self.rng)
        self._find_noise(self.chances, points)

    def _find_noise(self, chances, points):
        """Measure the noise under these probabilities of rows, and choose the rows a step."""
        self.noise, self.fixed_noise = self._noise_at(chances, points)
        if self.fixed_noise > 0.0:
            self._choose_step()
        self._choose_rows()

    def _noise_at(self, chances, points):
        """Noise e of one row under these probabilities, and noise that more rows do not reduce."""
        measured = self.gradient.measured(self.target.n_rows, self.n)
        noise = self._reach_ratio() * sum(
            factor * self._noise_eigenvalue(gradient, chances, points)
            for gradient, factor in measured
        )
        fixed = self.gradient.fixed_noise(self.target.n_rows)
        if fixed > 0.0:
            uniform = np.full(self.target.n_rows, 1.0 / self.target.n_rows)
            fixed *= self.survey.noise_eigenvalue(Minibatch(), uniform, self.sampled, points)
        return noise, fixed

    def lasting_noise(self, points, rng):
        """Draw noise at points that many steps share, of the size of equivalent single-step noise.

        The result (n, n_parameters) is empty if steps share no noise. See
        `skbayes_sg.gradients.Gradient.shared_noise`.
        """
        N = self.target.n_rows
        shared = self.gradient.shared_noise(N, self.n, self.relaxation())
        if shared == 0.0:
            return np.zeros((0, self.target.n_parameters))
        found = self.survey.noise_draws(Minibatch(), np.full(N, 1.0 / N), self.sampled, points, rng)
        return np.sqrt(shared) * found

    def _find_reach(self, points):
        """Measure the 95 % quantile and the mean of the squared distance from the centre."""
        squares = (np.asarray(points) ** 2).sum(axis=-1).ravel()
        self._reach = float(np.quantile(squares, 0.95)), float(squares.mean())

    def _reach_ratio(self):
        """Factor by which adaptive batches raise the noise of one row as measured; else 1.

        Everywhere they have the noise that their batch size has at the 95 % quantile of squared
        distances from the centre, while the measured noise is that at the mean.
        """
        if not self.scheme.needs_reach:
            return 1.0
        if self._reach is None:
            self._find_reach(self._guess(1000))
        return self._reach[0] / self._reach[1]

    @property
    def _chances(self):
        """Probabilities of rows, as an array also where they are uniform."""
        N = self.target.n_rows
        return np.full(N, 1.0 / N) if self.chances is None else self.chances

    def _noise_eigenvalue(self, gradient, chances, points):
        """Largest eigenvalue of the noise of one row, less what the dynamics absorbs."""
        absorbed = partial(self.dynamics.absorbed, h=self.h)
        return self.survey.noise_eigenvalue(gradient, chances, self.sampled, points, absorbed)

    # -- pilots -------------------------------------------------------------------------------

    def _pilot_rounds(self):
        """Run pilots until the time step changes by less than half; return starting points φ."""
        self.n = min(self.n, self.request.batch_size or PILOT_ROWS) if not self.full else self.n
        self._refuse_hopeless_steps()
        steps, made = [self.h], []
        for self.rounds in range(1, ROUNDS + 1):
            draws = self._pilot(first=self.rounds == 1)
            if draws is None:
                self._retreat()
                steps[-1] = self.h
                continue
            self._measure(draws)
            steps.append(self.h)
            made.append(draws)
            if len(made) > 1 and 0.25 < steps[-1] / steps[-2] < 4.0:
                break
        else:
            self._warn_unsettled()
        if self.request.step_size is None and len(steps) > 1:
            self.h = float(np.sqrt(steps[-1] * steps[-2]))
            self._choose_rows()
        self._refuse_many_rows()
        if draws is None:
            return np.zeros((self.request.n_chains, self.target.n_parameters))
        return _spread(np.concatenate(made[-2:]), self.request.n_chains)

    def _refuse_hopeless_steps(self):
        """Raise `ValueError` if no chain of any length can cross the posterior by these steps.

        If "auto" has chosen everything, it is `Refused`.
        """
        relaxation = self.relaxation()
        if self.request.step_size is None and relaxation > HOPELESS:
            if self.request.is_open:
                raise Refused
            kind = None if self.frame.kind == "none" else self.frame.kind
            raise ValueError(
                f"With preconditioner={kind!r} a chain needs {relaxation:.1e} steps to "
                f"forget where it was: the posterior is narrow in one direction, which limits the "
                f"step size to {self.h:.1e}, and wide in another. Use preconditioner='auto', or "
                "standardise the columns of X (sklearn.preprocessing.StandardScaler)."
            )

    def _pilot(self, first):
        """Draws of two pilot chains from the centre, or None if they have diverged."""
        setup, origin = self.setup(), np.zeros((2, self.target.n_parameters))
        number = self.request.n_chains + 2 * self.rounds
        chains = new_chains(setup, origin, self.request.seed, first=number)
        relaxation = self.relaxation()
        drop = min(int((15 if first else 5) * relaxation) + 1, 30 * LONGEST)
        drop += self.gradient.settling_steps(self.target.n_rows, self.n)
        spacing = int(np.clip(relaxation / 4, 1, LONGEST / 4))
        steps = len(chains) * (drop + PILOT_DRAWS * spacing)
        seconds = seconds_of_steps(self.target, steps, self.n)
        if self.request.is_open and seconds > PILOT_SECONDS:
            raise Refused
        if first:
            told = slowdown_of_batches(self.target, self.n, self.scheme) * seconds
            remedy = SHORTER_FITS if self.request.is_open else SHORTER_PILOTS
            price_of_steps(steps, self.n, remedy).tell(told)
        _, chains = sample(setup, chains, 1, drop, n_jobs=self.request.n_jobs)
        draws, chains = sample(setup, chains, PILOT_DRAWS, spacing, n_jobs=self.request.n_jobs)
        if any(chain.diverged for chain in chains):
            return None
        return draws if (np.abs(draws) < 100.0 * setup.bounds / FAR).all() else None

    def _retreat(self):
        """Halve the time step and take four times the rows, after a pilot that diverged."""
        if self.request.step_size is None:
            self.h /= self.dynamics.substep_ratio
        if self.request.batch_size is None and not self.full:
            self.n = min(4 * self.n, self.target.n_rows)

    def be_careful(self):
        """Halve the time step, and double the rows a step unless they were asked for."""
        self.h /= self.dynamics.substep_ratio
        if self.request.batch_size is None:
            self.n = min(2 * self.n, self.gradient.most_rows(self.target.n_rows))

    def _measure(self, draws):
        """Measure λ and the noise at draws of a pilot, and choose step and rows by them."""
        points = _spread(draws, SURVEY_DRAWS)
        self.growth = self.survey.growth(self.sampled, points)
        self._choose_step(at_most=4.0 * self.h)
        if self.full:
            return
        self._find_reach(draws)
        self._measure_noise(points)
        self._choose_step(at_most=4.0 * self.h)
        self._refuse_many_rows()

    def _measure_noise(self, points):
        """Measure the noise at the points; if it needs many rows, improve their probabilities."""
        N, h = self.target.n_rows, self.h
        self._find_noise(self._chances, points)
        if self._weights is None or getattr(self.scheme, "weights", "posterior") != "posterior":
            return
        if self.n <= least_rows(N) and self._is_quiet():
            return
        heavy = np.sort(np.argsort(-self._weights, kind="stable")[:HEAVY_ROWS])
        self._weights[heavy] = self._row_weights(points, WIDE_SKETCH)(heavy)
        self.h = h  # not what `_find_noise` may have made of it by the former probabilities
        self._survey_noise(points)

    def _refuse_many_rows(self):
        """Raise `Refused` if the noise calls for too many rows and the recipe may do without."""
        if self.n > MOST_ROWS * self.target.n_rows and not self.full and self.request.is_open:
            raise Refused

    def _warn_unsettled(self):
        warnings.warn(
            f"The step size had not settled after {ROUNDS} pilot runs (step_size={self.h:.3g}, "
            f"batch_size={self.n}): the posterior is very skewed. Compare with sampler='hmc', "
            "which is exact.",
            StepSizeWarning,
            stacklevel=2,
        )

    # -- results ------------------------------------------------------------------------------

    def review(self, draws):
        """Measure λ and the noise again at draws of the final run, which report them.

        What is reported then does not depend on what a pilot has met.
        """
        if draws.shape[1] == 0:
            return  # no draws are kept
        points = _spread(draws, SURVEY_DRAWS)
        self.growth = self.survey.growth(self.sampled, points)
        if not self.full:
            self.noise, self.fixed_noise = self._noise_at(self._chances, points)

    def relaxation(self):
        """Steps in which autocorrelations of the slowest direction fall by a factor e."""
        return self.dynamics.relaxation_steps(self.h, self.frame.curvature_range[0])

    def biases(self):
        """The measurements, and the predicted effects of noise and step on a variance."""
        flat = self.frame.curvature_range[1]
        return {
            "curvature_growth": self.growth,
            "noise_inflation": self._inflation(),
            "step_inflation": self.dynamics.bias(self.h, flat),
        }

    @property
    def largest_step(self):
        """The step size at which the dynamics becomes unstable, from the measured curvature."""
        return self.dynamics.largest_step(self.frame.curvature_range[1] + self.growth)

    def setup(self):
        """The `Setup` of chains with the present step, rows and probabilities."""
        spread = np.ones(self.target.n_parameters)
        if not self.frame.whitened:
            spread = np.abs(self._guess(64)).max(axis=0)
        problem = self.frame.problem(self.gradient)
        pieces = self.target.model, self.gradient, self.scheme, self.dynamics
        h = self.request.step_size or Constant(self.h)
        reach = 1.0 if self._reach is None else self._reach[0]
        rest = {"bounds": FAR * spread, "chances": self.chances, "reach": reach}
        return Setup(problem, *pieces, self.n, step_size=h, **rest)
