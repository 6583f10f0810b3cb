"""scikit-learn's callbacks (1.9, experimental), behind one small door.

Where scikit-learn is older the door leads nowhere: fits run without callbacks.
"""

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Without callbacks."""

    def with_callbacks(method):  # type: ignore[no-redef]
        """The method itself."""
        return method


__all__ = ["CallbackSupportMixin", "Progress", "with_callbacks"]

TASKS = 50  # a progress bar's cost grows with the square of their number


class Progress:
    """Tells callbacks how far the final run is, in at most `TASKS` tasks, and whether to stop it.

    Parameters
    ----------
    estimator : estimator
    reconstruct : callable
        ``reconstruct(draws, weights)``: fitted attributes for the draws so far; called only if a
        callback wants a fitted estimator.
    task : str
        What is run: "fit" or "expect".
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
        """Report that `share` of the run is done; `so_far()` are the draws so far, and weights."""
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
        """The fit is done, with these fitted attributes."""
        if self.context is not None:
            self.context.call_on_fit_task_end(
                estimator=self.estimator, reconstruction_attributes=attributes, **self.data
            )
