"""Configuration of Sphinx. The build needs no network, and neither do the pages that it makes."""

import importlib.util
import os
import sys
import warnings
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent / "_extensions"))
os.environ.setdefault("MPLBACKEND", "Agg")

import skbayes_sg

project = "skbayes_sg"
author = "the skbayes_sg developers"
release = version = skbayes_sg.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode", "numpydoc"]
extensions += ["sphinx.ext.intersphinx", "sphinx_gallery.gen_gallery", "sphinx_copybutton"]
extensions += ["measured", "references"]
exclude_patterns = ["_build", "auto_examples/**/*.ipynb", "auto_examples/**/*.codeobj.json"]
templates_path = ["_templates"]
default_role = "py:obj"
smartquotes = False  # quoted strings are to be copied

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say them
toc_object_entries_show_parents = "hide"  # the column "On this page" is narrow
autodoc_default_options = {
    # written by scikit-learn, with references into its own documentation
    "exclude-members": (
        "get_metadata_routing, set_callbacks, set_fit_request, set_partial_fit_request, "
        "set_predict_request, set_predict_proba_request, set_score_request"
    ),
}
autodoc_mock_imports = [] if importlib.util.find_spec("torch") else ["torch"]  # an optional extra
numpydoc_show_class_members = False  # the template of classes lists them

# What pages refer to of scikit-learn, so that the build needs no network: `_inventories/make.py`.
intersphinx_mapping = {
    "sklearn": ("https://scikit-learn.org/stable/", "_inventories/sklearn.inv"),
}
intersphinx_disabled_reftypes = ["std:*"]

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

GALLERY = "../examples/gallery"
sphinx_gallery_conf = {
    "examples_dirs": GALLERY,
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"\.py$",
    "subsection_order": [
        *(f"{GALLERY}/{name}" for name in ("decisions", "models", "checking")),
        "*",
    ],
    "within_subsection_order": "FileNameSortKey",
    "nested_sections": False,
    "plot_gallery": True,
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "thumbnail_size": (520, 364),
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "reset_modules": ("matplotlib",),
    "doc_module": ("skbayes_sg",),
    "backreferences_dir": "auto_examples/backreferences",
    "inspect_global_variables": False,
}
warnings.filterwarnings("ignore", module="sphinx_gallery")

html_theme = "pydata_sphinx_theme"
html_title = project
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {"index": []}
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_nav_level": 1,
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
