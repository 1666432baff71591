"""What the comparison with ns-2 rests on: its statistics and its list of transfers. Needs no simulator."""

import statistics
import unittest

import run


class Statistics(unittest.TestCase):
    def test_a_quantile_is_a_value_that_occurred(self):
        self.assertEqual([run.quantile([1, 2, 3, 4], share) for share in (0.0, 0.25, 0.5, 0.51, 0.95, 1.0)], [1, 1, 2, 3, 4, 4])

    def test_the_interval_is_students(self):
        # Two values a unit apart: s = 1 / sqrt(2), n = 2, t = 12.71.
        self.assertAlmostEqual(run.interval([0.0, 1.0]), 12.71 / 2)
        self.assertEqual(run.interval([3.0]), 0.0)

    def test_a_difference_beyond_tolerance_and_chance_fails(self):
        self.assertEqual(run.verdict([100.0] * 3, [103.0] * 3, 0.05), ("+3 %", "agrees within 5 %", True))
        self.assertEqual(run.verdict([100.0] * 3, [107.0] * 3, 0.05), ("+7 %", "**outside 5 %**", False))
        # Three pairs of runs whose differences scatter by twelve say little about seven in a hundred.
        self.assertTrue(run.verdict([100.0] * 3, [95.0, 107.0, 119.0], 0.05)[2])
        # Where runs scatter together, each pair by seven, the difference is real.
        self.assertFalse(run.verdict([90.0, 100.0, 110.0], [97.0, 107.0, 117.0], 0.05)[2])
        self.assertEqual(run.verdict([2.0], [1.0], run.SACK1), ("-50 %", "differs [1]", True))


class Transfers(unittest.TestCase):
    def test_the_same_seed_gives_the_same_list(self):
        self.assertEqual(list(run.poisson(1, 100)), list(run.poisson(1, 100)))
        self.assertNotEqual(list(run.poisson(1, 100)), list(run.poisson(2, 100)))

    def test_the_load_is_what_it_says(self):
        transfers = [transfer for seed in range(20) for transfer in run.poisson(seed, 5000)]
        ends = [list(run.poisson(seed, 5000))[-1][0] for seed in range(20)]
        bits = sum(packets * 1500 * 8 for _, packets in transfers)
        self.assertAlmostEqual(bits / sum(ends) / 10e6, 0.8, delta=0.02)
        # Zipf with exponent 1 over 1 to 1000: the mean is 1000 over the thousandth harmonic number, 7.4855.
        self.assertAlmostEqual(statistics.fmean(packets for _, packets in transfers), 133.6, delta=3)


if __name__ == "__main__":
    unittest.main()
