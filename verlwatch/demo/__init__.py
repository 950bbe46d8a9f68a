"""A recorded verl run (``train.log.gz``, verl 0.3.0.post1, 300 steps) that `verlwatch demo` plays back.

Printed by verl's own trainer loop, timers, metrics and loggers; durations were drawn by a generator.  Three things were
put into it: gen ×4 in steps 120-123, old_log_prob ×3 in steps 150-151, gen ×1.6 from step 200 to the end.
"""
