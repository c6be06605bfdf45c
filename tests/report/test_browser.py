"""The page in a real browser: no errors, filters, keyboard, hostile ids, ten thousand findings."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.config import Config
from pipeline.report.files import write_together
from pipeline.report.page import page_files
from tests import stored_output
from tests.report.hostile import corpus
from tests.stored_output import RUN_ID, finding, summary

webdriver = pytest.importorskip("selenium.webdriver")
pytestmark = pytest.mark.slow
CODES = ("hanging_transaction", "duplicate_batch", "zombie_write")
Open = Callable[[Path], Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium; skips when the machine has none."""
    binary = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        reason = "no chromium and chromedriver on PATH: the page was not opened in a browser"
        print(reason)
        pytest.skip(reason)
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield opened
    opened.quit()


def _written(
    root: Path,
    findings: list[dict[str, Any]],
    assets: str = "inline",
    rows: stored_output.Tables | None = None,
    **changed: Any,
) -> Path:
    stored_output.write(root, rows or stored_output.tables(), summary())
    directory = root / "runs" / RUN_ID
    by_severity = {
        name: sum(one["severity"] == name for one in findings) for name in ("critical", "minor")
    }
    counts = summary()["counts"] | {"by_severity": by_severity, "by_status": {"new": len(findings)}}
    about = summary(counts=counts, verdict="failed", **changed)
    settings = Config.model_validate({"max_examples": 100_000, "report": {"html_assets": assets}})
    files = page_files(str(root), about, findings, settings)
    write_together(directory, {name: [text] for name, text in files.items()})
    return directory / "report.html"


def _many(count: int) -> list[dict[str, Any]]:
    return [
        finding(
            finding_id=f"{number:064x}",
            code=CODES[number % 3],
            topic=f"topic-{number % 50}",
            partition=number % 7,
            first_offset=number,
            severity="critical" if number < count // 2 else "minor",
            explanation="Producer 7 wrote it, and no marker ends it. " * 3,
        )
        for number in range(count)
    ]


def _errors(browser: Any) -> list[str]:
    return [one["message"] for one in browser.get_log("browser") if one["level"] == "SEVERE"]


def _visible(browser: Any) -> int:
    script = "return [...document.querySelectorAll('.finding')].filter(one => !one.hidden).length"
    return int(browser.execute_script(script))


def _busy_s(browser: Any) -> float:
    found = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(one["value"] for one in found if one["name"] == "TaskDuration"))


def _choose(browser: Any, name: str, value: str) -> None:
    script = "const one = document.getElementById(arguments[0]); one.value = arguments[1]; "
    script += "one.dispatchEvent(new Event('change'))"
    browser.execute_script(script, name, value)


def _search(browser: Any, text: str) -> None:
    field = browser.find_element("id", "search")
    field.clear()
    field.send_keys(text)
    time.sleep(0.4)


def test_filters_and_order(browser: Any, tmp_path: Path) -> None:
    browser.get(_written(tmp_path, _many(60)).as_uri())
    assert _errors(browser) == []
    assert _visible(browser) == 60
    _choose(browser, "by-code", "zombie_write")
    assert _visible(browser) == 20
    _choose(browser, "by-severity", "minor")
    assert _visible(browser) == 10
    _choose(browser, "by-code", "")
    _choose(browser, "by-severity", "")
    _choose(browser, "by-topic", "topic-3")
    assert _visible(browser) == 2
    _choose(browser, "by-topic", "")
    _search(browser, f"{41:064x}")
    assert _visible(browser) == 1
    assert browser.find_element("id", "count").text == "1 of 60 shown"
    _search(browser, "nothing holds this")
    assert _visible(browser) == 0
    _search(browser, "topic-3 zombie_write")
    wanted = [one for one in _many(60) if "topic-3" in one["topic"] and one["code"] == CODES[2]]
    assert _visible(browser) == len(wanted)
    browser.execute_script("document.getElementById('search').value = ''")
    _choose(browser, "sort", "code")
    first = browser.execute_script("return document.querySelector('.finding').dataset.code")
    assert first == "duplicate_batch"
    assert _errors(browser) == []


