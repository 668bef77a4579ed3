"""The tutorial as a reader types it: every block of commands, in order, in a folder that looks like a clone with a built program; what the page
says they print, they print, but for the digits of numbers."""

import os
import re
import subprocess

import program

BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)
LEFT = ("prior.nc", "from_logs.nc", "draws.nc", "results/mine/results.nc", "results/mine/report.html", "mine.pdf", "results/right/results.nc", "results/right/calibration.png")


def masked(text):
    """The lines of a text without widths of columns and with one mark for each number."""
    return [re.sub(r"[-+]?\d[\d.e-]*", "#", " ".join(line.split())).replace("[ ", "[") for line in text.splitlines()]


class Tutorial(program.ProgramTest):
    def test_every_block(self):
        with open(os.path.join(program.SOURCE, "docs", "tutorial.md"), encoding="utf-8") as page:
            blocks = BLOCK.findall(page.read())
        self.assertGreaterEqual(sum(kind == "sh" for kind, _ in blocks), 6)
        os.makedirs(self.path("build/release"))
        os.symlink(program.PROGRAM, self.path("build/release/thompson"))
        for folder in ("analysis", "docs", "data"):
            os.symlink(os.path.join(program.SOURCE, folder), self.path(folder))
        environment = {**os.environ, "PATH": "/usr/bin:" + os.environ["PATH"]}
        printed = ""
        for kind, block in blocks:
            if kind == "text":
                for line in masked(block):
                    self.assertIn(line, masked(printed))
                continue
            made = subprocess.run(["bash", "-euc", block], cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
            self.assertEqual(made.returncode, 0, f"{block}\n{made.stdout}\n{made.stderr}")
            printed = made.stdout
        for name in LEFT:
            self.assertTrue(os.path.getsize(self.path(name)), name)


if __name__ == "__main__":
    program.main()
