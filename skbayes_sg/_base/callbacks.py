"""The only place that uses scikit-learn's experimental callbacks (version 1.9).

With an older scikit-learn, fits run without callbacks.
"""

import functools

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Empty stand-in for scikit-learn's mixin: estimators then have no callback methods."""

    def with_callbacks(method):  # type: ignore[no-redef]
        """Wrap a method in one call frame, as scikit-learn's decorator does.

        The `stacklevel` of warnings, which counts frames, then fits all versions of scikit-learn.
        """

        @functools.wraps(method)
        def called(estimator, *args, **kwargs):
            return method(estimator, *args, **kwargs)

        return called


__all__ = ["CallbackSupportMixin", "Progress", "with_callbacks"]

# Most tasks into which the progress of a run is divided; the cost of a progress bar grows with the
# square of this number.
TASKS = 50


class Progress:
    """Reports the progress of the final run to callbacks, in at most `TASKS` tasks.

    Parameters
    ----------
    estimator : estimator
    reconstruct : callable
        ``reconstruct(draws, weights)`` returns the fitted attributes for the draws so far; it is
        called only if a callback needs a fitted estimator.
    task : str
        The name of the task: "fit" or "expect".
    data : dict
        X and y of the fit.
    """

    def __init__(self, estimator, reconstruct, task="fit", **data):
        self.estimator, self.reconstruct, self.data = estimator, reconstruct, data
        self.reported, self.context = 0, None
        if hasattr(estimator, "_init_callback_context"):
            context = estimator._init_callback_context(task, max_subtasks=TASKS)
            self.context = context.call_on_fit_task_begin(estimator=estimator, **data)

    def __call__(self, so_far, share):
        """Report the share of the run that is done, and return whether a callback wants to stop it.

        ``so_far()`` returns the arguments (draws, weights) of `reconstruct`.
        """
        stop = False
        while self.context is not None and self.reported < int(TASKS * share) and not stop:
            self.reported += 1
            task = self.context.subcontext(task_name="draws")
            task.call_on_fit_task_begin(estimator=self.estimator, **self.data)
            stop = task.call_on_fit_task_end(
                estimator=self.estimator,
                reconstruction_attributes=lambda: self.reconstruct(*so_far()),
                **self.data,
            )
        return stop

    def finish(self, attributes):
        """Report the end of the fit, with the fitted attributes."""
        if self.context is not None:
            self.context.call_on_fit_task_end(
                estimator=self.estimator, reconstruction_attributes=attributes, **self.data
            )
