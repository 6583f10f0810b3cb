"""The demonstration: on its own data, on tables of others, and on tables that cannot be used."""

import gzip
import io
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLogisticRegression, Posterior
from skbayes_sg.demo import _command, _decision, _report, main
from skbayes_sg.demo._models import named_posterior, renamed
from skbayes_sg.demo._table import TableError, read_table

FEW = ["--draws", "40", "--folds", "2"]
QUICK = [*FEW, "--step-sizes", "auto", "--prior-scales"]


def write(path, header, rows, separator=","):
    lines = [separator.join(map(str, row)) for row in [header, *rows]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def is_png(path):
    return path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and path.stat().st_size > 10_000


@pytest.mark.slow
def test_on_its_own_data(tmp_path, capsys):
    figure = tmp_path / "figure.png"
    assert main([*QUICK, "0.3", "1", "--splits", "3", "--output", str(figure)]) == 0
    printed = capsys.readouterr().out
    assert "how many of the 509 held-out rows are 'malignant'?" in printed
    assert printed.count("standard error") >= 3
    assert is_png(figure)
    assert "569 rows, 30 columns" in printed
    assert "worst concave points" in printed  # the features' names are in the summary
    assert "prior: normal, scale 0.3" in printed
    assert "LogisticRegression, C = " in printed
    for column in ("rhat", "ess_bulk", "mcse_mean"):
        assert printed.count(column) >= 2  # in the table, and explained
    assert str(figure) in printed


def mixed_table(path, n=120):
    """Numbers and texts with gaps, three classes, and columns that cannot be used."""
    rng = np.random.default_rng(0)
    size, colour = rng.normal(size=n).round(3), rng.choice(["red", "green", "blue"], n)
    kind = np.where(size + (colour == "red") > 0.5, "large", np.where(size < -0.5, "small", "mid"))
    rows = [
        [
            "?" if i % 10 == 0 else size[i], "" if i == 7 else colour[i],
            "yes" if i % 2 else "no", f"name {i}", 3, "" if i < 2 else kind[i],
        ]
        for i in range(n)
    ]  # fmt: skip
    return write(path, ["size", "colour", "big", "name", "same", "kind"], rows, ";")


@pytest.mark.slow
def test_on_a_table_with_texts_gaps_and_three_classes(tmp_path, capsys):
    data, figure = mixed_table(tmp_path / "mixed.csv"), tmp_path / "mixed.png"
    assert main([*QUICK, "1", "--data", data, "--target", "kind", "--output", str(figure)]) == 0
    printed = capsys.readouterr().out
    assert is_png(figure)
    assert "2 rows without a value of 'kind' are left out." in printed
    assert "'size' 11, 'colour' 1." in printed
    assert "large: colour=red" in printed
    assert "small: big=yes" in printed
    assert "big=no" not in printed  # one column for two levels


def test_what_is_read_from_a_table(tmp_path):
    table = read_table(mixed_table(tmp_path / "mixed.csv"), "kind")
    assert table.names == ["size", "colour", "big"]
    assert table.is_text.tolist() == [False, True, True]
    assert table.X.shape == (118, 3)
    assert set(table.y) == {"small", "mid", "large"}
    assert np.isnan(table.X[8, 0])  # the eleventh row of the file, less the two left out
    assert table.X[5, 1] == "missing"
    assert len([note for note in table.notes if "is left out" in note]) == 2


def test_numeric_labels_are_the_same_however_they_are_written(tmp_path):
    rows = [[i, ["1", "1.0", "0", " 0"][i % 4]] for i in range(40)]
    table = read_table(write(tmp_path / "numbers.csv", ["x", "y"], rows), "y")
    assert set(table.y) == {"0", "1"}
    assert table.X.dtype == float


@pytest.mark.parametrize(("values", "noted"), [([0, 1, 2], True), ([0, 1], False), ("abc", False)])
def test_numbers_that_are_taken_for_classes_are_noted(tmp_path, values, noted):
    rows = [[i, values[i % len(values)]] for i in range(60)]
    path = write(tmp_path / "counts.csv", ["x", "y"], rows)
    assert (
        any("taken for classes; --task counts" in n for n in read_table(path, "y").notes) == noted
    )
    assert not read_table(path, "y", "classes").notes


def test_decimal_commas_are_numbers(tmp_path):
    """As spreadsheets write them in much of Europe, with semicolons between the fields."""
    rows = [
        [f"{i / 4}", f"{1000 * i + 0.5:,}", i % 3, '"1,5"' if i % 2 else "a", i % 2]
        for i in range(40)
    ]
    header, names = "x;price;n;text;y", ["x", "price", "n", "text"]
    with_points = write(
        tmp_path / "points.csv",
        [*names, "y"],
        [[r[0], r[1].replace(",", ""), *r[2:]] for r in rows],
    )
    lines = [header]
    for x, price, *others in rows:
        price = price.replace(",", " ").replace(".", ",").replace(" ", ".")  # 1.000,5
        lines.append(";".join(map(str, [x.replace(".", ","), price, *others])))
    path = tmp_path / "commas.csv"
    path.write_text("\n".join([*lines, ";NA;1;a;1"]), encoding="utf-8")
    table, expected = read_table(path, "y"), read_table(with_points, "y")
    assert "Commas are taken for decimal points in 'x', 'price'." in table.notes
    assert table.names == names
    np.testing.assert_array_equal(table.X[:40], expected.X)
    assert read_table(path, "x").task == "numbers"


@pytest.mark.parametrize(("last", "is_text"), [("12,500", True), ("0,500", False), ("7,5", False)])
def test_commas_that_may_stand_between_thousands_are_told(tmp_path, last, is_text):
    values = ["1,250", "900", "2,000", last]
    lines = ["x\ty", *(f"{values[i % 4]}\t{i % 2}" for i in range(40))]
    path = tmp_path / "thousands.tsv"
    path.write_text("\n".join(lines), encoding="utf-8")
    table = read_table(path, "y")
    assert table.is_text.tolist() == [is_text]
    assert any("between thousands" in note for note in table.notes) == is_text
    assert is_text or table.X[0, 0] == 1.25


def test_rare_classes_are_left_out_and_named(tmp_path):
    rows = [[i, "ab"[i % 2]] for i in range(30)] + [[1, "c"]] * 3
    table = read_table(write(tmp_path / "rare.csv", ["x", "y"], rows), "y")
    assert set(table.y) == {"a", "b"}
    assert any("{'c': 3}" in note for note in table.notes)


def test_quoted_fields_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "quoted.csv"
    lines = ['"a, b",y'] + [f'"{i / 7}",{"no" if i % 2 else "yes"}' for i in range(20)]
    path.write_text("\n".join(lines), encoding="utf-8-sig")
    assert read_table(path, "y").names == ["a, b"]


def test_a_table_read_is_the_data_set_written(tmp_path):
    data = load_wine()
    rows = np.column_stack([data.data, data.target])
    table = read_table(write(tmp_path / "wine.csv", [*data.feature_names, "y"], rows), "y")
    np.testing.assert_array_equal(table.X, data.data)
    np.testing.assert_array_equal(table.y.astype(int), data.target)


BINARY = [[i, i % 2] for i in range(30)]
UNUSABLE = {
    "misspelt": (["x", "label"], BINARY, "lable", r"no column 'lable'. Did you mean 'label'"),
    "unnamed": (["x", "y"], BINARY, None, r"Name a column with --target.*x, y"),
    "one class": (["x", "y"], [[i, "a"] for i in range(30)], "y", r"has one value only \('a'\)"),
    "no labels": (["x", "y"], [[i, ""] for i in range(30)], "y", r"has no values"),
    "names": (["x", "y"], [[i, f"n{i}"] for i in range(30)], "y", r"30 different values in 30"),
    "few rows": (["x", "y"], BINARY[:9], "y", r"too few rows.*'0': 5, '1': 4"),
    "no features": (
        ["x", "y"],
        [[1, i % 2] for i in range(30)],
        "y",
        r"no usable column besides 'y'",
    ),
    "ragged": (["x", "y"], [*BINARY, [1]], "y", r"Line 32 of .* has 1 fields, .* header has 2"),
    "twice": (
        ["x", "x", "y"],
        [[1, *row] for row in BINARY],
        "y",
        r"repeats the names of columns: \['x'\]",
    ),
    "no rows": (["x", "y"], [], "y", r"no rows below its header"),
}


def regression_table(path, counts=False, n=160):
    rng = np.random.default_rng(2)
    x, z = rng.normal(size=n).round(3), rng.choice(["red", "green"], n)
    eta = 2.5 + 0.4 * x + 0.3 * (z == "red")
    y = rng.poisson(np.exp(eta)) if counts else (100.0 * eta + 20.0 * rng.normal(size=n)).round(2)
    return write(path, ["x", "z", "y"], zip(x, z, y, strict=True))


@pytest.mark.parametrize("task", [pytest.param("numbers", marks=pytest.mark.slow), "counts"])
def test_numbers_and_counts_are_regressed_on(tmp_path, capsys, task):
    data = regression_table(tmp_path / "table.csv", task == "counts")
    figure = tmp_path / "figure.png"
    assert main(["--draws", "200", "--data", data, "--target", "y", "--output", str(figure)]) == 0
    printed = capsys.readouterr().out
    assert is_png(figure)
    assert f"taken as {task}" in printed
    assert ("PoissonRegressor" if task == "counts" else "LinearRegression") in printed
    share = int(re.search(r"intervals contain (\d+)% of the", printed)[1])
    assert 75 <= share <= 100
    assert "z=red" in printed or "z=green" in printed


def test_what_a_target_is_taken_as(tmp_path):
    n = np.arange(60)
    held = {"classes": n % 7, "counts": n % 30, "numbers": 1000 * n}
    for task, y in held.items():
        path = write(tmp_path / f"{task}.csv", ["x", "y"], zip(n, y, strict=True))
        table = read_table(path, "y")
        assert table.task == task
        assert (table.y.dtype == np.float64) == (task != "classes")
    path = str(tmp_path / "classes.csv")
    assert read_table(path, "y", "counts").task == "counts"
    with pytest.raises(TableError, match="60 different values in 60 rows"):
        read_table(str(tmp_path / "numbers.csv"), "y", "classes")
    path = write(tmp_path / "half.csv", ["x", "y"], zip(n, n + 0.5, strict=True))
    with pytest.raises(TableError, match="holds no counts"):
        read_table(path, "y", "counts")
    with pytest.raises(TableError, match="holds texts"):
        read_table(
            write(tmp_path / "text.csv", ["x", "y"], [[i, "ab"[i % 2]] for i in n]), "y", "numbers"
        )
    few = write(tmp_path / "few.csv", ["x", "y"], zip(n[:9], n[:9], strict=True))
    with pytest.raises(TableError, match="a regression needs 20 rows"):
        read_table(few, "y", "numbers")


@pytest.mark.parametrize("case", UNUSABLE)
def test_tables_that_cannot_be_used_are_refused_with_a_reason(tmp_path, case):
    header, rows, target, message = UNUSABLE[case]
    path = write(tmp_path / "table.csv", header, rows)
    with pytest.raises(TableError, match=message) as caught:
        read_table(path, target)
    assert target is None or "table.csv" in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(TableError, match=r"Cannot read .*nowhere\.csv: No such file"):
        read_table(tmp_path / "nowhere.csv", "y")
    (tmp_path / "latin.csv").write_bytes("x,y\né,1\n".encode("latin-1"))
    with pytest.raises(TableError, match=r"latin\.csv is not UTF-8"):
        read_table(tmp_path / "latin.csv", "y")


def zipped(name):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, "x,y")
    return packed.getvalue()


