"""The page in a real browser: accessible, filterable, usable by keyboard, inert under attack, silent on the network.

Runs where Chromium, its driver and the packages for it are installed; AXE_CORE names a newer axe.min.js than the package has.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from klaudit.model import Report, Withheld
from klaudit.reports import View
from tests.reports.html.conftest import HOSTILE, hostile, hostile_view, text_of

pytest.importorskip("selenium", reason="selenium is not installed")
axe_core_python = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
CHROMIUM, DRIVER = shutil.which("chromium") or shutil.which("chrome"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no Chromium with its driver on this machine")

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
)  # fmt: skip
WATCH = """
window.seen = [];
document.addEventListener('securitypolicyviolation', (event) => window.seen.push(event.violatedDirective + ' ' + event.blockedURI));
window.alert = (words) => window.seen.push('alert ' + words);
window.addEventListener('error', (event) => window.seen.push('error ' + event.message));
"""

Browser = Any


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    """Wide, light, with scripts."""
    _screen(chromium, 1280)
    _theme(chromium, "light")
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    chromium.get("about:blank")
    for log in ("browser", "performance"):
        chromium.get_log(log)
    return chromium


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Callable[..., Browser]:
    def opened(report: Report, view: View, fragment: str = "") -> Browser:
        file = tmp_path / "report.html"
        file.write_text(text_of(report, view), encoding="ascii")
        browser.get(file.as_uri() + fragment)
        return browser

    return opened


def _screen(driver: Browser, width: int) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def _theme(driver: Browser, name: str) -> None:
    wished = {"prefers-color-scheme": name, "prefers-reduced-motion": "reduce"}  # clicks need pages that stand still
    features = [{"name": feature, "value": value} for feature, value in wished.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})


def _with_everything(report: Report) -> Report:
    known = Withheld(report.findings[0], "suppression", "agreed", "examples/run.sh", 5)
    return replace(report, withheld=(known,), remarks=("a stale entry of the baseline",))


def _open_all(driver: Browser) -> None:
    driver.execute_script("document.querySelectorAll('.open-all').forEach((button) => button.click());")
    driver.execute_script("document.querySelectorAll('details').forEach((details) => { details.open = true; });")


def _axe(driver: Browser) -> list[str]:
    own = Path(axe_core_python.__file__).parent / "axe.min.js"
    driver.execute_script(Path(os.environ.get("AXE_CORE", own)).read_text(encoding="utf-8"))
    found = driver.execute_async_script("axe.run().then(arguments[arguments.length - 1]);")
    assert len(found["passes"]) > 20
    return [f"{v['id']}: {v['help']}: {[node['html'][:200] for node in v['nodes']]}" for v in found["violations"]]


def _requests(driver: Browser) -> set[str]:
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    return {url for url in sent if not url.startswith(("about:", "chrome:"))}


def _shown(driver: Browser, list_id: str) -> list[str]:
    script = "return [...document.querySelectorAll(`#${arguments[0]} > li:not([hidden])`)].map((row) => row.id)"
    ids: list[str] = driver.execute_script(script, list_id)
    return ids


def _set(driver: Browser, name: str, value: str) -> None:
    driver.execute_script(
        "const control = document.getElementById('filters').elements[arguments[0]]; control.value = arguments[1];"
        "control.dispatchEvent(new Event('input', {bubbles: true}));",
        name,
        value,
    )


# --- accessible ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(show: Callable[..., Browser], report: Report, view: View, theme: str, width: int) -> None:
    driver = show(_with_everything(report), view)
    _theme(driver, theme)
    _screen(driver, width)
    _open_all(driver)
    assert _axe(driver) == []


def test_nothing_is_wider_than_a_phone(show: Callable[..., Browser], report: Report, view: View) -> None:
    driver = show(_with_everything(report), view)
    _screen(driver, 360)
    _open_all(driver)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 360


def test_the_theme_follows_the_system_until_it_is_chosen(
    show: Callable[..., Browser], report: Report, view: View
) -> None:
    driver = show(report, view)
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = driver.execute_script(ground)
    _theme(driver, "dark")
    dark = driver.execute_script(ground)
    assert light != dark
    toggle = driver.find_element("id", "theme")
    labels = []
    for _ in range(3):
        toggle.click()
        labels.append((toggle.text, driver.execute_script(ground)))
    assert labels == [("Theme: light", light), ("Theme: dark", dark), ("Theme: auto", dark)]


def test_it_can_be_read_without_a_script(browser: Browser, report: Report, view: View, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(text_of(report, view), encoding="ascii")
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get(file.as_uri())
    browser.find_element("css selector", "#f2 summary").click()
    assert "value of kl_loss_coef" in browser.find_element("id", "f2").text
    assert not browser.find_element("id", "filters").is_displayed()
    assert not browser.find_element("id", "theme").is_displayed()


# --- filters -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "findings", "setups"),
    [
        ("rule", "KLA101", ["f2"], ["s2"]),
        ("severity", "error", ["f1"], ["s1"]),
        ("framework", "trl", [], ["s3"]),
        ("verdict", "biased", ["f1", "f2"], ["s1", "s2"]),
        ("q", "kl_loss_coef 0.001", ["f2"], ["s2"]),
        ("q", "oc.env", [], ["s1"]),
        ("q", "nothing has this", [], []),
    ],
)
def test_a_filter(
    show: Callable[..., Browser],
    report: Report,
    view: View,
    name: str,
    value: str,
    findings: list[str],
    setups: list[str],
) -> None:
    driver = show(report, view)
    _set(driver, name, value)
    assert (_shown(driver, "findings-list"), _shown(driver, "setups-list")) == (findings, setups)
    told = driver.find_element("id", "count").text
    assert told == f"Showing {len(findings)} of 2 findings and {len(setups)} of 3 set-ups."
    assert driver.find_elements("css selector", ".no-match")[0].is_displayed() == (not findings)
    address = driver.current_url
    driver.get("about:blank")
    driver.get(address)  # a link to the view gives the view
    assert (_shown(driver, "findings-list"), _shown(driver, "setups-list")) == (findings, setups)
    driver.find_element("css selector", "#filters button").click()
    assert len(_shown(driver, "findings-list")) == 2 and "=" not in driver.current_url


def test_links_of_the_summary_filter(show: Callable[..., Browser], report: Report, view: View) -> None:
    driver = show(report, view)
    driver.find_element("link text", "KLA102").click()
    assert _shown(driver, "findings-list") == ["f1"]


def test_a_link_to_a_finding_opens_it_whatever_the_filter(
    show: Callable[..., Browser], report: Report, view: View
) -> None:
    driver = show(report, view, "#rule=KLA102")
    assert _shown(driver, "findings-list") == ["f1"]
    driver.execute_script("location.hash = 'f2'")
    driver.execute_async_script("setTimeout(arguments[0], 50)")
    assert _shown(driver, "findings-list") == ["f1", "f2"]
    assert driver.find_element("css selector", "#f2 > details").get_attribute("open")
    assert driver.execute_script("return document.activeElement.closest('li').id") == "f2"


def test_an_excerpt_that_was_shown_before_is_shown_again(
    show: Callable[..., Browser], report: Report, view: View
) -> None:
    twice = replace(report, findings=(report.findings[1], replace(report.findings[1], message="again")), setups=())
    driver = show(twice, view)
    driver.find_element("css selector", "#f2 summary").click()
    driver.execute_async_script("setTimeout(arguments[0], 50)")
    assert len(driver.find_elements("css selector", "#f2 .source mark")) > 0
    assert driver.execute_script("return document.querySelectorAll('[id=x1]').length") == 1


def _many(report: Report, count: int) -> Report:
    launch, finding = report.setups[1], report.findings[1]
    spans = [replace(launch.span, path=f"run{at}.sh") for at in range(count)]
    return replace(
        report,
        setups=tuple(replace(launch, path=span.path, span=span) for span in spans),
        findings=tuple(replace(finding, span=replace(finding.span, path=span.path)) for span in spans[::2]),
    )


def test_thousands_of_setups_are_filtered_at_once(show: Callable[..., Browser], report: Report, view: View) -> None:
    """Script and layout together; generous, since the machine may be busy: quadratic layout took seconds here."""
    driver = show(_many(report, 2000), view)
    assert len(_shown(driver, "setups-list")) == 100
    took = driver.execute_script("""
        const form = document.getElementById('filters');
        const times = [];
        for (const words of ['run19', '', 'run7', '']) {
            const start = performance.now();
            form.elements.q.value = words;
            form.dispatchEvent(new Event('input'));
            document.body.getBoundingClientRect();
            times.push(performance.now() - start);
        }
        return Math.min(...times.slice(2));
    """)
    assert took < 1000
    driver.find_elements("css selector", ".more")[1].click()
    assert len(_shown(driver, "setups-list")) == 200
    assert driver.execute_script("return document.activeElement.closest('li').id") == "s101"


# --- keyboard ------------------------------------------------------------------------------------------------------------------------


def test_everything_can_be_reached_by_keyboard(show: Callable[..., Browser], report: Report, view: View) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    driver = show(report, view)
    path = []
    for _ in range(40):
        ActionChains(driver).send_keys(Keys.TAB).perform()
        active = driver.switch_to.active_element
        path.append(active.text.split("\n")[0] or active.get_attribute("name"))
        outline = driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid", path[-1]  # focus is seen
        if active.tag_name == "summary":
            break
    assert path[0] == "Skip to the findings" and path[1] == "Theme: auto"
    names = ["q", "rule", "severity", "framework", "verdict", "weight", "Clear"]
    where = [next(at for at, told in enumerate(path) if told and told.startswith(name)) for name in ["q"]]
    assert len(path) - where[0] >= len(names) + 2  # the filters, `Open all shown`, the first finding
    ActionChains(driver).send_keys(Keys.ENTER).perform()
    driver.execute_async_script("setTimeout(arguments[0], 50)")
    assert "Why" in driver.find_element("id", "f1").text


def test_the_skip_link_leads_to_the_findings(show: Callable[..., Browser], report: Report, view: View) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    driver = show(report, view)
    ActionChains(driver).send_keys(Keys.TAB, Keys.ENTER).perform()
    assert driver.switch_to.active_element.get_attribute("id") == "findings"


# --- safe ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_words_do_nothing(show: Callable[..., Browser], words: str) -> None:
    driver = show(hostile(words), hostile_view(words))
    _open_all(driver)
    _set(driver, "q", "alert")
    driver.execute_script("document.querySelectorAll('main a').forEach((link) => link.click());")
    driver.execute_async_script("setTimeout(arguments[0], 50)")
    assert driver.execute_script("return window.seen") == []
    assert driver.execute_script("return document.querySelectorAll('script').length") == 1
    assert driver.execute_script("return document.querySelectorAll('img, iframe, object, embed').length") == 0
    assert {url.partition("#")[0].rpartition("/")[2] for url in _requests(driver)} == {"report.html"}
    assert driver.get_log("browser") == []


def test_the_policy_stops_what_would_get_in(show: Callable[..., Browser], report: Report, view: View) -> None:
    """The watch works: what is put into the page by force is refused, and that is seen."""
    driver = show(report, view)
    driver.execute_script("""
        const script = document.createElement('script');
        document.body.append(script, Object.assign(document.createElement('img'), {src: 'http://127.0.0.1:9/x.png'}));
        try { document.body.insertAdjacentHTML('beforeend', '<i onclick="alert(1)">x</i>'); } catch {}
    """)
    driver.execute_async_script("setTimeout(arguments[0], 100)")
    told = " ".join(driver.execute_script("return window.seen"))
    assert "img-src" in told and "require-trusted-types-for" in told
