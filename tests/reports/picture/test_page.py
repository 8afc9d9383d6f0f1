"""Page of a violation: small, self-contained, and safe for hostile text. Chromium shows it and handles its keys."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from linearizability.check import judge
from linearizability.history.reader import open_history
from linearizability.judgement import Evidence
from linearizability.models.compare_and_set import compare_and_set
from linearizability.operation import Operation
from linearizability.verify import check
from reports.picture.page import SIZE_MAX, anomaly_page, verification_page
from tests.linearizability.anomalies.histories import Tables
from tests.reports.page import Page

EXAMPLES = Path(__file__).parents[3] / "examples" / "histories"
HOSTILE = "</script><script>alert(1)</script><img src=https://example.org/x onerror=alert(1)>\x1b[31m"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def lost_write():
    run_dir = EXAMPLES / "lost-write"
    anomaly = judge(run_dir).anomalies[0]
    return anomaly_page(open_history(run_dir), anomaly.name, anomaly.evidence[0])


def generic(size=60, text="x"):
    history = [
        Operation(
            op_id=n, process=n % 4, input=("write", f"{text}{n}"), output=None, invoke_ns=n * 9, complete_ns=n * 9 + 8
        )
        for n in range(size)
    ]
    bad = Operation(op_id=size, process=4, input=("read",), output=text, invoke_ns=size * 9, complete_ns=size * 9 + 5)
    return verification_page(check([*history, bad], compare_and_set()))


def hostile(tmp_path):
    history = Tables(run_id=HOSTILE, topics={HOSTILE: {}})
    sent = history.op(0, "produce", 0, 1, "info", error=HOSTILE, txn_id=HOSTILE, txn_seq=1)
    history.record(sent, 0, "send", HOSTILE, 0, None, 1, key=HOSTILE)
    history.add("faults", fault_id=1, kind=HOSTILE, target=HOSTILE, inject_ns=0)
    history.add("states", asked_ns=0, answered_ns=1, source=HOSTILE, node=1, topic=HOSTILE, partition=0, error=HOSTILE)
    history.write(tmp_path)
    return anomaly_page(open_history(tmp_path), HOSTILE, Evidence((sent,), HOSTILE, 0, 3, 1, HOSTILE))


@pytest.fixture(params=["anomaly", "generic", "hostile"])
def html(request, tmp_path):
    return {"anomaly": lost_write, "generic": generic, "hostile": lambda: hostile(tmp_path)}[request.param]()


def test_page_is_well_formed_and_fetches_nothing(html):
    page = Page(html)
    assert page.open == []
    assert page.fetched == []
    assert len(set(page.ids)) == len(page.ids)
    styles = "".join(re.findall(r"<style>(.*?)</style>", html, re.DOTALL))
    scripts = "".join(re.findall(r"<script>(.*?)</script>", html, re.DOTALL))
    assert set(re.findall(r"url\(([^)]*)\)", styles)) <= {"#hatch", "#torn"}
    assert "@import" not in styles
    assert not re.search(
        r"\bimport\b|fetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|innerHTML|https?:", scripts
    )
    assert scripts


def test_text_of_a_history_is_escaped(tmp_path):
    html = hostile(tmp_path)
    assert "<script>alert" not in html
    assert "<img" not in html
    assert "\x1b" not in html
    assert html.count("</script>") == 2


def test_no_information_depends_on_colour(tmp_path):
    page = Page(lost_write())
    for word in (
        "✗ poll 65→74, 8 records",
        "● produce 4 @ 65-68",
        "⚡ delay 2->3 200ms",
        "▶ 65",
        "? unknown",
        "⊘ failed",
    ):
        assert word in page.text
    assert "? produce 1" in Page(hostile(tmp_path)).text
    assert "prefers-color-scheme: dark" in page.text


def test_page_describes_its_keyboard_control():
    html = generic()
    for text in ("ArrowLeft", "ArrowRight", "step through operations", "jump to the first bad operation"):
        assert text in html
    assert 'tabindex="0"' in html


@pytest.mark.parametrize("text", ["v", "long " * 400, "\u20ac<&" * 300])
def test_page_is_small_for_any_history(text):
    assert len(generic(300, text).encode()) < SIZE_MAX


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: the page is not opened in a browser")
@pytest.mark.parametrize(("make", "scheme"), [(lost_write, "light"), (generic, "dark")])
def test_browser_shows_the_page(make, scheme, tmp_path):
    page, shot = tmp_path / "page.html", tmp_path / "page.png"
    page.write_text(make(), encoding="utf-8")
    subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--force-device-scale-factor=1",
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--window-size=900,620",
            f"--screenshot={shot}",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    colours = colours_of(shot)
    background, bad = ((16, 20, 27), (86, 28, 37)) if scheme == "dark" else ((247, 248, 250), (251, 213, 216))
    assert max(colours, key=colours.get) in {background, (24, 30, 40) if scheme == "dark" else (255, 255, 255)}
    assert colours[background] > 10_000
    assert colours.get(bad, 0) > 300, "the first bad operation is not visible"
    assert len(colours) > 30


WALK = """<script>
const steps = [];
for (const key of ["", "ArrowLeft", "ArrowLeft", "ArrowRight", "Home", "End", "b", "2"]) {
  if (key) dispatchEvent(new KeyboardEvent("keydown", {key}));
  const order = document.querySelector("[name=order]:checked").value;
  steps.push(document.getElementById("details-title").textContent.split(" ")[1] + "/" + order);
}
document.title = steps.join(" ");
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: the page is not opened in a browser")
def test_keys_step_through_the_operations(tmp_path):
    history = [
        Operation(op_id=1, process=1, input=("write", 1), output=None, invoke_ns=0, complete_ns=9),
        Operation(op_id=2, process=2, input=("write", 2), output=None, invoke_ns=1, complete_ns=10),
        Operation(op_id=3, process=1, input=("read",), output=3, invoke_ns=11, complete_ns=14),
        Operation(op_id=4, process=2, input=("read",), output=1, invoke_ns=12, complete_ns=15),
    ]
    page = tmp_path / "page.html"
    page.write_text(verification_page(check(history, compare_and_set())) + WALK, encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    shown = subprocess.run([CHROMIUM, *flags, page.as_uri()], check=True, capture_output=True, timeout=60, text=True)
    assert re.search(r"<title>(.*?)</title>", shown.stdout)[1] == "3/0 2/0 1/0 2/0 1/0 4/0 3/0 3/1"


def colours_of(png):
    """Count the pixels of each colour in a PNG file (8-bit RGB or RGBA, not interlaced)."""
    import zlib
    from collections import Counter

    data = png.read_bytes()
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    depth, colour_type, interlaced = data[24], data[25], data[28]
    assert (depth, interlaced) == (8, 0)
    pixel_bytes = {2: 3, 6: 4}[colour_type]
    packed, position = b"", 8
    while position < len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        if data[position + 4 : position + 8] == b"IDAT":
            packed += data[position + 8 : position + 8 + length]
        position += length + 12
    raw = zlib.decompress(packed)
    stride = width * pixel_bytes
    previous = bytearray(stride)
    counts = Counter()
    for row in range(height):
        begin = row * (stride + 1)
        filter_type, line = raw[begin], bytearray(raw[begin + 1 : begin + 1 + stride])
        _unfilter(filter_type, line, previous, pixel_bytes)
        counts.update(zip(line[0::pixel_bytes], line[1::pixel_bytes], line[2::pixel_bytes], strict=True))
        previous = line
    return counts


def _unfilter(filter_type, line, previous, pixel_bytes):
    """Restore the bytes of a scan line in place. `previous` is the restored line above it."""
    for index in range(len(line)):
        left = line[index - pixel_bytes] if index >= pixel_bytes else 0
        above, corner = previous[index], previous[index - pixel_bytes] if index >= pixel_bytes else 0
        if filter_type == 1:
            line[index] = (line[index] + left) & 255
        elif filter_type == 2:
            line[index] = (line[index] + above) & 255
        elif filter_type == 3:
            line[index] = (line[index] + (left + above) // 2) & 255
        elif filter_type == 4:
            guess = left + above - corner
            nearest = min((left, above, corner), key=lambda value: abs(guess - value))
            line[index] = (line[index] + nearest) & 255