OTHERS = {
    "zip": (zipped("table.csv"), "a zip archive or an Excel workbook"),
    "xlsx": (zipped("xl/workbook.xml"), "a zip archive or an Excel workbook"),
    "xls": (b"\xd0\xcf\x11\xe0\xa1\xb1", "an Excel workbook. Save its sheet"),
    "parquet": (b"PAR1\x15\x04\xff\xfePAR1", "a Parquet file"),
    "zip.gz": (gzip.compress(b"PK\x03\x04"), "a zip archive"),
    "part.gz": (gzip.compress(b"x,y\n1,2\n")[:-6], "Cannot unpack .*, which gzip has packed"),
    "old.gz": (b"\x1f\x8b\x00" * 9, r"Cannot read .*: Unknown compression method"),
}


@pytest.mark.parametrize("suffix", OTHERS)
def test_files_that_are_no_csv_files_are_recognised(tmp_path, suffix):
    content, message = OTHERS[suffix]
    path = tmp_path / f"table.{suffix}"
    path.write_bytes(content)
    with pytest.raises(TableError, match=message) as caught:
        read_table(path, "y")
    assert str(path) in str(caught.value)


def test_packed_files_are_read(tmp_path):
    plain = Path(mixed_table(tmp_path / "mixed.csv"))
    packed = tmp_path / "mixed.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert repr(read_table(packed, "kind").X) == repr(read_table(plain, "kind").X)


