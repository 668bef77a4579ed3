#!/usr/bin/env python3
"""What can be written and where it is documented: `thompson list` with its keys and names, the JSON schema of study files, docs/keys.md and docs/files.md."""

import json
import pathlib
import re
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
        """Type, range, words and default, from the table against which study files are checked."""
        keys = {key["name"]: key for key in listed("keys")}
        self.assertEqual(keys["prior.stages"]["default"], "100")
        self.assertEqual((keys["runs"]["minimum"], keys["runs"]["type"]), (1, "integer"))
        self.assertIn("cross", keys["problem.theta"]["words"])

    def test_one_name(self):
        """A member with only its own options, a key, a section; for a typo the answer suggests what was meant."""
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
        self.assertIn("did you mean 'problem.noise'?", program.thompson("list", "noise").stderr)

    def test_shared_options_are_said_once(self):
        self.assertEqual(program.thompson("list").stdout.count("multiplies the log likelihood"), 1)

    def test_page_of_the_keys(self):
        done = subprocess.run([sys.executable, SOURCE / "docs/write_keys.py", "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_page_of_the_files(self):
        """Every variable, dimension and attribute of every file is on the page, and nothing else is."""
        done = subprocess.run([sys.executable, SOURCE / "docs/write_files.py", "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Short(program.ProgramTest):
    """What is shown unless everything is requested."""

    def test_samplers_once(self):
        """Under policies a sampler appears only by name; the whole list has each summary once."""
        whole = program.thompson("list").stdout
        for entry in listed("samplers"):
            self.assertEqual(whole.count(f"  {entry['name']:12} {entry['summary']}"), 1, entry["name"])
        self.assertIn("diffts", program.thompson("list", "policies").stdout)

    def test_plan(self):
        """The cost comes first, then what the study changes; --all shows every key. Both are studies: their plans have the same hash."""
        study = self.write("study.yaml", "name: x\nruns: 16\nproblem: {theta: rays}\nprior: {stages: 100}\n"
                                         "policies: [ts, {name: mixts, components: auto}, {name: ts, label: cold, temper: 0.50}]\nsweep: {problem.arms: [5, 10]}\n")
        brief, whole = (self.succeed("plan", study, *more).stdout for more in ([], ["--all"]))
        self.assertTrue(brief.startswith("# 2 settings x 3 policies x 16 runs"), brief)
        keys = yaml.safe_load(brief)
        self.assertEqual(keys, {"name": "x", "runs": 16, "problem": {"theta": "rays"}, "sweep": {"problem.arms": [5, 10]},
                                "policies": [{"name": "ts"}, {"name": "mixts", "components": "auto"}, {"name": "ts", "label": "cold", "temper": 0.5}]})
        self.assertGreater(len(yaml.safe_load(whole)), len(keys) + 5)
        hashes = {json.loads(self.succeed("plan", self.write("again.yaml", text), "--json").stdout)["config_sha256"] for text in (brief, whole)}
        self.assertEqual(hashes, {json.loads(self.succeed("plan", study, "--json").stdout)["config_sha256"]})

    def test_settings(self):
        """`list sweep`, `list zip` and `list design` each show an example that is part of a study; so does the refusal of a zip that is not under sweep."""
        shown = {word: self.succeed("list", word).stdout for word in ("sweep", "zip", "design")}
        shown["refusal"] = program.thompson("plan", self.write("top.yaml", "name: a\nzip: true\n")).stderr
        self.assertIn("top.yaml:2:1: key 'zip': it belongs under sweep", shown["refusal"])
        for word, settings in (("sweep", 6), ("zip", 3), ("design", 64), ("refusal", 3)):
            example = "\n".join(re.findall(r"(?:sweep|design): \{.*\}", shown[word]))
            study = self.write(f"{word}.yaml", f"name: a\npolicies: [random]\n{example}\n")
            self.assertEqual(len(json.loads(self.succeed("plan", study, "--json").stdout)["settings"]), settings)
        self.assertIn("design.points: an integer", shown["design"])
        self.assertEqual([(entry["name"], entry["family"]) for entry in listed("zip")], [("zip", "settings")])

    def complete(self, *words):
        """What Tab offers in bash for the last word."""
        script, line = SOURCE / "jobs/completion.bash", " ".join(f"'{word}'" for word in words)
        shown = subprocess.run(["bash", "-c", f"compopt() {{ :; }}; source '{script}'; COMP_WORDS=('{program.PROGRAM}' {line}); "
                                              f"COMP_CWORD={len(words)}; _thompson; printf '%s\n' \"${{COMPREPLY[@]}}\""],
                               capture_output=True, text=True, check=True, cwd=self.folder)
        return shown.stdout.split()

    def test_completion(self):
        self.write("study.yaml", "name: x\n")
        for place in ("results/one", "two"):
            pathlib.Path(self.path(place)).mkdir(parents=True)
            self.write(f"{place}/study.yaml", "name: x\n")
        pathlib.Path(self.path("three")).mkdir()
        for words, offered in ((("ru",), {"run"}), (("list", "diff"), {"diffts", "diffusion"}), (("list", "prior.stag"), {"prior.stages"}),
                               (("list", "samp"), {"samplers"}), (("run", "study.yaml", "--set", "problem.noi"), {"problem.noise="}),
                               (("run", "study.yaml", "--set", "likelihood", "=", "lo"), {"logistic"}),
                               (("sample", "--sampler", "localised", "--option", "first"), {"first_precision="}),
                               (("train", "--option", "stag"), {"stages="}), (("status", ""), {"results/one", "two"}),
                               (("verify", "res"), {"results/one"}), (("reduce", "tw"), {"two"}), (("sample", "--sampler", "local"), {"localised"})):
            with self.subTest(" ".join(words)):
                self.assertEqual(set(self.complete(*words)), offered)


@unittest.skipUnless(jsonschema, "needs python3-jsonschema: jobs/install_debian.sh --tests")
class Schema(unittest.TestCase):
    """The schema accepts what the program accepts, and refuses what it refuses."""

    @classmethod
    def setUpClass(cls):
        schema = json.loads(program.thompson("list", "--schema").stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        cls.validator = jsonschema.Draft202012Validator(schema)

    def test_studies_of_the_tree(self):
        for file in sorted((SOURCE / "jobs").rglob("*.yaml")):
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
