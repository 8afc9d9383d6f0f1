"""Parser of report pages for tests: it collects ids, links and text, and finds unclosed and fetching elements."""

from html.parser import HTMLParser

VOID = {"meta", "input", "br", "hr", "img", "link", "wbr"}


class Page(HTMLParser):
    """Parser that collects ids, links, text and unclosed elements."""

    def __init__(self, html):
        super().__init__()
        self.ids, self.hrefs, self.outside, self.open, self.text = [], [], [], [], ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "a":
            self.hrefs.append(values["href"])
        self.outside += [values[name] for name in ("src", "action", "data", "poster") if name in values]
        assert tag not in {"link", "iframe", "img", "object"}, f"<{tag}> would fetch something"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
