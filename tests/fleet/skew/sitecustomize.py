"""A host whose clock is wrong: ``SKEW_S`` seconds ahead.  Python imports this first where it stands in PYTHONPATH."""

import os
import time

_right, _ahead_s = time.time, float(os.environ["SKEW_S"])
time.time = lambda: _right() + _ahead_s
