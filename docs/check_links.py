"""Checks the built pages: every local link and picture leads somewhere, and the landing page far.

    python docs/check_links.py docs/_build/html

`make docs` runs it. `WANTED` are the answers that a reader who knows scikit-learn looks for; each
must be at most two clicks away from the landing page, by the links of its text.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

WANTED = {
    "how to fit a table with classes": "getting_started.html",
    "how to know whether to trust it": "trusting_a_posterior.html",
    "how long a million rows take": "auto_examples/large/a_million_rows.html",
    "how to use a GPU": "networks_in_torch.html",
    "how to use a cluster": "auto_examples/large/dask_cluster.html",
    "how to cite": "citing.html",
}
CLICKS = 2


class Page(HTMLParser):
    """Targets of a page, and its links: (address, whether it stands in the article)."""

    def __init__(self, path):
        super().__init__()
        self.targets, self.links, self._in_article = {""}, [], False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self._in_article |= tag == "article"
        self.targets |= {found[key] for key in ("id", "name") if found.get(key)}
        for key in ("href", "src"):
            if found.get(key):
                self.links.append((found[key], self._in_article and tag == "a"))

    def handle_endtag(self, tag):
        self._in_article &= tag != "article"


def target(path, address):
    """(file, anchor) of a local address on a page; None if it leads elsewhere."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return None
    file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    return file, unquote(parts.fragment)


def broken(pages):
    """Lines about links that lead nowhere."""
    for path, page in pages.items():
        for address, _ in page.links:
            found = target(path, address)
            if found is None:
                continue
            file, anchor = found
            missing = not file.is_file() if file not in pages else anchor not in pages[file].targets
            if missing:
                yield f"{path.name}: {address}"


def reached(pages, start):
    """Pages by the number of clicks in articles that lead to them."""
    clicks, edge = {start: 0}, [start]
    for n in range(1, CLICKS + 1):
        links = [(path, a) for path in edge for a, in_text in pages[path].links if in_text]
        found = {target(path, address) for path, address in links} - {None}
        edge = [file for file, _ in found if file in pages and file not in clicks]
        clicks |= dict.fromkeys(edge, n)
    return clicks


def main(folder):
    root = Path(folder).resolve()
    paths = [path for path in sorted(root.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: Page(path) for path in paths}
    wrong = sorted(set(broken(pages)))
    clicks = reached(pages, root / "index.html")
    far = [f"{what}: {page}" for what, page in WANTED.items() if root / page not in clicks]
    for title, lines in (("Broken links:", wrong), (f"Not within {CLICKS} clicks:", far)):
        if lines:
            print(title, *lines, sep="\n  ")
    n_links = sum(len(page.links) for page in pages.values())
    print(f"{len(pages)} pages, {n_links} links: {len(wrong)} broken.")
    return bool(wrong or far)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
