#!/usr/bin/env python3
"""The page of analysis/tools/report.py in a real browser: it opens without a network and without console messages, its curves can be
read and switched with pointer and keys, and it fits a phone and prints.

Needs Chromium and its driver, and python3-selenium; if one of them is missing, exits with 77 and the reason, which CTest
counts as skipped.
"""
import json
import pathlib
import shutil
import sys
import tempfile
import time
import unittest

import numpy as np

sys.dont_write_bytecode = True
SKIPPED = 77


def missing():
    """What is not installed, or None."""
    for program in ("chromium", "chromedriver"):
        if not shutil.which(program):
            return f"{program} is not installed (Debian packages chromium, chromium-driver)"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed (Debian package python3-selenium)"
    return None


if missing():
    print(f"skipped: {missing()}")
    sys.exit(SKIPPED)

from selenium import webdriver  # noqa: E402
from selenium.webdriver import ActionChains  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

import study_fixture  # noqa: E402  (finds analysis/)

from thompson import store  # noqa: E402
import claims  # noqa: E402
import report  # noqa: E402
import style  # noqa: E402

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--window-size=1200,900")
PHONE = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}


def browser(profile):
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


def shown(number):
    """A number as the page writes it: four digits."""
    return f"{float(f'{number:.4g}'):g}"


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.profile = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.profile.cleanup)
        cls.driver = browser(cls.profile.name)
        cls.addClassCleanup(cls.driver.quit)
        cls.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def open(self, module=report, *arguments):
        """Open the page of the folder as the script writes it."""
        status, out, err = study_fixture.call(module, self.folder, *arguments)
        self.assertEqual((status, err), (0, ""), err)
        self.driver.get_log("performance")
        self.driver.get(pathlib.Path(out.splitlines()[-1]).as_uri())
        self.quiet()

    def quiet(self):
        """Check that there are no console messages, and no requests except for the page and what it contains."""
        self.assertEqual(self.driver.get_log("browser"), [])
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        self.assertEqual([url for url in asked if not url.startswith(("file://", "data:"))], [])
        self.assertLessEqual(len([url for url in asked if url.startswith("file://")]), 1)

    def page_seconds(self):
        """CPU seconds of the page's thread."""
        metrics = self.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    def find(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def switch(self, label):
        return next(button for button in self.find(".switch") if button.text == label)

    def lines(self, chart=0):
        """The policies whose curves a chart shows."""
        return set(self.driver.execute_script(
            "return [...document.querySelectorAll('.chart')[arguments[0]].querySelectorAll('svg > g[data-p]')].map(g => +g.dataset.p)", chart))

    def tip(self, chart=0):
        return self.find(".chart")[chart].find_element(By.CSS_SELECTOR, ".tip")

    def is_narrow(self):
        ends = [svg.rect["x"] + svg.rect["width"] for svg in self.find(".chart svg")[:2]]
        return max(ends + [self.driver.execute_script("return document.documentElement.scrollWidth")]) <= PHONE["width"]

    def fits_a_phone(self):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
        deadline = time.monotonic() + 60
        while not self.is_narrow() and time.monotonic() < deadline:
            time.sleep(0.1)  # charts are redrawn a moment after the width has changed
        self.assertTrue(self.is_narrow())
        for svg in self.find(".chart svg")[:2]:
            self.assertGreater(svg.rect["width"], 300)
        for board in self.find(".wide:has(> .board)"):
            self.assertLessEqual(*(self.driver.execute_script(f"return arguments[0].{side}Width", board) for side in ("scroll", "client")), "cut off")
        self.quiet()

    def test_curves_are_switched_by_click_and_key(self):
        study_fixture.write_results(self.folder, study_fixture.PRIORS, runs=16, rounds=50)
        self.open()
        labels = list(study_fixture.POLICIES)
        everybody, dps = set(range(len(labels))), labels.index("dps")
        self.assertEqual(self.lines(), everybody - {dps})  # it leaves the axis
        self.assertEqual(self.switch("dps").get_attribute("aria-pressed"), "false")
        self.switch("dps").click()
        for chart in range(3):
            self.assertEqual(self.lines(chart), everybody)
        self.switch("ts").send_keys(Keys.SPACE)
        self.assertEqual(self.switch("ts").get_attribute("aria-pressed"), "false")
        self.switch("linucb").send_keys(Keys.ENTER)
        self.assertEqual(self.lines(), everybody - {labels.index("ts"), labels.index("linucb")})
        self.driver.find_element(By.ID, "none").click()
        self.assertEqual(self.lines(), set())
        self.driver.find_element(By.ID, "all").click()
        self.assertEqual(self.lines(), everybody)
        self.driver.find_element(By.ID, "best").click()
        self.assertEqual(self.lines(), everybody - {dps})
        self.quiet()

    def test_claims(self):
        """The page of a paper opens just as quietly and fits a phone, where a figure keeps its size and scrolls separately."""
        place = self.folder / "figure2"
        place.mkdir()
        study_fixture.write_results(place, study_fixture.PRIORS, runs=8, rounds=20)
        style.plt.imsave(place / "figure.png", np.zeros((300, 2400)))
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
        self.open(claims, "--paper", "diffts")
        self.assertEqual(self.driver.execute_script("return document.documentElement.scrollWidth"), PHONE["width"])
        image, = self.find("img")
        self.assertEqual(image.rect["width"], 720)  # 45rem

    def test_claims_are_chosen_by_verdict(self):
        """A box, by click or by key, hides the claims with a verdict, in the overview and below; no page reveals where it was made."""
        place = self.folder / "figure2"
        place.mkdir()
        study_fixture.write_results(place, study_fixture.PRIORS, runs=8, rounds=20)
        self.open(claims, "--paper", "diffts")
        boxes = self.find(".choice input")
        verdicts = [box.find_element(By.XPATH, "..").text for box in boxes]
        self.assertEqual(sum(int(text.split()[-1]) for text in verdicts), len(self.find("td .verdict")))
        for box, text, key in zip(boxes, verdicts, (None, Keys.SPACE, None)):
            before = [sum(one.is_displayed() for one in self.find(where)) for where in ("td .verdict", "section > p > .verdict")]
            box.send_keys(key) if key else box.click()
            after = [sum(one.is_displayed() for one in self.find(where)) for where in ("td .verdict", "section > p > .verdict")]
            self.assertEqual([one - other for one, other in zip(before, after)], 2 * [int(text.split()[-1])])
        self.assertEqual(len({one.value_of_css_property("color") for one in self.find(".choice .verdict")}),
                         len({one.get_attribute("data-verdict") in ("0", "1") and "good" or {"2": "in part", "3": "bad"}.get(one.get_attribute("data-verdict"))
                              for one in self.find(".choice .verdict")}))
        self.assertNotIn(str(self.folder), self.driver.page_source)
        self.quiet()

    def test_values_are_read_by_pointer_and_key(self):
        regret = study_fixture.write_results(self.folder, study_fixture.PRIORS, runs=16, rounds=50)
        self.open()
        svg = self.find(".chart svg")[1]
        svg.send_keys(Keys.END)
        text = self.tip(1).text
        self.assertIn("round 50", text)
        self.assertIn(f"diffts {shown(regret[1, 4, :, -1].mean())}", text)
        svg.send_keys(Keys.HOME, Keys.ARROW_RIGHT)
        self.assertIn("round 2", self.tip(1).text)
        self.assertIn(shown(regret[1, 4, :, 1].mean()), self.tip(1).text)
        svg.send_keys(Keys.ESCAPE)
        self.assertFalse(self.tip(1).is_displayed())
        ActionChains(self.driver).move_to_element(self.find(".chart svg")[0]).perform()
        self.assertTrue(self.tip(0).is_displayed())
        middle = int(self.tip(0).text.split("\n")[0].split()[-1])
        self.assertTrue(15 < middle < 35, middle)
        self.quiet()

    def test_points_are_read_by_key(self):
        study_fixture.write_results(self.folder, ["cross"], runs=16, rounds=50)
        self.open()
        svg = self.find("#cost .chart svg")[0]
        svg.send_keys(Keys.ARROW_RIGHT)
        self.assertIn("0.001 CPU seconds per run", self.find("#cost .tip")[0].text)  # the cheapest
        self.assertIn("ts", self.find("#cost .tip")[0].text)

    def test_everything_has_a_name(self):
        study_fixture.write_results(self.folder, study_fixture.PRIORS, runs=8, rounds=20)
        self.open()
        for svg in self.find(".chart svg"):
            self.assertEqual((svg.get_attribute("role"), svg.get_attribute("tabindex")), ("img", "0"))
            self.assertIn("against", svg.get_attribute("aria-label"))
        self.assertTrue(all(button.text for button in self.find("button")))
        self.assertTrue(all(self.find(f"[id='{link.get_attribute('href').split('#')[1]}']") for link in self.find("nav a")))
        self.assertEqual(self.driver.execute_script("return document.documentElement.lang"), "en")
        self.switch("ts").send_keys(Keys.TAB)
        self.assertEqual(self.driver.execute_script("return document.activeElement.className"), "switch")

    def test_phone_and_print(self):
        study_fixture.write_results(self.folder, study_fixture.PRIORS, runs=8, rounds=20)
        self.open()
        self.fits_a_phone()
        printed = self.driver.execute_cdp_cmd("Page.printToPDF", {})["data"]
        self.assertTrue(printed.startswith("JVBERi0"))  # %PDF-

    def test_posterior_study(self):
        curves = study_fixture.write_posterior(self.folder)
        self.open()
        titles = [heading.text for heading in self.find("h2")]
        self.assertIn("Posterior quality", titles)
        svg = self.find("#curves .chart svg")[0]
        svg.send_keys(Keys.HOME)
        text = self.find("#curves .tip")[0].text
        self.assertIn(shown(curves["emd"][0, 1, :, 0].mean()), text)
        self.assertIn("floor", text)
        self.fits_a_phone()

    def test_convergence_study(self):
        study_fixture.convergence(self.folder)
        self.open()
        self.assertTrue(self.find("#cost .chart svg circle"))
        self.fits_a_phone()

    def test_unfinished_study(self):
        study_fixture.write_results(self.folder, ["cross"], runs=8, rounds=20, failed=[(0, 4, 3)],
                                     not_run=[(0, p, r) for p in range(3) for r in range(8)])
        self.open()
        self.assertIn("Unfinished: 39 of 64 runs are in, 1 failed", self.find(".warn")[0].text)
        self.assertEqual(self.lines() & {0, 1, 2}, set())

    def test_study_without_a_run(self):
        study_fixture.write_results(self.folder, ["cross"], runs=2, rounds=20, not_run=[(0, p, r) for p in range(8) for r in range(2)])
        self.open()
        self.assertIn("0 of 16 runs are in", self.find(".warn")[0].text)

    def test_many_policies_and_settings(self):
        policies = {f"lmc h={i}": (20 + i, 5) for i in range(150)}
        study_fixture.write_results(self.folder, [f"p{s}" for s in range(9)], policies, runs=4, rounds=40)
        self.open()
        page = self.folder / "report.html"
        self.assertLess(page.stat().st_size, 4e6)
        self.assertEqual(len(self.lines()), report.chart.SHOWN)
        self.assertEqual(len([row for row in self.find("#leaderboard tbody tr") if row.is_displayed()]), report.chart.SHOWN)
        self.driver.execute_script("document.querySelector('.switches').open = true")
        self.find("#filter")[0].send_keys("h=14")
        self.assertEqual(len([button for button in self.find(".switch") if button.is_displayed()]), 11)  # 14, 140 to 149
        self.driver.find_element(By.ID, "all").click()
        self.assertEqual(len(self.lines() | set(range(15))), 15 + 10)
        self.find("#filter")[0].send_keys(Keys.BACKSPACE * 4)
        began = self.page_seconds()
        self.driver.find_element(By.ID, "all").click()
        self.assertEqual(len(self.lines()), 150)
        self.assertLess(self.page_seconds() - began, 5)  # it takes 0.4
        self.fits_a_phone()

    def test_texts_are_not_markup(self):
        """Labels and titles that look like HTML are shown as they are."""
        evil = "<img src=x onerror=alert(1)>"
        study_fixture.write_results(self.folder, [evil], {evil: (10, 1), "</script>": (12, 1), "<!--<script>": (13, 1)}, runs=4, rounds=5)
        self.open()
        self.assertEqual(self.find("main img"), [])
        self.assertEqual({button.text for button in self.find(".switch")}, {evil, "</script>", "<!--<script>"})
        self.assertTrue(np.isfinite(store.results(self.folder)["regret"].values).all())


if __name__ == "__main__":
    study_fixture.main(Report)