@pytest.mark.parametrize("name", ["PK", "PAR1"])
def test_headers_like_the_beginnings_of_other_files_are_read(tmp_path, name):
    path = write(tmp_path / "table.csv", [name, "y"], BINARY)
    assert read_table(path, "y").names == [name]


@pytest.mark.parametrize(
    ("first", "numbers", "left_out"),
    [
        ("", np.arange(30), True),  # as pandas writes its index
        ("", np.arange(1, 31), True),  # as R writes the names of rows
        ("", np.arange(30)[::-1], False),
        ("", np.arange(0, 60, 2), False),
        ("id", np.arange(30), False),
    ],
)
def test_a_nameless_column_that_counts_the_rows_is_left_out(tmp_path, first, numbers, left_out):
    rows = [[n, *row] for n, row in zip(numbers, BINARY, strict=True)]
    table = read_table(write(tmp_path / "table.csv", [first, "x", "y"], rows), "y")
    assert table.names == (["x"] if left_out else [first or "column 1", "x"])
    assert any("it counts the rows" in note for note in table.notes) == left_out
    called = "Columns without a name are called 'column 1'."
    assert (called in table.notes) == (not first and not left_out)


def test_columns_without_a_name_are_numbered(tmp_path):
    rows = [[i, i % 2, i % 3, i % 5] for i in range(30)]
    path = write(tmp_path / "table.csv", ["", "y", "", "x"], rows)
    table = read_table(path, "y")
    assert table.names == ["column 3", "x"]
    assert "Columns without a name are called 'column 3'." in table.notes
    assert read_table(path, "column 3").target == "column 3"


