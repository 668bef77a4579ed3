#!/usr/bin/env python3
"""What can be written and where it is said: `thompson list` with its keys and names, the JSON schema of study files, docs/keys.md and docs/files.md."""

import json
import pathlib
import subprocess
import sys
import unittest

import program
import yaml

try:
    import jsonschema
except ImportError:
    jsonschema = None

SOURCE = pathlib.Path(program.SOURCE)


def listed(*arguments):
    return json.loads(program.thompson("list", *arguments, "--json").stdout)


class Listing(unittest.TestCase):
    def test_keys(self):
        """Type, range, words and default, from the table that study files are checked by."""
        keys = {key["name"]: key for key in listed("keys")}
        self.assertEqual(keys["prior.stages"]["default"], "100")
        self.assertEqual((keys["runs"]["minimum"], keys["runs"]["type"]), (1, "integer"))
        self.assertIn("cross", keys["problem.theta"]["words"])

    def test_one_name(self):
        """A member with its own options only, a key, a section; a typo is told what was meant."""
        text = program.thompson("list", "localised").stdout
        self.assertIn("first_precision", text)
        self.assertNotIn("temper", text)
        own = {entry["family"]: {option["name"] for option in entry["options"]} for entry in listed("localised")}
        self.assertNotIn("temper", own["policies"])
        self.assertEqual(own["policies"], own["samplers"])
        self.assertIn("prior.stages: an integer in [1, 100000]; default 100", program.thompson("list", "prior.stages").stdout)
        self.assertEqual({key["name"].partition(".")[0] for key in listed("problem")}, {"problem"})
        typo = program.thompson("list", "difts")
        self.assertEqual(typo.returncode, 2)
        self.assertIn("did you mean 'diffts'?", typo.stderr)

    def test_shared_options_are_said_once(self):
        self.assertEqual(program.thompson("list", "policies").stdout.count("multiplies the log likelihood"), 1)

    def test_page_of_the_keys(self):
        done = subprocess.run([sys.executable, SOURCE / "docs/write_keys.py", "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_page_of_the_files(self):
        """Every variable, dimension and attribute of every file, and of every file what the page has."""
        done = subprocess.run([sys.executable, SOURCE / "docs/write_files.py", "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


@unittest.skipUnless(jsonschema, "needs python3-jsonschema: jobs/install_debian.sh --tests")
class Schema(unittest.TestCase):
    """The schema takes what the program takes, and refuses what it refuses."""

    @classmethod
    def setUpClass(cls):
        schema = json.loads(program.thompson("list", "--schema").stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        cls.validator = jsonschema.Draft202012Validator(schema)

    def test_studies_of_the_tree(self):
        for file in sorted((SOURCE / "jobs").glob("*.yaml")):
            errors = [error.message for error in self.validator.iter_errors(yaml.safe_load(file.read_text(encoding="utf-8")))]
            self.assertEqual(errors, [], file.name)

    def test_wrong_studies(self):
        study = {"name": "a", "policies": ["ts", {"name": "lints", "label": "x", "eta": 2}], "problem": {"arms": 5}, "problem.rounds": 7}
        self.assertTrue(self.validator.is_valid(study))
        for wrong in ({"problems": {}}, {"problem": {"arms": 0}}, {"problem": {"arm": 5}}, {"policies": ["tss"]}, {"seed": "x"},
                      {"policies": [{"name": "ts", "nonsense": 1}]}, {"sweep": {"runs": [1, 2]}}, {"prior.stages": 2.5}):
            self.assertFalse(self.validator.is_valid({**study, **wrong}), wrong)


if __name__ == "__main__":
    program.main()