def test_everything_is_reached_by_keyboard(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser.get(_written(tmp_path, _many(2)).as_uri())
    reached = []
    for _ in range(40):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        element = browser.switch_to.active_element
        reached.append(element.get_attribute("id") or element.tag_name)
        if element.tag_name == "summary":
            break
    assert {"search", "by-code", "sort", "unfold"} <= set(reached)
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    assert browser.execute_script("return document.querySelector('.finding').open") is True
    ActionChains(browser).send_keys(Keys.TAB, Keys.TAB).perform()
    assert browser.switch_to.active_element.tag_name in ("summary", "button")


def test_hostile_ids_are_harmless(browser: Any, tmp_path: Path) -> None:
    texts = [text.encode("utf-8", "backslashreplace").decode() for text in corpus()[:-1]]
    found = [
        finding(
            finding_id=f"{number:064x}", topic=text, transactional_id=text, title=text, advice=text
        )
        for number, text in enumerate(texts)
    ]
    page = _written(tmp_path, found)
    browser.get(page.as_uri())
    browser.execute_script(
        "document.querySelectorAll('details').forEach(one => { one.open = true })"
    )
    time.sleep(0.5)
    assert _errors(browser) == []
    assert browser.execute_script("return document.scripts.length") == 1
    assert (
        browser.execute_script(
            "return document.querySelectorAll('img, iframe, a[href^=java]').length"
        )
        == 0
    )
    _search(browser, "onerror")
    assert _visible(browser) > 0
    assert browser.current_url == page.as_uri()


def test_a_linked_finding_is_open(browser: Any, tmp_path: Path) -> None:
    page = _written(tmp_path, _many(3))
    browser.get("about:blank")
    browser.get(f"{page.as_uri()}#f-{2:064x}"[: len(page.as_uri()) + 15])
    assert browser.execute_script("return document.querySelectorAll('.finding[open]').length") == 1


def test_assets_beside_the_page(browser: Any, tmp_path: Path) -> None:
    page = _written(tmp_path, _many(3), "dir")
    assert (page.parent / "report.css").exists()
    assert "<style" not in page.read_text(encoding="utf-8")
    browser.get(page.as_uri())
    assert _errors(browser) == []
    assert browser.execute_script("return document.getElementById('filters').hidden") is False


def test_it_is_readable_without_style_and_script(tmp_path: Path, browser: Any) -> None:
    page = _written(tmp_path, _many(3), "dir")
    (page.parent / "report.css").unlink()
    (page.parent / "report.js").unlink()
    browser.get(page.as_uri())
    text = browser.find_element("tag name", "main").text
    for part in (
        "FAILED",
        "What changed",
        "could not be judged",
        "Findings",
        "Exactly-once health",
    ):
        assert part in text
    assert browser.execute_script("return document.getElementById('filters').offsetHeight") == 0
    assert len(_errors(browser)) == 2, "the two files that are gone"


@pytest.mark.parametrize("width", [400, 1200])
def test_nothing_is_wider_than_the_screen(browser: Any, tmp_path: Path, width: int) -> None:
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(_written(tmp_path, [finding(topic="t" * 249, title="x" * 300)]).as_uri())
    browser.execute_script(
        "document.querySelectorAll('details').forEach(one => { one.open = true })"
    )
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= width


def _opened_in_s(browser: Any, page: Path) -> float:
    """Processor time of the page's own thread: what else the machine does is not the page's fault."""
    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    times = []
    for _ in range(3):
        browser.get("about:blank")
        before = _busy_s(browser)
        browser.get(page.as_uri())
        times.append(_busy_s(browser) - before)
    browser.execute_cdp_cmd("Performance.disable", {})
    print(f"{page.stat().st_size / 1e6:.1f} MB, open in {min(times):.2f} s of processor time")
    return min(times)


def test_ten_thousand_findings_open_quickly(browser: Any, tmp_path: Path) -> None:
    page = _written(tmp_path, _many(10_000))
    assert page.stat().st_size < 10_000_000
    assert 0 < _opened_in_s(browser, page) < 2
    before = time.monotonic()
    _choose(browser, "by-code", "zombie_write")
    _search(browser, "topic-3")
    assert _visible(browser) > 0
    assert time.monotonic() - before < 5


def test_five_thousand_partitions_open_quickly(browser: Any, tmp_path: Path) -> None:
    """Each partition a topic of its own with a long name, an open run, doubts and two findings with a timeline."""
    rows = stored_output.tables()
    run, replica = rows["partition_history"][0], rows["replica"][0]
    names = [f"orders-by-customer-and-region-{number:04d}" for number in range(5_000)]
    rows["partition_history"] = [
        run | {"topic": name, "partition": 0, "producer_id": 7 + number, "replica_id": 100 + number}
        for number, name in enumerate(names)
    ]
    rows["partition_history"] += [
        row | {"first_offset": 5, "is_open": True, "marker_offset": None, "marker_ms": None}
        for row in rows["partition_history"]
    ]
    rows["replica"] = [
        replica | {"replica_id": 100 + number, "topic": name, "partition": 0, "log_end_offset": 9}
        for number, name in enumerate(names)
    ]
    found = [
        finding(
            finding_id=f"{number:064x}", topic=names[number % 5_000], producer_id=7 + number % 5_000
        )
        for number in range(10_000)
    ]
    doubts = [f"{name}-0: __transaction_state-3 was not copied" for name in names]
    page = _written(tmp_path, found, rows=rows, could_not_judge=doubts)
    text = page.read_text(encoding="utf-8")
    assert "5,000 partitions are behind" in text
    assert page.stat().st_size < 10_000_000
    assert 0 < _opened_in_s(browser, page) < 2
    _choose(browser, "by-topic", names[17])
    assert _visible(browser) == 2
    assert _errors(browser) == []