@pytest.mark.parametrize("task", ["auto", "numbers", "counts"])
def test_infinite_values_of_a_target_are_named_with_their_row(tmp_path, task):
    rows = [[i, "inf" if i in (8, 11) else "" if i < 2 else i] for i in range(60)]
    path = write(tmp_path / "table.csv", ["x", "y"], rows)
    with pytest.raises(TableError, match=r"'y' of .*table\.csv holds 'inf' in row 9 .* 1 more"):
        read_table(path, "y", task)


WITH_UNITS = {
    "1.5%": "%", "-{} %": "%", "${}.50": "$", "{},5 €": "€", "{}kg": "kg", "+{} km/h": "km/h",
    "{} °C": "°C",
}  # fmt: skip
WITHOUT = ["2020-01-0{}", "P038{}", "10:3{}", "3-{}", "A", "{}.", "1,25{}", "{}e5", "N/A"]


@pytest.mark.parametrize("form", [*WITH_UNITS, *WITHOUT])
def test_numbers_with_a_unit_are_told(tmp_path, form):
    lines = ["x\tz\ty", *(f"{form.format(i % 7)}\t{i}\t{i % 2}" for i in range(40))]
    path = tmp_path / "units.tsv"
    path.write_text("\n".join(lines), encoding="utf-8")
    told = [note for note in read_table(path, "y").notes if "sign or a unit" in note]
    assert bool(told) == (form in WITH_UNITS)
    assert not told or f"'x' ({WITH_UNITS[form]})" in told[0]


