"""Data sets that are downloaded at first use, and kept on disk.

The package contains no data. Files are stored in scikit-learn's data folder
(`sklearn.datasets.get_data_home`) and verified by a checksum.
"""

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
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
    """A release: (file, separator) of its ratings and of its titles, and the archive's checksum."""

    ratings: tuple[str, bytes]
    items: tuple[str, str]
    sha256: str


SHA256_100K = "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229"
SHA256_1M = "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20"
ARCHIVES = {
    "ml-100k": _Archive(("ml-100k/u.data", b"\t"), ("ml-100k/u.item", "|"), SHA256_100K),
    "ml-1m": _Archive(("ml-1m/ratings.dat", b"::"), ("ml-1m/movies.dat", "::"), SHA256_1M),
}


def fetch_movielens(
    name: str = "ml-100k",
    *,
    data_home: Any = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
    n_retries: int = 3,
    delay: float = 1.0,
) -> Any:
    """Load MovieLens ratings: which user gave which film how many stars.

    The first call downloads the archive from GroupLens (5 or 6 MB) into the data folder; later
    calls read it there. The data may be used for research with acknowledgement of GroupLens; they
    may not be redistributed or used commercially without permission.

    ============  ========  =======  ==========
    name          users     films    ratings
    ============  ========  =======  ==========
    ``ml-100k``   943       1,682    100,000
    ``ml-1m``     6,040     3,706    1,000,209
    ============  ========  =======  ==========

    Parameters
    ----------
    name : {"ml-100k", "ml-1m"}, default="ml-100k"
        The release.
    data_home : str or path-like, default=None
        The data folder; None is scikit-learn's.
    download_if_missing : bool, default=True
        Whether to download the archive if it is not in the data folder.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` alone.
    as_frame : bool, default=False
        Whether data and target are a `pandas.DataFrame` and a `pandas.Series`.
    n_retries : int, default=3
        Number of times that a failed download is repeated.
    delay : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    data : sklearn.utils.Bunch
        ``data`` holds the numbers of user and film in an array (n_ratings, 2), as `BayesianPMF`
        takes them; ``target`` holds the ratings from 1 to 5, and ``timestamp`` their times in
        seconds since 1970. There are also ``item_ids``, ``item_titles``, ``feature_names``,
        ``target_name``, ``frame`` and ``DESCR``. Ratings are in the order of the file.

    Raises
    ------
    OSError
        If the archive is not in the data folder and cannot be downloaded, or its checksum is wrong.
        The message names the address and the folder.
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
    description = f"MovieLens {name}: {len(ratings)} ratings. Terms of use: {TERMS}."
    names = {"feature_names": ["user", "item"], "target_name": "rating"}
    values = {"data": ratings[:, :2], "target": ratings[:, 2].astype(np.float64)}
    values |= {"timestamp": ratings[:, 3], "item_ids": item_ids, "item_titles": titles}
    bunch = Bunch(**values, **names, frame=None, DESCR=description)
    if as_frame:
        bunch = _with_frames(bunch)
    return (bunch.data, bunch.target) if return_X_y else bunch


def _find(name, data_home, download_if_missing, n_retries, delay):
    """Return the path of the archive in the data folder, downloaded if necessary and allowed."""
    folder, url = Path(get_data_home(data_home)) / "skbayes_sg", URL.format(name)
    path = folder / f"{name}.zip"
    if not path.exists() and not download_if_missing:
        raise OSError(f"{path} does not exist, and download_if_missing=False. It comes from {url}")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        own = {"local_filename": path.name, "sha256": ARCHIVES[name].sha256}
        return fetch_file(url, folder=folder, **own, n_retries=n_retries, delay=delay)
    except (URLError, TimeoutError, ConnectionError) as error:
        raise OSError(
            f"{name} could not be downloaded ({error}). Get {url} on another machine and put it "
            f"into {folder}."
        ) from error


def _read(path, archive):
    """Return (ratings, item numbers, item titles) from the archive at `path`.

    The columns of the ratings, an array (n_ratings, 4), are user, item, rating and time.
    """
    with zipfile.ZipFile(path) as files:
        ratings, items = (files.read(name) for name, _ in (archive.ratings, archive.items))
    text = io.BytesIO(ratings.replace(archive.ratings[1], b"\t"))
    lines = items.decode("latin-1").splitlines()
    fields = [line.split(archive.items[1]) for line in lines if line]
    ids = np.array([int(field[0]) for field in fields], dtype=np.int64)
    ratings = np.loadtxt(text, dtype=np.int64, delimiter="\t", ndmin=2)
    return ratings, ids, np.array([field[1] for field in fields])


def _with_frames(bunch):
    import pandas as pd

    frame = pd.DataFrame(bunch.data, columns=bunch.feature_names)
    frame[bunch.target_name] = bunch.target
    bunch.update(data=frame[bunch.feature_names], target=frame[bunch.target_name], frame=frame)
    return bunch
