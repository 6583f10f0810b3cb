"""Fits in a process of their own, so that one that crashes or does not end harms nobody."""

import multiprocessing
import os
import time
import traceback
import warnings
from pathlib import Path

EXCEPTIONS = "skbayes_sg.exceptions"
COST_ONLY = {"LongRunWarning", "DrawStoreWarning", "CacheWarning"}  # they say nothing of the draws
OF_THE_MODEL = {"PriorConflictWarning", "WidePriorWarning"}  # whose posterior the draws have


def _serve(connection):
    """Fit the cases that come in, and say what happened; warnings at once."""
    from .tables import make

    def show(message, category, *place):
        connection.send(("warning", category.__module__, category.__name__, str(message)))

    while True:
        family, seed = connection.recv()
        warnings.simplefilter("always")
        warnings.showwarning = show
        try:
            connection.send(("done", _outcome(make(family, seed))))
        except Exception as error:
            connection.send(("error", _described(error)))


def _outcome(case):
    from .families import LDA, LOGISTIC, PMF
    from .invariants import broken
    from .later import draws_of

    began = time.perf_counter()
    model = case.fit()
    found = {"seconds": time.perf_counter() - began, "broken": broken(case, model)}
    check, sampler = model.posterior_.check(), getattr(model, "sampler_", "")
    found |= {"trusted": bool(check), "check": str(check), "sampler": sampler}
    no_reference = case.estimator in (PMF, LDA)
    draws = None if no_reference else draws_of(case, model)
    if draws is None:
        return found
    return (
        found
        | dict(zip(("draws", "labels"), draws, strict=True))
        | {"independent": sampler == "importance"}
        | {"classes": case.estimator == LOGISTIC and len(model.classes_) > 2}
    )


def _described(error):
    """Class and text of an error, and whether it names the cause: a refusal, not a crash."""
    frames = traceback.extract_tb(error.__traceback__)
    where = Path(frames[-1].filename).parts
    ours = type(error).__module__ == EXCEPTIONS
    name = type(error).__name__
    checked = name in ("ValueError", "TypeError", "MemoryError", "InvalidParameterError")
    refused = ours or (checked and ("skbayes_sg" in where or "sklearn" in where))
    place = f"{where[-1]}:{frames[-1].lineno}"
    return {"refused": refused, "text": f"{name}: {error}", "place": place}


def spent(process):
    """Seconds of processor time of a process, where the system tells; else those of a clock."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Worker:
    """A process that fits, started anew after a crash or a limit."""

    def __init__(self):
        self.process = None

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def fit(self, family, seed, seconds):
        """(kind, content, warnings): kind is "done", "error", "no end" or "died"."""
        if self.process is None or not self.process.is_alive():
            self._start()
        self.connection.send((family, seed))
        said, began = [], spent(self.process.pid)
        while True:
            if self.connection.poll(1.0):
                try:
                    kind, *content = self.connection.recv()
                except EOFError:
                    self.stop()
                    return "died", "the process died", said
                if kind != "warning":
                    return kind, content[0], said
                said.append(tuple(content))
            if spent(self.process.pid) - began > seconds:  # also of a fit that warns all the time
                self.stop()
                return "no end", f"no end in {seconds:.0f} s", said

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def split(said):
    """Warnings of the package about the draws, about cost, and those of others."""
    own = {name for module, name, _ in said if module == EXCEPTIONS}
    stray = {f"{name}: {text}" for module, name, text in said if module != EXCEPTIONS}
    cost = own & COST_ONLY
    return sorted(own - cost - OF_THE_MODEL), sorted(cost), sorted(stray)