def test_units_that_differ_are_categories(tmp_path):
    rows = [[f"{i % 3}{['st', 'nd', 'rd'][i % 3]}", i % 2] for i in range(60)]
    assert not read_table(write(tmp_path / "ranks.csv", ["x", "y"], rows), "y").notes


@pytest.mark.parametrize(("task", "message"), [("auto", "60 different"), ("numbers", "texts")])
def test_targets_with_a_unit_are_told_to_be_written_without(tmp_path, task, message):
    path = write(tmp_path / "table.csv", ["x", "y"], [[i, f"{i / 4}%"] for i in range(60)])
    with pytest.raises(TableError, match=f"{message}.* write them without '%'"):
        read_table(path, "y", task)


@pytest.mark.parametrize("step", [1, 0.5])
def test_numbers_left_out_as_rare_classes_are_told_the_other_tasks(tmp_path, step):
    tasks = "--task counts or --task numbers" if step == 1 else " --task numbers"
    rows = [[i, i % 2 * step] for i in range(40)] + [[1, 7 * step]] * 3
    notes = read_table(write(tmp_path / "rare.csv", ["x", "y"], rows), "y").notes
    assert any("are left out: {" in n and f"{tasks} keeps all rows" in n for n in notes)
    assert any(f"taken for classes; {tasks.strip()} takes" in note for note in notes)
    few = write(tmp_path / "few.csv", ["x", "y"], [[i, i % 15 * step] for i in range(60)])
    with pytest.raises(TableError, match=f"too few rows.*{tasks} keeps all rows"):
        read_table(few, "y")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "y"], "--data"),
        (["--data", "nowhere.csv", "--target", "y"], "Cannot read nowhere.csv"),
        (["--output", "nowhere/figure.png"], "folder of --output"),
        (["--output", "."], "--output . is a folder: name a file"),
        pytest.param(
            ["--output", "/proc/figure.png"],
            "--output /proc/figure.png cannot be written: ",
            marks=pytest.mark.skipif(not Path("/proc").is_dir(), reason="a folder of Linux"),
        ),
        (["--draws", "0"], "not a positive whole number"),
        (["--draws", "1.5"], "--draws: 1.5 is not a positive whole number"),
        (["--draws", "3"], "--draws: 3 is less than 4"),
        (["--step-sizes", "-1"], "--step-sizes"),
        (["--step-sizes", "small"], "--step-sizes: small is not a positive number or 'auto'"),
        (["--prior-scales", "0"], "0 is not a positive number"),
        (["--prior-scales", "wide"], "--prior-scales: wide is not a positive number"),
        (["--prior-scales", "1e300"], "--prior-scales: 1e300 is not between 1e-100 and 1e+100"),
        (["--prior-scales", "1e-300"], "1e-300 is not between 1e-100 and 1e+100"),
        (["--seed", "-1"], "--seed: -1 is not a whole number from 0 to 4294967295"),
        (["--seed", "4294967296"], "--seed: 4294967296 is not a whole number from 0 to"),
        (["--seed", "0.5"], "--seed: 0.5 is not a whole number"),
    ],
)
def test_arguments_that_cannot_be_used_end_with_status_2(tmp_path, monkeypatch, capsys, arguments,
                                                         message):  # fmt: skip
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def two_classes(path):
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    rows = np.column_stack([x, rng.normal(size=60), x + rng.normal(size=60) > 0])
    return write(path, ["x", "z", "y"], rows)


