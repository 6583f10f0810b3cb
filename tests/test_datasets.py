"""Data sets: what is read from an archive, and what is said where there is none."""

import hashlib
import zipfile
from dataclasses import replace
from urllib.error import URLError

import numpy as np
import pytest

from skbayes_sg import datasets
from skbayes_sg.datasets import ARCHIVES, fetch_movielens

FILES = {
    "ml-100k": {
        "ml-100k/u.data": "7\t3\t5\t881250949\n8\t4\t2\t891717742\n7\t4\t1\t878887116\n",
        "ml-100k/u.item": "3|Café (1995)|01-Jan-1995||url|0|1\n4|Toys: 2::x (1996)|||url|0|1\n",
    },
    "ml-1m": {
        "ml-1m/ratings.dat": "7::3::5::978300760\n8::4::2::978302109\n7::4::1::978301968\n",
        "ml-1m/movies.dat": "3::Café (1995)::Comedy\n4::Toys|2 (1996)::Drama\n",
    },
}


@pytest.fixture(params=FILES)
def archive(request, tmp_path, monkeypatch):
    """The name of a release whose archive, with three ratings, is in the data folder."""
    folder = tmp_path / "skbayes_sg"
    folder.mkdir()
    path = folder / f"{request.param}.zip"
    with zipfile.ZipFile(path, "w") as files:
        for name, text in FILES[request.param].items():
            files.writestr(name, text.encode("latin-1"))
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setitem(ARCHIVES, request.param, replace(ARCHIVES[request.param], sha256=checksum))
    return request.param


def test_what_is_read(archive, tmp_path):
    found = fetch_movielens(archive, data_home=tmp_path)
    assert found.data.tolist() == [[7, 3], [8, 4], [7, 4]]
    assert found.target.tolist() == [5.0, 2.0, 1.0]
    assert found.item_ids.tolist() == [3, 4]
    assert found.item_titles[0] == "Café (1995)"
    assert found.item_titles[1].startswith("Toys")
    assert len(found.timestamp) == 3
    assert "no" in found.DESCR
    X, y = fetch_movielens(archive, data_home=tmp_path, return_X_y=True)
    assert np.array_equal(X, found.data)
    assert np.array_equal(y, found.target)


def test_frames(archive, tmp_path):
    found = fetch_movielens(archive, data_home=tmp_path, as_frame=True)
    assert found.frame.columns.tolist() == ["user", "item", "rating"]
    assert found.data.columns.tolist() == ["user", "item"]
    assert found.target.tolist() == [5.0, 2.0, 1.0]


def test_where_there_is_no_archive(tmp_path, monkeypatch):
    with pytest.raises(OSError, match=r"ml-1m\.zip does not exist, and download_if_missing=False"):
        fetch_movielens("ml-1m", data_home=tmp_path, download_if_missing=False)

    def offline(*args, **options):
        raise URLError("no route")

    monkeypatch.setattr(datasets, "fetch_file", offline)
    with pytest.raises(OSError, match=r"could not be downloaded.*no route.*grouplens.*skbayes_sg"):
        fetch_movielens(data_home=tmp_path)
    with pytest.raises(ValueError, match="name must be one of"):
        fetch_movielens("ml-25m", data_home=tmp_path)


def test_a_damaged_archive_is_not_used(archive, tmp_path, monkeypatch):
    path = tmp_path / "skbayes_sg" / f"{archive}.zip"
    path.write_bytes(path.read_bytes() + b"x")

    def offline(*args, **options):
        raise URLError("no route")

    monkeypatch.setattr("sklearn.datasets._base.urlretrieve", offline)
    with pytest.warns(UserWarning, match="differs|checksum"), pytest.raises(OSError, match="downl"):
        fetch_movielens(archive, data_home=tmp_path, n_retries=0)
