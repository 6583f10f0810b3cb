"""Configuration of Sphinx. The build needs no network, and neither do the pages that it makes."""

import importlib.util
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

sys.path.insert(0, str(Path(__file__).parents[1]))

import skbayes_sg

project = "skbayes_sg"
author = "the skbayes_sg developers"
release = version = skbayes_sg.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode", "numpydoc"]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
default_role = "py:obj"
smartquotes = False  # quoted strings are to be copied

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_default_options = {
    # written by scikit-learn, with references into its own documentation
    "exclude-members": (
        "get_metadata_routing, set_callbacks, set_fit_request, set_partial_fit_request, "
        "set_predict_request, set_predict_proba_request, set_score_request"
    ),
}
autodoc_mock_imports = [] if importlib.util.find_spec("torch") else ["torch"]  # an optional extra
numpydoc_show_class_members = False  # the template of classes lists them

html_theme = "pydata_sphinx_theme"
html_title = project
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
}
html_math_renderer = "mathml"


def _inline_math(translator, node):
    translator.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block_math(translator, node):
    translator.body.append(tex2mathml(node.astext(), as_block=True))
    raise nodes.SkipNode


def setup(app):
    """Formulas as MathML, which browsers show without a script from elsewhere."""
    app.add_html_math_renderer("mathml", (_inline_math, None), (_block_math, None))