def test_a_figure_that_cannot_be_written_is_told_before_the_work(tmp_path, monkeypatch, capsys):
    figure = tmp_path / "figure.png"
    figure.write_text("old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # as for a write-protected file
    with pytest.raises(SystemExit) as caught:
        main(
            ["--data", two_classes(tmp_path / "two.csv"), "--target", "y", "--output", str(figure)]
        )
    assert caught.value.code == 2
    assert f"--output {figure} cannot be written: Permission denied" in capsys.readouterr().err
    assert figure.read_text() == "old"


def test_looking_for_the_place_of_the_figure_leaves_no_file(tmp_path):
    with pytest.raises(SystemExit):
        main(["--data", str(tmp_path / "no.csv"), "--output", str(tmp_path / "figure.png")])
    assert not list(tmp_path.iterdir())


def test_a_figure_that_is_not_saved_after_all_ends_with_status_1(tmp_path, monkeypatch, capsys):
    def save(fits, table, X, y, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_command, "save_regression_figure", save)
    monkeypatch.setattr(_command, "fit_regression", lambda *ignored: (None, None))
    monkeypatch.setattr(_command, "report_regression", lambda *ignored: None)
    data, figure = regression_table(tmp_path / "table.csv"), tmp_path / "figure.png"
    assert main(["--data", data, "--target", "y", "--output", str(figure)]) == 1
    assert "It was not saved" in capsys.readouterr().out


def test_a_reader_that_has_gone_ends_the_demonstration_quietly(tmp_path, monkeypatch, capfd):
    """As ``head -1`` goes after its line."""
    reading, writing = os.pipe()
    os.close(reading)
    data = two_classes(tmp_path / "two.csv")
    with os.fdopen(writing, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        options = ["--data", data, "--target", "y", "--output", str(tmp_path / "figure.png")]
        assert main(options) == 141
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("seed", [0, 4294967295])
def test_further_splits_have_seeds_that_numpy_takes(seed):
    seeds = _decision.seeds_of_splits(seed, 3)
    assert len(set(seeds)) == 3
    for one in seeds:
        np.random.RandomState(one)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--step-sizes", "1e9"], "--step-sizes 1000000000.0: for each prior and step size, a fit"),
        (["--draws", "1000000000000"], "The posterior draws do not fit into free memory"),
    ],
)
def test_fits_that_cannot_succeed_end_with_one_line(tmp_path, capsys, option, said):
    data, figure = two_classes(tmp_path / "two.csv"), tmp_path / "figure.png"
    options = [*QUICK, "1", *option, "--data", data, "--target", "y", "--output", str(figure)]
    with pytest.raises(SystemExit) as caught:
        main(options)
    assert caught.value.code == 1
    printed = capsys.readouterr().err
    assert printed.startswith(f"skbayes_sg: {said}")
    assert printed.count("\n") == 1
    assert not figure.exists()


