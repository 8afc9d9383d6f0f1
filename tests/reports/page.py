"""HTML parser for tests of pages."""

from html.parser import HTMLParser

VOID = {"meta", "input", "br", "hr", "img", "link", "wbr"}
ADDRESSES = ("src", "href", "xlink:href", "data", "action", "poster", "srcset", "background", "formaction")


class Page(HTMLParser):
    """Parser that collects ids, links, resources that a browser would fetch, unclosed elements, and text.

    It fails if an end tag does not match, or if an element has an event handler.
    """

    def __init__(self, html):
        super().__init__()
        self.ids, self.hrefs, self.fetched, self.open, self.text = [], [], [], [], ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "a":
            self.hrefs.append(values["href"])
        for name in ADDRESSES:
            if not (values.get(name) or "#").startswith("#"):
                self.fetched.append(f"{tag} {name}={values[name]}")
        if tag in {"link", "iframe", "object", "embed", "base", "img", "image", "use"}:
            self.fetched.append(tag)
        assert not any(name.startswith("on") for name in values), values

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
