"""Data sets that are downloaded when they are first asked for, and kept.

No data come with the package. Files lie in scikit-learn's data folder
(`sklearn.datasets.get_data_home`), and are checked against a checksum.
"""

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

import numpy as np
from sklearn.datasets import fetch_file, get_data_home
from sklearn.utils import Bunch

__all__ = ["fetch_movielens"]

URL = "https://files.grouplens.org/datasets/movielens/{}.zip"
TERMS = (
    "for research, with acknowledgement of GroupLens; not for redistribution or commercial use "
    "without permission (see the README in the archive)"
)


@dataclass(frozen=True)
class _Archive:
    """Where the ratings and titles of a release lie, and how fields are separated."""

    sha256: str
    ratings: str
    ratings_separator: bytes
    items: str
    items_separator: str


ARCHIVES = {
    "ml-100k": _Archive(
        "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
        "ml-100k/u.data", b"\t", "ml-100k/u.item", "|",
    ),
    "ml-1m": _Archive(
        "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
        "ml-1m/ratings.dat", b"::", "ml-1m/movies.dat", "::",
    ),
}  # fmt: skip


def fetch_movielens(
    name="ml-100k", *, data_home=None, download_if_missing=True, return_X_y=False, as_frame=False,
    n_retries=3, delay=1.0,
):  # fmt: skip
    """MovieLens ratings: who gave which film how many stars.

    The first call downloads the archive of GroupLens (5 or 6 MB) into the data folder; later calls
    read it there. Terms of use: for research, with acknowledgement of GroupLens; no redistribution
    and no commercial use without their permission.

    ============  ========  =======  ==========
    name          users     films    ratings
    ============  ========  =======  ==========
    ``ml-100k``   943       1,682    100,000
    ``ml-1m``     6,040     3,706    1,000,209
    ============  ========  =======  ==========

    Parameters
    ----------
    name : {"ml-100k", "ml-1m"}, default="ml-100k"
        Which release.
    data_home : str or path-like, default=None
        The data folder; None is scikit-learn's.
    download_if_missing : bool, default=True
        Whether to download the archive if it is not in the data folder.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` alone.
    as_frame : bool, default=False
        Whether data and target are a `pandas.DataFrame` and a `pandas.Series`.
    n_retries : int, default=3
        How often the download is tried again.
    delay : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    data : sklearn.utils.Bunch
        With ``data``, (n_ratings, 2) numbers of user and film, as `BayesianPMF` takes them;
        ``target``, ratings from 1 to 5; ``timestamp``, seconds since 1970; ``item_ids`` and
        ``item_titles``; ``feature_names``, ``target_name``, ``frame`` and ``DESCR``. In the order
        of the file.

    Raises
    ------
    OSError
        If the archive is neither there nor to be had, with the address and the folder; or if its
        checksum is wrong.
    ValueError
        For an unknown name.

    References
    ----------
    F. M. Harper and J. A. Konstan (2015). The MovieLens datasets: history and context. *ACM
    Transactions on Interactive Intelligent Systems* 5, 19.

    Examples
    --------
    >>> from skbayes_sg.datasets import fetch_movielens
    >>> X, y = fetch_movielens("ml-100k", return_X_y=True)  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (100000, 2)
    """
    if name not in ARCHIVES:
        raise ValueError(f"name must be one of {sorted(ARCHIVES)}, got {name!r}.")
    archive, path = ARCHIVES[name], _find(name, data_home, download_if_missing, n_retries, delay)
    ratings, item_ids, titles = _read(path, archive)
    names = ["user", "item"]
    bunch = Bunch(
        data=ratings[:, :2], target=ratings[:, 2].astype(np.float64), timestamp=ratings[:, 3],
        item_ids=item_ids, item_titles=titles, feature_names=names, target_name="rating",
        frame=None, DESCR=f"MovieLens {name}: {len(ratings)} ratings. Terms of use: {TERMS}.",
    )  # fmt: skip
    if as_frame:
        bunch = _with_frames(bunch)
    return (bunch.data, bunch.target) if return_X_y else bunch


def _find(name, data_home, download_if_missing, n_retries, delay):
    """The archive in the data folder, downloaded if that is wanted."""
    folder, url = Path(get_data_home(data_home)) / "skbayes_sg", URL.format(name)
    path = folder / f"{name}.zip"
    if not path.exists() and not download_if_missing:
        raise OSError(f"{path} is not there, and download_if_missing=False. It comes from {url}")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return fetch_file(
            url, folder=folder, local_filename=path.name, sha256=ARCHIVES[name].sha256,
            n_retries=n_retries, delay=delay,
        )  # fmt: skip
    except (URLError, TimeoutError, ConnectionError) as error:
        raise OSError(
            f"{name} could not be downloaded ({error}). Get {url} on another machine and put it "
            f"into {folder}."
        ) from error


def _read(path, archive):
    """Ratings (user, item, rating, time), and the numbers and titles of the items."""
    with zipfile.ZipFile(path) as files:
        text = files.read(archive.ratings).replace(archive.ratings_separator, b"\t")
        lines = files.read(archive.items).decode("latin-1").splitlines()
    ratings = np.loadtxt(io.BytesIO(text), dtype=np.int64, delimiter="\t", ndmin=2)
    fields = [line.split(archive.items_separator) for line in lines if line]
    ids = np.array([int(field[0]) for field in fields], dtype=np.int64)
    return ratings, ids, np.array([field[1] for field in fields])


def _with_frames(bunch):
    import pandas as pd

    frame = pd.DataFrame(bunch.data, columns=bunch.feature_names)
    frame[bunch.target_name] = bunch.target
    bunch.update(data=frame[bunch.feature_names], target=frame[bunch.target_name], frame=frame)
    return bunch