def test_without_matplotlib_the_rest_is_done(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # importing it fails
    data, figure = two_classes(tmp_path / "two.csv"), tmp_path / "figure.png"
    assert main([*QUICK, "1", "--data", data, "--target", "y", "--output", str(figure)]) == 0
    assert "pip install matplotlib" in capsys.readouterr().out
    assert not figure.exists()


@pytest.mark.slow
def test_steps_that_are_too_large_are_shown_as_such(tmp_path, capsys):
    data, figure = two_classes(tmp_path / "two.csv"), tmp_path / "figure.png"
    options = [*FEW, "--prior-scales", "1", "--step-sizes", "auto", "1e9"]
    assert main([*options, "--data", data, "--target", "y", "--output", str(figure)]) == 0
    printed = capsys.readouterr().out
    assert "nan: fits that ended in an error" in printed
    assert "SamplerDivergedError (2 times" in printed
    assert is_png(figure)


def test_as_a_module(tmp_path):
    command = [sys.executable, "-m", "skbayes_sg", "--data", str(tmp_path / "no.csv")]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "Cannot read" in ended.stderr
    assert "Traceback" not in ended.stderr


def three_events(rng):
    X, y = rng.normal(size=(4000, 4)), np.zeros(4000, dtype=int)
    y[rng.choice(4000, 3, replace=False)] = 1
    return X, y


def many_rows(rng):
    X = rng.normal(size=(3000, 3))
    return X, (X[:, 0] + rng.normal(size=3000) > 0).astype(int)


CHOICES = {
    "independent draws": (many_rows, {}, "Independent draws of a warped Gaussian"),
    "lockstep": (three_events, {"random_state": 4}, "many chains in lockstep"),
    "exact": (many_rows, {"sampler": "hmc"}, "Hamiltonian Monte Carlo on all rows"),
    "stochastic": (many_rows, {"sampler": "baoab"}, "Kinetic Langevin dynamics"),
}


@pytest.mark.slow_except("independent draws")
@pytest.mark.parametrize("choice", CHOICES)
def test_every_diagnostic_is_explained(choice, capsys):
    table, parameters, sampler = CHOICES[choice]
    X, y = table(np.random.default_rng(1004))
    parameters = {"random_state": 0} | parameters
    clf = BayesianLogisticRegression(**parameters).fit(X, y)
    _report.report_choices([clf])
    printed = capsys.readouterr().out
    assert sampler in printed.replace("\n", " ")
    for name in clf.diagnostics_:
        assert _report.MEASURED[name].split()[0] in printed.split(name)[1].split("\n")[0]
    assert "\n\n" not in printed.split("was measured\n")[1].strip()


def test_modes_are_explained_by_one_text():
    assert _report._meaning("mode_share_1") == _report._meaning("mode_share_0")
    assert _report._meaning("mode_share_10") == _report.MEASURED["mode_share"]


@pytest.mark.slow
def test_named_posteriors_have_the_accuracy_of_the_fit():
    X, y = three_events(np.random.default_rng(1004))  # whose draws are repeated, by their weights
    bayes = make_pipeline(StandardScaler(), BayesianLogisticRegression(random_state=5)).fit(X, y)
    named = named_posterior(bayes, SimpleNamespace(names=["a", "b", "c", "d"]))
    posterior = bayes[-1].posterior_
    assert posterior.evidence["resampled_share"].max() < 0.8
    assert np.array_equal(named.summary()["ess_bulk"], posterior.summary()["ess_bulk"])


def test_a_column_with_the_name_of_the_intercept_keeps_it_apart():
    posterior = Posterior(np.zeros((1, 2, 2)), {"coef": (1,), "intercept": ()}, ["x0", "intercept"])
    assert renamed(posterior, ["intercept"] * 2).labels == ("intercept", "intercept (2)")


def test_costs_and_intervals_of_a_number_of_places():
    assert _decision.cost(10.0, 12.0) == 18.0
    assert _decision.cost(12.0, 10.0) == 2.0
    assert _decision.judged(np.arange(101.0), 97.0) == (False, 63.0)
    assert _decision.judged(np.arange(101.0), 90.0) == (True, 0.0)


def test_what_was_gained_has_its_standard_error():
    found = np.array([[[0.0, 30.0], [1.0, 10.0]], [[1.0, 20.0], [1.0, 12.0]]])
    said = _decision._gained(found, "ill", 60)
    assert "posterior held the number of 'ill' in 100% (standard error 0%)" in said
    assert "that of the point estimate in 50% (50%)" in said
    assert "cost 11.0 and by the point estimate 25.0: 14.0 saved, standard error 6.0" in said


def test_totals_of_a_posterior_vary_more_than_those_of_a_point():
    rng = np.random.default_rng(0)
    shared = np.broadcast_to(rng.beta(5.0, 5.0, (4000, 1)), (4000, 100))
    wide, narrow = (_decision.totals(p, rng) for p in (shared, np.full((4000, 100), 0.5)))
    assert narrow.var() == pytest.approx(25.0, rel=0.15)
    assert wide.var() == pytest.approx(25.0 + 1e4 * 0.25 / 11.0 - 25.0 / 11.0, rel=0.15)
