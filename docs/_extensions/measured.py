"""Tables and numbers that benchmarks have measured; see examples/_measured.py.

The directive has a line for each column, its title and its template, the role one template::

    .. measured:: topics corpus=kos, topics=20

       Method: {method}
       Perplexity: {perplexity:.0f}

    it takes :measured:`topics method=BayesianLDA | {processor seconds:.0f}` seconds
"""

import sys
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import _measured


class Measured(SphinxDirective):
    """A table of all rows of a benchmark."""

    required_arguments, final_argument_whitespace, has_content = 1, True, True

    def run(self):
        name, _, where = self.arguments[0].partition(" ")
        columns = [line.split(": ", 1) for line in self.content if line.strip()]
        cells = [_measured.lines(name, template, where) for _, template in columns]
        if not cells[0]:
            raise self.error(f"no rows: {self.arguments[0]}")
        table = [[title for title, _ in columns], *zip(*cells, strict=True)]
        text = [".. list-table::", "   :header-rows: 1", ""]
        for row in table:
            text += [f"   {'*' if k == 0 else ' '} - {cell}" for k, cell in enumerate(row)]
        self.env.note_dependency(str(_measured.RESULTS / f"{name}.json"))
        found = nodes.Element()
        self.state.nested_parse(StringList(text, source=name), self.content_offset, found)
        return found.children


def number(role, rawtext, text, lineno, inliner, options=None, content=()):
    """The first row of a benchmark, in a template."""
    chosen, _, template = text.partition("|")
    name, _, where = chosen.strip().partition(" ")
    return [nodes.Text(_measured.lines(name, template.strip(), where)[0])], []


def setup(app):
    app.add_directive("measured", Measured)
    app.add_role("measured", number)
    return {"parallel_read_safe": True}
