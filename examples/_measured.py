"""Tables and numbers of pages, from the rows that the benchmarks have written.

A page says which rows of examples/benchmarks/results it shows, and how: `lines` fills a template
such as ``{bayes/lbfgs:.2g}`` with the values of each row. In the README a table stands below the
comment that makes it, and `filled` makes it again::

    <!-- measured speed | {problem} | {bayes/lbfgs:.2g} | -->
"""

import json
import re
from pathlib import Path

RESULTS = Path(__file__).parent / "benchmarks" / "results"
SHOWN = re.compile(r":measured:`(\w+) ?([^|`]*)\|([^`]*)`")  # by roles of pages
TABLE = re.compile(r"(<!-- measured (\w+)([^|\n]*)(\|.*\|) -->\n(?:\|.*\n){2})((?:\|.*\n)*)")


class Row(dict):
    """Values of a row; where a template asks for what it has not, there is nothing."""

    def __missing__(self, key):
        return Nothing()


class Nothing:
    """Is written as nothing, whatever the format."""

    def __format__(self, how):
        return ""


def rows(name, where=""):
    """Rows of a benchmark, a dict each; some of them, as in ``data=kos, problem!=pima``."""
    found = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["rows"]
    for key, sign, value in re.findall(r"([^=!,]+?)(!?=)([^,]+)", where):
        wanted = sign == "="
        found = [row for row in found if (str(row.get(key.strip())) == value.strip()) == wanted]
    return found


def lines(name, template, where=""):
    """The template, filled with the values of each row."""
    return [template.format_map(Row(row)) for row in rows(name, where)]


def filled(text):
    """A page in Markdown, its tables made again; each begins with two lines of titles."""

    def made(found):
        head, name, where, template, _ = found.groups()
        if not (RESULTS / f"{name}.json").exists():
            return found[0]
        return head + "".join(f"{line}\n" for line in lines(name, template, where))

    return TABLE.sub(made, text)
