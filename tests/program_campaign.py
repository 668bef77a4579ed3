"""The short version of tests/campaign.py: ten random faults."""

import unittest

import campaign
import program


class Campaign(unittest.TestCase):
    def test_ten_faults(self):
        self.assertTrue(campaign.Campaign(program.PROGRAM, seed=2, rounds=300).run(10))


if __name__ == "__main__":
    program.main()
