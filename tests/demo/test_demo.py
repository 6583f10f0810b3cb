"""The demonstration: on its own data, on tables of others, and on tables that cannot be used."""

import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.demo import _decision, _report, main
from skbayes_sg.demo._models import named_posterior
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "y"], "--data"),
        (["--data", "nowhere.csv", "--target", "y"], "Cannot read nowhere.csv"),
        (["--output", "nowhere/figure.png"], "folder of --output"),
        (["--draws", "0"], "not a positive whole number"),
        (["--step-sizes", "-1"], "--step-sizes"),
        (["--prior-scales", "0"], "0 is not a positive number"),
    ],
)
def test_arguments_that_cannot_be_used_end_with_status_2(tmp_path, monkeypatch, capsys, arguments,
                                                         message):  # fmt: skip
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def two_classes(path):
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    rows = np.column_stack([x, rng.normal(size=60), x + rng.normal(size=60) > 0])
    return write(path, ["x", "z", "y"], rows)


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
