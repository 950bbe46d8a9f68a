"""How large the HTML file of a long run is, how long it takes to write, and how long Chromium takes to show it.

    python benchmarks/report_html.py [--steps 5000]

The run is made up: the log of `benchmarks/report.py` without the lines between its steps.  Chromium (Debian package
``chromium``) loads the file three times; what is told is the time from the start of the navigation to the load event,
and to the first frame after it.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from benchmarks.report import write
from tests.report.browser import CHROMIUM, browser
from verlwatch import report
from verlwatch.report.html import render

TIMES = """new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() =>
  done([performance.getEntriesByType('navigation')[0].loadEventEnd, performance.now()]))))"""


async def _shown(path: Path, folder: Path) -> None:
    async with browser(folder / "profile") as page:
        for width in (1280, 1280, 390):
            await page.open(path, width=width)
            loaded, drawn = await page.run(TIMES)
            print(f"{f'Chromium, {width} px':<24}{loaded / 1000:8.2f} s loaded{drawn / 1000:8.2f} s drawn")


def main() -> None:
    """Measures, and prints a line for each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        log, path = folder / "train.log", folder / "report.html"
        write(log, args.steps, args.steps * 9000)
        model = report.build(report.read([log], "train"), report.Words("en"))
        began = time.perf_counter()
        text = render(model)
        took = time.perf_counter() - began
        path.write_text(text, encoding="utf-8")
        print(f"{args.steps} steps: {path.stat().st_size / 1e6:.2f} MB of HTML, drawn in {took:.2f} s")
        if CHROMIUM:
            asyncio.run(_shown(path, folder))
        else:
            print("no Chromium here: loading was not measured")


if __name__ == "__main__":
    main()
