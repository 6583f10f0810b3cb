"""Names in backticks lead to the reference, wherever the object is documented.

`Posterior.check` finds ``skbayes_sg.posterior.Posterior.check``, and `GridSearchCV` that of
scikit-learn. A page that names a class which is found nowhere causes a warning, and so an error of
`make docs`. Names in small letters are those of parameters and attributes, and lead nowhere.
"""

import re

from docutils import nodes
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

OBJECT = re.compile(r"(?:skbayes_sg|sklearn)\.[\w.]+|[A-Z]\w*[a-z]\w*(?:\.\w+)?|[A-Z]{3,}")
OF_PYTHON = {"KeyboardInterrupt", "MemoryError", "TypeError", "ValueError"}
LOG = logging.getLogger(__name__)


def _known(name, names):
    """The shortest of the dotted names that end with a name, or None."""
    ends = [name.removeprefix("skbayes_sg.")]
    if name.startswith("skbayes_sg."):  # a module may show what another one documents
        ends.append(name.rpartition(".")[2])
    for end in ends:
        found = [known for known in names if f".{known}".endswith(f".{end}")]
        if found:
            return min(found, key=len)
    return None


def _of_scikit_learn(env, name, contnode):
    """A link to scikit-learn's page of a class or function, or None."""
    for kind in ("py:class", "py:function"):
        there = env.intersphinx_inventory.get(kind, {})
        found = _known(name, there)
        if found is not None:
            return nodes.reference("", "", contnode, refuri=there[found].uri, internal=False)
    return None


def resolve(app, env, node, contnode):
    """A link to the object that a name may mean; a warning if a page names none."""
    name = node["reftarget"].removesuffix("()")
    if node.get("refdomain") != "py" or not OBJECT.fullmatch(name) or name in OF_PYTHON:
        return None
    objects = env.get_domain("py").objects
    found = None if name.startswith("sklearn.") else _known(name, objects)
    if found is not None:
        page, label = objects[found].docname, objects[found].node_id
        return make_refnode(app.builder, node["refdoc"], page, label, contnode, found)
    link = _of_scikit_learn(env, name, contnode)
    if link is None and (node.source or "").endswith(".rst"):
        LOG.warning("nothing that is documented is named %s", name, location=node)
    return link


def setup(app):
    app.connect("missing-reference", resolve, priority=900)  # after intersphinx
    return {"parallel_read_safe": True}
