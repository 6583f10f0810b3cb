"""Adaptation of the steps of chains of group effects, and of the widths of what they propose."""

from .._base.jit import entry

__all__ = ["SHRUNK", "adapted"]

SHRUNK = 10  # draws that the widths so far count as where new ones are learnt


@entry
def adapted(log_step, average, surplus, n, longest):
    """Adapt log ε by Robbins and Monro, and update Polyak's average of it, both in place.

    `surplus` is the acceptance rate of sweep number n less the one aimed at; `longest` bounds
    log ε. Both arrays have one entry.
    """
    log_step[0] = min(log_step[0] + surplus * n**-0.6, longest)
    average[0] += (log_step[0] - average[0]) * n**-0.75
