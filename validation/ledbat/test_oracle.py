"""The table that the simulator's LEDBAT++ is held to is what the oracle writes."""

import subprocess
import sys
import unittest
from pathlib import Path


class Table(unittest.TestCase):
    def test_it_is_what_the_oracle_writes(self):
        done = subprocess.run([sys.executable, "-B", Path(__file__).with_name("oracle.py"), "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
