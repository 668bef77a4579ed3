"""The tutorial as a reader types it: every block of commands, in order, in a folder that looks like a clone with a built program."""

import os
import re
import subprocess

import program

BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
LEFT = ("prior.nc", "from_logs.nc", "draws.nc", "results/mine/results.nc", "results/mine/report.html", "mine.pdf", "results/right/results.nc", "results/right/calibration.png")


class Tutorial(program.ProgramTest):
    def test_every_block(self):
        with open(os.path.join(program.SOURCE, "docs", "tutorial.md"), encoding="utf-8") as page:
            blocks = BLOCK.findall(page.read())
        self.assertGreaterEqual(len(blocks), 6)
        os.makedirs(self.path("build/release"))
        os.symlink(program.PROGRAM, self.path("build/release/thompson"))
        for folder in ("analysis", "docs", "data"):
            os.symlink(os.path.join(program.SOURCE, folder), self.path(folder))
        environment = {**os.environ, "PATH": "/usr/bin:" + os.environ["PATH"]}
        for block in blocks:
            made = subprocess.run(["bash", "-euc", block], cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
            self.assertEqual(made.returncode, 0, f"{block}\n{made.stdout}\n{made.stderr}")
        for name in LEFT:
            self.assertTrue(os.path.getsize(self.path(name)), name)


if __name__ == "__main__":
    program.main()
